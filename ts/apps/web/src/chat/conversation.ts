// One chat: AI SDK's `useChat` streams the messages, and the server's record is the truth. Owns when each of them is asked.
import { useChat } from "@ai-sdk/react";
import { type Call, type Connection, openable, randomId, type RunStatus, type Thread } from "@farhand/client";
import { LiveTransport } from "@farhand/ai-sdk";
import { type CardHost, type CardView, isAskedElsewhere, isWaiting, useMemory, useNow, viewOf } from "@farhand/react";
import type { FileUIPart, UIMessage } from "ai";
import { useCallback, useEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import { BASE } from "../base.ts";
import { CONNECTION } from "../connection.ts";
import { HTTP, SIGN_IN } from "../server.ts";
import { callsOf, endsOf, factsOf } from "./calls.ts";
import { type Chat, posting, type Posts, useRecord, withoutRetelling } from "./record.ts";
import { useCardConnection, useHands, useSite } from "./site.ts";
import { firstDeadline, isParked, type RunState, stateOf } from "./run-state.ts";
import type { Tools } from "./tools.ts";
import { useUnsent } from "./unsent.ts";

export interface Conversation {
  readonly id: string;
  readonly title: string;
  readonly messages: readonly UIMessage[];
  readonly views: ReadonlyMap<string, CardView>;
  /** Forms that timed out and are not in the record: what was typed stays readable until the next message. */
  readonly lateForms: readonly CardView[];
  readonly host: CardHost;
  readonly state: RunState;
  /** A card is open, or its answer is being sent: no message can be sent before that. */
  readonly needsAnswers: boolean;
  readonly error: Failure | undefined;
  /** The person has pressed Stop, and the server has not confirmed it; `stopIsLate` if it does not respond. */
  readonly isStopping: boolean;
  readonly stopIsLate: boolean;
  /** A message that did not reach the server, because it was stopped or nobody was signed in: it goes back into the message box. */
  readonly returned: UIMessage | undefined;
  readonly runId: string | undefined;
  /** The address names a chat that the server does not have. */
  readonly isUnknown: boolean;
  /** The deadline of the first open question, if the run is stored. */
  readonly until: number | undefined;
  readonly isLoaded: boolean;
  /** The server does not respond, so it is not known what is in this chat: loads it again. */
  readonly reload: (() => void) | undefined;
  readonly send: (text: string, files?: readonly FileUIPart[]) => void;
  /** Generate the last answer again, and edit a message; undefined while the run is active. */
  readonly regenerate: (() => void) | undefined;
  readonly edit: ((message: UIMessage, text: string) => void) | undefined;
  readonly stop: () => void;
  readonly tryAgain: () => void;
  /** Drops the connection on purpose; undefined if there is no connection to drop. */
  readonly pullThePlug: (() => void) | undefined;
}

export interface Failure {
  readonly message: string;
  readonly code?: string;
}

/** `isDraft`: no message was sent yet, so the server does not know the chat. */
export function useConversation(id: string, tools: Tools, isDraft: boolean): Conversation {
  const site = useSite();
  const { deliveries, running } = useHands();
  const [line] = useState(() => new LiveTransport({ url: BASE, fetch: SIGN_IN.fetch }));
  const connection = useConnection(line);
  const known = useRef<{ shown: ReadonlySet<string> }>({ shown: new Set() });
  const onToolCall = useCallback(({ toolCall }: { toolCall: { toolCallId: string; toolName: string; input?: unknown } }) => {
    if (toolCall.toolName !== "open_url" || mayOpen(toolCall.input, known.current.shown)) {
      site.hands.onToolCall({ toolCall });
    }
  }, [site]);
  const chat = useChat({ id, transport: line, onToolCall, onFinish: () => ended(), onError: () => ended(), throttle: 30 });
  const [posts] = useState<Posts>(() => ({ begun: 0, open: 0 }));
  const { record, isBehind, isLoaded, isUnknown, isAway, resumed, sync, reload, ended } = useRecord(id, chat, posts, isDraft);
  const messages = useShown(chat, resumed);
  // the run continues without this page; a browser opens only six connections to a server
  useEffect(() => () => line.release(), [line]);

  const isOpen = chat.status === "submitted" || chat.status === "streaming";
  const facts = useMemo(() => factsOf(record), [record]);
  const ends = useMemo(() => endsOf(record), [record]);
  const calls = useMemo(() => callsOf(messages, facts), [messages, facts]);
  known.current.shown = useMemo(() => hostsShown(messages), [messages]);
  useEffect(() => site.hands.watch(messages), [site, messages]);
  const memory = useMemory({ calls, facts });
  useNow(isAskedElsewhere(facts));
  // once the stream has ended, an older record must not say that the run is active
  const current = isBehind ? undefined : record;
  const run: RunStatus = { state: isParked(current, isOpen) ? "parked" : isOpen ? "running" : "idle" };
  const progress = useSyncExternalStore(site.feed.onProgress, () => site.feed.progress);
  const views = new Map([...calls].map(([callId, call]) => [callId, { ...viewOf({ facts, running, deliveries, run, tools, ends }, call, memory), progress: progress.get(callId) }]));
  const lateForms = useLateForms(views, messages.filter(({ role }) => role === "user").length);

  const { isStopping, wasStopped, setStopped, ...wish } = useStop(id, sync);
  const isLate = wish.isLate || (isStopping && connection.state === "lost");
  const returned = useLettingGo(isLate, chat, calls);
  const refused = useSignedOut(chat, record);
  useEffect(() => {
    if (refused !== undefined || returned !== undefined) {
      // the message is back in the message box
      site.drafts.keepUnsent(id, undefined);
    }
  }, [site, id, refused, returned]);
  const post = (begin: () => Promise<void>): void => {
    setStopped(false);
    void posting(posts, begin()).then(sync);
  };
  /** Stores the message until the server has it. If it is sent twice, the server recognizes it by its id. */
  const say = (parts: UIMessage["parts"], messageId: string = randomId()): Promise<void> => {
    site.drafts.keepUnsent(id, { id: messageId, parts, at: Date.now() });
    return chat.sendMessage({ id: messageId, role: "user", parts });
  };
  const send = (text: string, files: readonly FileUIPart[] = []): void => post(() => say([...files, { type: "text", text }]));
  const edit = (message: UIMessage, text: string): void => {
    const parts = editedParts(message, text);
    site.drafts.keepUnsent(id, { id: message.id, parts, at: Date.now(), isEdit: true });
    post(() => chat.sendMessage({ parts, messageId: message.id }));
  };
  const unsent = useUnsent(id, chat, { record: current, isUnknown, wasStopped, again: ({ id: messageId, parts }) => post(() => say(parts, messageId)) });
  // after Stop, the person is not asked any more
  const cards = isStopping ? [] : [...views.values()];
  const hasWaiting = cards.some(isWaiting);
  const ofCards = useCardConnection(connection);
  const host: CardHost = {
    http: HTTP,
    threadId: id,
    cards,
    // without an open question, only the stream's connection matters; an idle chat has none
    connection: hasWaiting ? ofCards : connection,
    answer: (callId, outcome) => void site.hands.answer(callId, outcome),
    approve: (callId, approvalId, decision) => {
      memory.reasons.set(callId, decision.reason ?? "");
      if (decision.approved && decision.input !== undefined) {
        memory.edited.add(callId);
      }
      site.hands.approve(approvalId, decision);
    },
    retry: (answerId) => site.hands.retry(answerId),
    discard: (answerId) => void site.hands.discard(answerId),
    retryNow: () => (CONNECTION.plugIn(), line.retryNow(), site.hands.retryNow()),
    say: isOpen ? undefined : send,
    openPage: site.openPage,
  };
  const signs = { isOpen, isEmpty: messages.length === 0, cards: host.cards, hasError: chat.error !== undefined, wasStopped };
  const state = isStopping ? "Stopped" : stateOf(current, signs);
  const isAtRest = AT_REST.has(state) && !isStopping;
  return {
    id,
    title: record?.title ?? titleOf(messages),
    messages,
    views,
    lateForms,
    host,
    isStopping,
    stopIsLate: isLate,
    returned: refused ?? returned ?? unsent.returned,
    runId: record?.runId ?? messages.findLast(({ role }) => role === "assistant")?.id,
    isUnknown: isUnknown && !unsent.isLeft,
    state,
    needsAnswers: hasWaiting || state === "Waiting for you" || state === "Parked",
    error: isOpen ? undefined : errorOf(current, chat.error),
    until: hasWaiting && current?.state === "waiting" ? firstDeadline(current) : undefined,
    isLoaded,
    reload: isAway && record === undefined ? reload : undefined,
    send,
    regenerate: isAtRest ? () => post(() => chat.regenerate()) : undefined,
    edit: isAtRest ? edit : undefined,
    stop: () => {
      setStopped(true);
      site.stops.wish(id);
    },
    tryAgain: () => post(() => again(chat, say)),
    pullThePlug: isAtRest || state === "New" || connection.state === "lost" ? undefined : () => CONNECTION.pullThePlug(),
  };
}

const AT_REST: ReadonlySet<RunState> = new Set(["Done", "Stopped", "Failed"]);

/** Also lost while the plug is pulled: an idle chat reads no stream, but its connection is dropped as well. */
function useConnection(line: LiveTransport): Connection {
  const connection = useSyncExternalStore(line.subscribe, () => line.connection);
  const retryAt = useSyncExternalStore(CONNECTION.subscribe, () => CONNECTION.pulledUntil);
  useEffect(() => {
    CONNECTION.noteStream(connection.state === "lost");
    return () => CONNECTION.noteStream(false);
  }, [connection]);
  useEffect(() => (retryAt === undefined ? line.retryNow() : undefined), [retryAt, line]);
  return useMemo(() => (retryAt === undefined ? connection : { state: "lost", retryAt }), [connection, retryAt]);
}

/** The message with another text and the same files. */
function editedParts({ parts }: UIMessage, text: string): UIMessage["parts"] {
  return [...parts.filter((part) => part.type === "file"), { type: "text", text }];
}

const RETOLD_WITHIN_MS = 2_000;

/** Messages as they are shown. An answer that was visible before a resume stays until the stream has repeated that much, for a moment at most. */
function useShown({ messages, status }: Chat, resumed: UIMessage | undefined): readonly UIMessage[] {
  const [late, setLate] = useState<UIMessage>();
  useEffect(() => {
    if (status !== "streaming" || resumed === undefined) {
      return undefined;
    }
    // a step that a crash discarded is written again with other text, so the old text never comes back
    const timer = setTimeout(() => setLate(resumed), RETOLD_WITHIN_MS);
    return () => clearTimeout(timer);
  }, [status, resumed]);
  return useMemo(() => withoutRetelling(messages, late === resumed ? undefined : resumed), [messages, resumed, late]);
}

function errorOf(record: Thread | undefined, error: Error | undefined): Failure | undefined {
  // the record also has the error code
  return record?.failure ?? (error === undefined ? undefined : { message: error.message });
}

/** The record contains only the model's calls; forms that tools ask for are only in the stream. */
function useLateForms(views: ReadonlyMap<string, CardView>, said: number): readonly CardView[] {
  const late = useRef({ said, views: new Map<string, CardView>() });
  if (late.current.said !== said) {
    late.current = { said, views: new Map() };
  }
  views.forEach((view, id) => view.kind === "form" && view.state.name === "timed-out" && late.current.views.set(id, view));
  return [...late.current.views.values()].filter(({ call }) => !views.has(call.id));
}

/** The stop request, and whether the person stopped here: a message that did not reach the server leaves no record of it. */
function useStop(id: string, sync: () => void): { isStopping: boolean; isLate: boolean; wasStopped: boolean; setStopped: (was: boolean) => void } {
  const { stops } = useSite();
  const isStopping = useSyncExternalStore(stops.subscribe, () => stops.has(id));
  const isLate = useSyncExternalStore(stops.subscribe, () => stops.isLate(id));
  const [wasStopped, setStopped] = useState(isStopping);
  const before = useRef(isStopping);
  useEffect(() => {
    if (before.current && !isStopping) {
      sync();
    }
    before.current = isStopping;
  }, [isStopping, sync]);
  return { isStopping, isLate, wasStopped, setStopped };
}

/** While the server is away, nothing of a stopped answer is sent any more: neither the message nor the answers to its cards. Returns the
 * message. */
function useLettingGo(isLate: boolean, { stop, status, messages, setMessages }: Chat, calls: ReadonlyMap<string, Call>): UIMessage | undefined {
  const { hands } = useSite();
  const { deliveries } = useHands();
  const [returned, setReturned] = useState<UIMessage>();
  useEffect(() => {
    if (!isLate) {
      return;
    }
    if (status === "submitted" || status === "streaming") {
      void stop();
    }
    const last = messages.at(-1);
    if (status === "submitted" && last?.role === "user") {
      setReturned(last);
      setMessages((shown) => shown.filter(({ id }) => id !== last.id));
    }
    const ids = [...calls.values()].map((call) => (call.phase === "asking" ? call.approvalId : call.id));
    ids.filter((each) => deliveries.get(each)?.state === "undelivered").forEach((each) => hands.discard(each));
  }, [isLate, status, stop, messages, setMessages, calls, deliveries, hands]);
  return returned;
}

/** A signed-out person is told above the chat only: the refusal is not an error of the answer, and would still be shown after the next
 * sign-in. Returns the refused message, for the message box. */
function useSignedOut({ error, messages, setMessages, clearError }: Chat, record: Thread | undefined): UIMessage | undefined {
  const [returned, setReturned] = useState<UIMessage>();
  useEffect(() => {
    if (error === undefined || !SIGN_IN.isOut) {
      return;
    }
    clearError();
    const last = messages.at(-1);
    if (last?.role === "user" && record?.messages.some(({ id }) => id === last.id) !== true) {
      setReturned(last);
      setMessages((shown) => shown.filter(({ id }) => id !== last.id));
    }
  }, [error, messages, setMessages, clearError, record]);
  return returned;
}

/** Whether the page opens without a card: only if this chat has already shown a page of the same host. */
function mayOpen(input: unknown, shown: ReadonlySet<string>): boolean {
  const text = (input as { url?: unknown } | undefined)?.url;
  const url = typeof text === "string" ? openable(text) : undefined;
  return document.visibilityState === "visible" && url !== undefined && shown.has(url.host);
}

function hostsShown(messages: readonly UIMessage[]): ReadonlySet<string> {
  const parts = messages.flatMap((message) => message.parts).filter((part) => part.type === "tool-open_url");
  const urls = parts.flatMap((part) => ("state" in part && part.state === "output-available" ? [openable(String((part.input as { url?: unknown }).url))] : []));
  return new Set(urls.flatMap((url) => url?.host ?? []));
}

function titleOf(messages: readonly UIMessage[]): string {
  const text = messages[0]?.parts.find((part) => part.type === "text")?.text;
  return text ?? "";
}

/** Generates the last answer again; a message without an answer is sent again. */
function again({ messages, setMessages, regenerate }: Chat, say: (parts: UIMessage["parts"]) => Promise<void>): Promise<void> {
  const last = messages.at(-1);
  if (last?.role !== "user") {
    return regenerate();
  }
  setMessages(messages.slice(0, -1));
  return say(last.parts);
}
