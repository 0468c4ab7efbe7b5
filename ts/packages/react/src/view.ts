// What a card shows of a call: its kind, its state, its words. Pure, so that every state can be looked at.
import type { Call, Delivery, OpenCall, ThreadState } from "@farhand/client";

export const KINDS = [
  "confirm", "text", "select", "file", "photo", "location", "open_page", "clipboard", "color", "approval", "unknown",
] as const;

export type Kind = (typeof KINDS)[number];

/** The states of UX, each with only its own fields. */
export type CardState =
  | { readonly name: "writing" | "running" | "sending" | "elsewhere" }
  | { readonly name: "open" | "parked" | "no-client"; readonly deadline: number | undefined }
  | { readonly name: "undelivered"; readonly retryAt: number }
  | { readonly name: "refused"; readonly reason: string }
  | { readonly name: "done"; readonly words: string }
  | { readonly name: "failed"; readonly words: string }
  | { readonly name: "timed-out"; readonly afterSec: number | undefined }
  | { readonly name: "denied"; readonly reason: string };

export interface CardView {
  readonly call: Call;
  readonly kind: Kind;
  readonly state: CardState;
  readonly executor: string;
}

/** What only this page knows: which calls it saw open, and what its person said. */
export interface Memory {
  readonly seenOpen: ReadonlySet<string>;
  readonly reasons: ReadonlyMap<string, string>;
}

export function viewOf(state: ThreadState, call: Call, memory: Memory): CardView {
  const facts = state.facts.get(call.id);
  const kind = call.phase === "asking" ? "approval" : kindOf(facts?.card);
  const executor = facts?.executor ?? "frontend";
  return { call, kind, executor, state: stateOf(state, call, memory) };
}

export function isWaiting({ state }: CardView): boolean {
  return !["done", "failed", "elsewhere", "timed-out", "denied", "running", "writing"].includes(state.name);
}

function kindOf(card: string | null | undefined): Kind {
  return KINDS.find((kind) => kind === card) ?? "unknown";
}

function stateOf(state: ThreadState, call: Call, memory: Memory): CardState {
  if (call.phase === "writing") {
    return { name: "writing" };
  }
  const delivery = state.deliveries.get(call.phase === "asking" ? call.approvalId : call.id);
  if (call.phase === "settled") {
    return settledState(call, delivery, memory);
  }
  if (delivery !== undefined) {
    return onItsWay(delivery);
  }
  const fact = state.facts.get(call.id);
  if (state.running.has(call.id) || isElsewhere(call, fact)) {
    return { name: "running" };
  }
  // which card it is, the server has yet to say; an approval is one in any case
  return call.phase !== "asking" && fact === undefined ? { name: "writing" } : openState(state, fact);
}

/** On the server, or in a program that has begun with it; one that has not may be gone. */
function isElsewhere(call: Call, fact: OpenCall | undefined): boolean {
  return call.phase !== "asking" && (fact?.executor === "server" || (fact?.executor === "client" && fact.phase === "taken"));
}

function openState({ course }: ThreadState, fact: OpenCall | undefined): CardState {
  const deadline = fact?.deadline == null ? undefined : Date.parse(fact.deadline);
  const waitsForClient = fact?.executor === "client";
  return { name: waitsForClient ? "no-client" : course.state === "parked" ? "parked" : "open", deadline };
}

function onItsWay(delivery: Delivery): CardState {
  switch (delivery.state) {
    case "undelivered":
      return { name: "undelivered", retryAt: delivery.retryAt };
    case "refused":
      return { name: "refused", reason: delivery.reason };
    case "sending":
      return { name: "sending" };
    case "settled":
      return delivery.mine ? { name: "sending" } : lateState(delivery.reason);
  }
}

function lateState(reason: string): CardState {
  return reason === "expired" ? { name: "timed-out", afterSec: undefined } : { name: "elsewhere" };
}

// the server's sentence about a deadline that passed; the stream has no other word for it
const TIMED_OUT = /^Nobody answered (?:within ([\d.]+) s|in time)/;

function settledState(call: Extract<Call, { phase: "settled" }>, delivery: Delivery | undefined, memory: Memory): CardState {
  const { outcome } = call;
  switch (outcome.kind) {
    case "denied":
      return { name: "denied", reason: outcome.reason || memory.reasons.get(call.id) || "" };
    case "timed_out":
      return { name: "timed-out", afterSec: outcome.after_sec ?? undefined };
    case "failure": {
      const late = TIMED_OUT.exec(outcome.error);
      return late === null ? { name: "failed", words: outcome.error } : { name: "timed-out", afterSec: late[1] === undefined ? undefined : Number(late[1]) };
    }
    case "cancelled":
      return { name: "failed", words: outcome.reason };
    case "success": {
      const mine = delivery?.state === "settled" && delivery.mine;
      const isElsewhere = !mine && memory.seenOpen.has(call.id);
      return isElsewhere ? { name: "elsewhere" } : { name: "done", words: wordsOf(outcome.output) };
    }
  }
}

const LONGEST = 80;

/** What happened, in a few words. */
export function wordsOf(output: unknown): string {
  const words = plainWords(output);
  return words.length > LONGEST ? `${words.slice(0, LONGEST - 1)}…` : words;
}

function plainWords(output: unknown): string {
  if (output === true) {
    return "Done";
  }
  if (typeof output !== "object" || output === null) {
    return String(output);
  }
  const { place, lat, lon, name, hex, url } = output as Readonly<Record<string, unknown>>;
  const told = place ?? (lat == null ? undefined : `${String(lat)}, ${String(lon)}`) ?? name ?? hex ?? url;
  return told === undefined ? JSON.stringify(output) : String(told);
}

/** The question itself; tools name it differently. */
export function questionOf(call: Call): string {
  const input = call.phase === "writing" ? {} : (call.input as Readonly<Record<string, unknown>> | null) ?? {};
  const told = ["message", "question", "prompt", "title"].map((name) => input[name]);
  return told.find((each): each is string => typeof each === "string" && each !== "") ?? sentenceOf(call.tool);
}

/** `delete_file` as words: `Delete file`. */
export function sentenceOf(tool: string): string {
  const words = tool.replace(/[_-]+/g, " ").trim();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

export function timeLeft(deadline: number, now: number): string {
  const seconds = Math.max(0, Math.ceil((deadline - now) / 1_000));
  if (seconds < 3_600) {
    return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
  }
  const hours = Math.round(seconds / 3_600);
  return hours < 48 ? `${hours} hours` : `${Math.round(hours / 24)} days`;
}
