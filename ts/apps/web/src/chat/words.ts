// All texts of the chat page, in one table. The server may replace any of them (`words` of `/api/about`), for example to translate the
// page; `{name}` is a placeholder.
import { createContext, useContext } from "react";

export const ENGLISH = {
  // chats
  chats: "Chats",
  newChat: "New chat",
  inbox: "Inbox",
  inspector: "Inspector",
  clients: "Clients",
  searchChats: "Search chats",
  noMatches: "No chat has these words.",
  olderChats: "Older chats",
  today: "Today",
  yesterday: "Yesterday",
  earlier: "Earlier",
  tryOne: "Try one",
  moreToTry: "More to try",
  untitled: "Untitled",
  notRenamed: "Not renamed.",
  notDeleted: "Not deleted.",
  noAnswer: "The server does not answer.",
  chatGone: "This chat does not exist any more.",
  signInFirst: "Sign in above, then try again.",
  refusedLater: "The server refused it. Try again in a minute.",
  rename: "Rename",
  renameChat: "Rename {title}",
  newTitle: "New title",
  deleteChat: "Delete {title}",
  deleteQuestion: "Delete “{title}” with everything in it? This cannot be undone.",
  waitingCount: ", {count} waiting",
  waitingForYou: ", waiting for you",
  connected: "This browser is connected",
  notConnected: "Not connected. Trying again.",
  scripted: "Scripted model, no key needed",
  themeSystem: "Theme: as the system",
  themeLight: "Theme: light",
  themeDark: "Theme: dark",
  notify: "Notify me when an answer is needed",
  notifyOff: "Stop notifications",
  notifyBlocked: "Notifications are blocked for this site. Allow them in the address bar.",
  close: "Close: {name}",

  // the first visit, and a chat that is unknown or not loaded
  welcomeTitle: "What can I do for you?",
  welcomeText: "You are asked before a tool uses this browser or does anything that needs your approval. Take your time: nothing is lost if the connection breaks.",
  notLoaded: "This chat appears as soon as it does. Nothing is lost.",
  noSuchChat: "No such chat",
  noSuchChatTitle: "There is no such chat.",
  noSuchChatText: "It was deleted, or it belongs to somebody else. Start a new one, or choose one of yours from the list.",

  // the header of a chat
  stateThinking: "Thinking",
  stateRunning: "Running",
  stateWaiting: "Waiting for you",
  stateParked: "Saved for later",
  stateDone: "Done",
  stateStopped: "Stopped",
  stateFailed: "Failed",
  stateLost: "Connection lost",
  theAssistant: "The assistant: {state}",
  inspectRun: "Inspect run",
  pullThePlug: "Pull the plug",
  pullThePlugHint: "Drops the connection on purpose: nothing is lost",

  // messages
  you: "You: ",
  copy: "Copy",
  copied: "Copied",
  copyFailed: "Not copied",
  copyCode: "Copy code",
  regenerate: "Regenerate",
  edit: "Edit",
  editMessage: "Edit message",
  editHint: "Everything after this message is replaced. Tools that ran are not undone.",
  send: "Send",
  cancel: "Cancel",
  reasoning: "Reasoning",
  reasoningNow: "Thinking",
  thoughtFor: "Thought for {time}",
  jump: "Jump to latest",
  image: "Image",
  tryAgain: "Try again",
  seeWhatHappened: "See what happened",
  stopped: "Stopped. Nothing more happens in this answer.",
  stopping: "Stopping.",
  stopLate: "Stopped on this page. The server is not responding; it will be told as soon as it is back.",

  // the message box
  message: "Message",
  placeholder: "Ask for something",
  answerAbove: "Answer above to continue",
  sentLater: "Sent when this answer is complete",
  stop: "Stop",
  attach: "Add files",
  dropFiles: "Drop files to add them to your message",
  removeFile: "Remove {name}",
  uploading: "Uploading {name}",
  toTheCard: "to the card",
  toTheCardThere: "to the card, then",
  keySend: "send",
  keyAllow: "allow",
  keyDeny: "deny",
  saved: "Saved. You have until {time} to answer.",

  // inbox
  looking: "Looking.",
  noQuestions: "No open questions",
  oneQuestion: "1 open question in all your chats",
  manyQuestions: "{count} open questions in all your chats",
  caughtUp: "All caught up.",
  outsideChat: "Started outside a chat",
  pick: "Pick",
  picked: "Picked questions",
  callsOf: "{count} calls of ",
  readFirst: "Scroll each list of parameters to its end first.",
  editedApart: "You changed one of them. Allow it on its own card, or undo the changes.",
  allowThese: "Allow these {count} once",
  sameToolOnly: "Only calls of the same tool can be allowed together.",
  justNow: "just now",
  minutesAgo: "{count} min ago",
  hoursAgo: "{count} h ago",
  daysAgo: "{count} d ago",

  // a page beside the chat
  pageBeside: "Page beside the chat",
  loadAgain: "Load again",
  ownTab: "Open in its own tab",
  closePage: "Close the page",
  openedByAssistant: "Opened by the assistant",
  nothingHere: "Nothing here?",

  // signed out
  signedOut: "You are signed out.",
  signedOutToken: "Enter the token that the server printed at start (the part of the address after ?\u2060token=). Nothing on this page is lost.",
  signedOutElsewhere: "Sign in again in another tab, then continue here. Nothing on this page is lost.",
  token: "Token",
  signIn: "Sign in",
  continueHere: "Continue",
  wrongToken: "The server did not accept this token.",
  tooManyTokens: "Too many attempts. Wait a minute, then try again.",
  serverAway: "The server does not answer. Try again.",
  keptAnswers: "Answers not delivered",
  keptHint: "They are kept in this tab until you send or discard them.",
  keptAnswer: "Your answer: {answer}",
  discard: "Discard",

  // attention
  answerNeeded: "An answer is needed",
} as const;

export type Words = Readonly<Record<keyof typeof ENGLISH, string>>;

/** The table with the given replacements; unknown names and values that are not strings are ignored. */
export function wordsOf(given: Readonly<Record<string, unknown>> | null | undefined): Words {
  const own = Object.entries(given ?? {}).filter(([key, word]) => Object.hasOwn(ENGLISH, key) && typeof word === "string");
  return own.length === 0 ? ENGLISH : { ...ENGLISH, ...Object.fromEntries(own) };
}

export function fill(words: string, values: Readonly<Record<string, string | number>>): string {
  return words.replace(/\{(\w+)\}/g, (whole, name: string) => (Object.hasOwn(values, name) ? String(values[name]) : whole));
}

const WordsContext = createContext<Words>(ENGLISH);

export const WordsProvider = WordsContext.Provider;

export function useWords(): Words {
  return useContext(WordsContext);
}
