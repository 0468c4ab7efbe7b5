// Texts about calls for people: what is asked, and how it ended. Pure.
import { openable } from "@farhand/client";
import type { CardView, Kind, Refusal } from "./view.ts";
import { type Words, WORDS } from "./words.ts";

type Fields = Readonly<Record<string, unknown>>;

/** The known facts about a call. */
type Of = Pick<CardView, "call" | "tool" | "title" | "runsWith"> & { readonly kind?: Kind };

/** The question: from the input, otherwise the tool's title, otherwise the card's own. */
export function questionOf(view: Of, words: Words = WORDS): string {
  const input = inputOf(view);
  const told = ["message", "question", "prompt", "title"].map((name) => input[name]);
  const named = view.title ?? view.tool?.title;
  return told.find((each): each is string => typeof each === "string" && each !== "") ?? (named || kindTitle(view.kind, input, words) || toolTitle(view));
}

function kindTitle(kind: Kind | undefined, { url, text, subject }: Fields, words: Words): string | undefined {
  switch (kind) {
    case "open_page": {
      const page = openable(String(url));
      return page === undefined ? undefined : words.openTitle(page.host);
    }
    case "location":
      return words.shareTitle;
    case "clipboard":
      return words.copyTitle(String(text).split("\n").length);
    case "photo":
      return words.photoTitle(typeof subject === "string" ? subject : "");
    default:
      return undefined;
  }
}

/** The tool's title, otherwise its name as words. */
export function toolTitle({ call, tool, title }: Of): string {
  return title ?? (tool?.title || sentenceOf(call.tool));
}

/** The title of a card. For an approval it names the tool, never a sentence from the input, which the model wrote. */
export function titleOf(view: Of, words: Words = WORDS): string {
  return view.call.phase === "asking" ? words.approvalTitle(toolTitle(view)) : questionOf(view, words);
}

/** The announcement for screen readers when a card appears. */
export function announcementOf(view: Of, words: Words = WORDS): string {
  const title = titleOf(view, words).replace(/[.?!]?$/, (end) => end || ".");
  return view.call.phase === "asking" ? words.announceApproval(title, words.parameters(Object.keys(view.runsWith?.input ?? view.call.input).length)) : title;
}

/** The reason of a refusal. For an expired sign-in, the server's own text is meant for programs. */
export function refusalWords({ status, reason }: Refusal, words: Words): string {
  return status === 401 ? words.signedOut : status === 0 ? `${words.notDelivered}.` : reason;
}

/** The code that the card explains; an expired sign-in has a banner of its own. */
export function refusalCode({ status, code }: Refusal): string | undefined {
  return status === 401 ? undefined : code;
}

/** The members of the input; none while the model is still writing it. */
export function inputOf({ call }: Pick<CardView, "call">): Fields {
  return call.phase === "writing" ? {} : fieldsOf(call.input);
}

/** The title of a finished call in the list of rows. */
export function doneTitle(view: Of & { readonly kind: Kind }, words: Words = WORDS): string {
  const { kind } = view;
  const titles: Partial<Record<Kind, string>> = { location: words.doneLocation, photo: words.donePhoto, open_page: words.donePage, clipboard: words.doneClipboard };
  return view.title ?? titles[kind] ?? questionOf(view, words);
}

/** A tool's name as words: `delete_file` becomes `Delete file`. */
export function sentenceOf(tool: string): string {
  const words = tool.replace(/[_-]+/g, " ").trim();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

const LONGEST = 80;

/** How the call ended, in a few words. */
export function doneWords(kind: Kind, input: unknown, output: unknown, words: Words = WORDS): string {
  return short(wordsByKind(kind, fieldsOf(input), output, words) ?? plainWords(output, words));
}

export function sizeOf(bytes: number): string {
  if (bytes < 1_000) {
    return `${bytes} bytes`;
  }
  return bytes < 1_000_000 ? `${Math.round(bytes / 1_000)} KB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}

/** A size limit, rounded down so that it is never larger than the real one: `10 MB` for 10 MiB. */
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

export function timeLeft(deadline: number, now: number, words: Words = WORDS): string {
  const seconds = Math.max(0, Math.ceil((deadline - now) / 1_000));
  return seconds < 3_600 ? `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}` : longTime(seconds, words);
}

/** `60 s`, `2 min`, `1 hour`, `5 hours`, `3 days`. */
export function longTime(seconds: number, words: Words = WORDS): string {
  if (seconds < 120) {
    return `${Math.floor(seconds)} s`;
  }
  if (seconds < 3_600) {
    return `${Math.floor(seconds / 60)} min`;
  }
  const hours = Math.round(seconds / 3_600);
  return hours < 48 ? words.hours(hours) : words.days(Math.round(hours / 24));
}

export function lateWords(afterSec: number | undefined, words: Words): string {
  return words.timedOutAfter(afterSec === undefined ? undefined : longTime(afterSec, words));
}

/** The fraction in a progress text (`40 %`, `3 of 12`, `3/12`); undefined if there is none. */
export function shareIn(text: string): number | undefined {
  const percent = /(\d+(?:\.\d+)?)\s*%/.exec(text)?.[1];
  if (percent !== undefined) {
    return Math.min(1, Number(percent) / 100);
  }
  const [, part, whole] = /\b(\d+)\s*(?:of|\/)\s*(\d+)\b/.exec(text) ?? [];
  return part === undefined || Number(whole) === 0 ? undefined : Math.min(1, Number(part) / Number(whole));
}

function wordsByKind(kind: Kind, input: Fields, output: unknown, words: Words): string | undefined {
  const { place, accuracy, name, size, url } = fieldsOf(output);
  switch (kind) {
    case "location":
      return typeof place === "string" ? place : typeof accuracy === "number" ? words.sharedOnce(accuracy) : undefined;
    case "photo":
    case "file":
      return typeof name === "string" && typeof size === "number" ? `${name}, ${sizeOf(size)}` : undefined;
    case "open_page":
      return typeof url === "string" ? url.replace(/^https?:\/\//, "").replace(/\/$/, "") : undefined;
    case "clipboard":
      return output === true && typeof input["text"] === "string" ? input["text"].split("\n", 1)[0] : undefined;
    case "confirm":
      return output === "yes" || output === true ? words.yes : output === "no" || output === false ? words.no : undefined;
    case "form":
      return formDone(output, words);
    default:
      return undefined;
  }
}

/** The content of a form, or the values of a tool's output. */
function formDone(output: unknown, words: Words): string | undefined {
  const { action, content } = fieldsOf(output);
  if (action === "accept") {
    return Object.values(fieldsOf(content)).map((value) => valueWords(value, words)).join(", ") || words.done;
  }
  if (action === "decline" || action === "cancel") {
    return action === "decline" ? words.declined : words.closed;
  }
  const values = Object.values(fieldsOf(output));
  return values.length > 0 && values.every((value) => typeof value !== "object" || Array.isArray(value)) ? values.map((value) => valueWords(value, words)).join(", ") : undefined;
}

function valueWords(value: unknown, words: Words): string {
  return typeof value === "boolean" ? (value ? words.yes : words.no) : Array.isArray(value) ? value.join(", ") : String(value);
}

function plainWords(output: unknown, words: Words): string {
  if (output === true || output === null) {
    return words.done;
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
