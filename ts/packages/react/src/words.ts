// Calls in the words of a person: what is asked, and what came of it. Pure.
import type { Call } from "@farhand/client";
import type { Kind } from "./view.ts";

type Fields = Readonly<Record<string, unknown>>;

/** The question itself; tools name it differently. */
export function questionOf(call: Call): string {
  const input = call.phase === "writing" ? {} : fieldsOf(call.input);
  const told = ["message", "question", "prompt", "title"].map((name) => input[name]);
  return told.find((each): each is string => typeof each === "string" && each !== "") ?? sentenceOf(call.tool);
}

/** What a card asks. Of an approval it is the tool, never the words of the input: the model wrote those. */
export function titleOf(call: Call): string {
  return call.phase === "asking" ? `${sentenceOf(call.tool)}?` : questionOf(call);
}

/** What a screen reader says of a card that has come. */
export function announcementOf({ call }: { readonly call: Call }): string {
  const title = titleOf(call).replace(/[.?!]?$/, (end) => end || ".");
  return call.phase === "asking" ? `Approval needed: ${title} ${count(Object.keys(call.input).length)}.` : title;
}

function count(parameters: number): string {
  return parameters === 0 ? "No parameters" : parameters === 1 ? "1 parameter" : `${parameters} parameters`;
}

const TITLES: Partial<Record<Kind, string>> = {
  location: "Location",
  photo: "Photo",
  open_page: "Page opened",
  clipboard: "Copied to the clipboard",
};

/** What a call that is over is called in the list of finished ones. */
export function doneTitle(call: Call, kind: Kind): string {
  return TITLES[kind] ?? questionOf(call);
}

/** `delete_file` as words: `Delete file`. */
export function sentenceOf(tool: string): string {
  const words = tool.replace(/[_-]+/g, " ").trim();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

const LONGEST = 80;

/** What happened, in a few words. */
export function doneWords(kind: Kind, input: unknown, output: unknown): string {
  return short(wordsByKind(kind, fieldsOf(input), output) ?? plainWords(output));
}

/** An output of which nothing is known but its shape. */
export function wordsOf(output: unknown): string {
  return short(plainWords(output));
}

export function sizeOf(bytes: number): string {
  if (bytes < 1_000) {
    return `${bytes} bytes`;
  }
  return bytes < 1_000_000 ? `${Math.round(bytes / 1_000)} KB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}

/** A limit in round words, and never more than it is: `10 MB` for 10 MiB. */
export function limitWords(bytes: number): string {
  const unit = bytes < 1_048_576 ? { bytes: 1_024, name: "KB" } : { bytes: 1_048_576, name: "MB" };
  return bytes < 1_024 ? `${bytes} bytes` : `${Math.floor((bytes / unit.bytes) * 10) / 10} ${unit.name}`;
}

/** `84 ms`, `2.1 s`, `3 min`. */
export function durationOf(ms: number): string {
  if (ms < 1_000) {
    return `${ms} ms`;
  }
  return ms < 60_000 ? `${(ms / 1_000).toFixed(1)} s` : `${Math.round(ms / 60_000)} min`;
}

function wordsByKind(kind: Kind, input: Fields, output: unknown): string | undefined {
  const { place, accuracy, name, size, url } = fieldsOf(output);
  switch (kind) {
    case "location":
      return typeof place === "string" ? place : typeof accuracy === "number" ? `Shared once, within ${accuracy} m` : undefined;
    case "photo":
    case "file":
      return typeof name === "string" && typeof size === "number" ? `${name}, ${sizeOf(size)}` : undefined;
    case "open_page":
      return typeof url === "string" ? url.replace(/^https?:\/\//, "").replace(/\/$/, "") : undefined;
    case "clipboard":
      return output === true && typeof input["text"] === "string" ? input["text"].split("\n", 1)[0] : undefined;
    case "confirm":
      return output === "yes" ? "Yes" : output === "no" ? "No" : undefined;
    case "form":
      return formDone(output);
    default:
      return undefined;
  }
}

/** What a form says: its buttons and lines. */
export const FORM_WORDS = {
  context: "Fill in the form",
  send: "Send",
  decline: "Decline",
  close: "Close",
  optional: "(optional)",
  choose: "Choose one",
  none: "No answer",
  pageContext: "On another site, in a new tab",
  notOpenable: "Only http and https pages open",
  openPage: "Open page",
  done: "Done",
  typed: "Not sent:",
} as const;

/** What is wrong with a field, as what to do about it. */
export const FIELD_WORDS = {
  empty: "Fill in this field.",
  choose: "Choose one.",
  number: "Enter a number, such as 2.5.",
  integer: "Enter a whole number.",
  tooLarge: "This number is too large.",
  email: "Enter an email address, such as name@example.com.",
  uri: "Enter a full address, such as https://example.com.",
  date: "Enter a date.",
  dateTime: "Enter a date and a time.",
  pattern: "This does not have the expected format.",
  minimum: (limit: number): string => `Enter ${limit} or more.`,
  maximum: (limit: number): string => `Enter ${limit} or less.`,
  exclusiveMinimum: (limit: number): string => `Enter more than ${limit}.`,
  exclusiveMaximum: (limit: number): string => `Enter less than ${limit}.`,
  short: (limit: number): string => `Enter at least ${plural(limit, "character")}.`,
  long: (limit: number, length: number): string => `Enter at most ${plural(limit, "character")}; this has ${length}.`,
  fewChoices: (limit: number): string => `Choose at least ${limit}.`,
  manyChoices: (limit: number): string => `Choose at most ${limit}.`,
} as const;

function plural(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

function formDone(output: unknown): string | undefined {
  const { action, content } = fieldsOf(output);
  if (action === "accept") {
    return Object.values(fieldsOf(content)).map(valueWords).join(", ") || "Done";
  }
  return action === "decline" ? "Declined" : action === "cancel" ? "Closed" : undefined;
}

function valueWords(value: unknown): string {
  return typeof value === "boolean" ? (value ? "Yes" : "No") : Array.isArray(value) ? value.join(", ") : String(value);
}

function plainWords(output: unknown): string {
  if (output === true) {
    return "Done";
  }
  if (typeof output !== "object" || output === null) {
    return String(output);
  }
  const { place, lat, lon, name, hex, url } = output as Fields;
  const told = place ?? (lat == null ? undefined : `${String(lat)}, ${String(lon)}`) ?? name ?? hex ?? url;
  const values = Object.values(output);
  const only = values.length === 1 && ["string", "number"].includes(typeof values[0]) ? values[0] : undefined;
  return told === undefined && only === undefined ? JSON.stringify(output) : String(told ?? only);
}

function short(words: string): string {
  return words.length > LONGEST ? `${words.slice(0, LONGEST - 1)}…` : words;
}

function fieldsOf(value: unknown): Fields {
  return typeof value === "object" && value !== null ? (value as Fields) : {};
}
