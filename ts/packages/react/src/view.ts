// What a card shows of a call: its kind, its state, its texts. Pure, so that every state can be shown in the gallery.
import type { Call, Delivery, OpenCall, ThreadState } from "@farhand/client";
import type { ToolFacts } from "./guess.ts";

export const KINDS = [
  "confirm", "text", "select", "file", "photo", "location", "open_page", "clipboard", "color", "form", "approval", "unknown",
] as const;

export type Kind = (typeof KINDS)[number];

/** Why an answer was refused. Status 401 is an expired sign-in; with 0, this page stopped sending it. */
export type Refusal = Pick<Extract<Delivery, { state: "refused" }>, "status" | "reason" | "code">;

/** Not signed in, a timeout, or too many requests: the same answer may be accepted later. Any other refusal concerns its content. */
export function mendsItself({ status }: Pick<Refusal, "status">): boolean {
  return [401, 408, 429].includes(status);
}

/** The states of a card, each with only its own fields. */
export type CardState =
  | { readonly name: "writing" | "running" | "sending" | "elsewhere" | "done" }
  | { readonly name: "open" | "parked"; readonly deadline: number | undefined; /** Why an earlier answer was refused, if the card asks
                                                                                  again. */ readonly refusal?: Refusal }
  | { readonly name: "no-client"; readonly client: string; readonly since: number }
  | { readonly name: "undelivered"; readonly retryAt: number }
  | { readonly name: "refused"; readonly refusal: Refusal }
  /** `isCancelled`: somebody stopped it, so it did not fail. Without a reason, the server does not know the call. */
  | { readonly name: "failed"; readonly words: string; readonly isCancelled?: boolean }
  /** A choice of the person, not an error: Skip, or No to a permission of the browser. */
  | { readonly name: "skipped" | "declined" }
  | { readonly name: "timed-out"; readonly afterSec: number | undefined }
  | { readonly name: "denied"; readonly reason: string };

export interface CardView {
  readonly call: Call;
  readonly kind: Kind;
  readonly state: CardState;
  readonly executor: string;
  /** The card that the tool names, if any; one that is not a `Kind` is a custom card. */
  readonly card?: string | undefined;
  /** Its tool, once it is loaded. */
  readonly tool?: ToolFacts | undefined;
  /** The input that runs once it is approved, if the model left something out. */
  readonly runsWith?: OpenCall["runsWith"] | undefined;
  /** The title of this call, and a short summary of its outcome, both made by the server. */
  readonly title?: string | undefined;
  readonly summary?: string | undefined;
  /** The person edited its input before approving it, or had allowed its tool for the whole chat. */
  readonly isEdited?: boolean | undefined;
  readonly isAlwaysAllowed?: boolean | undefined;
  /** Who answered it or decided on it, if that was somebody else whose name the server knows. */
  readonly answeredBy?: string | undefined;
  /** The progress text of a running call. */
  readonly progress?: string | undefined;
  /** How long it took, once it has ended and if the server says so. */
  readonly tookMs?: number | undefined;
}

/** What a page knows about calls in addition to the calls themselves. */
export interface Known extends Pick<ThreadState, "facts" | "running" | "deliveries" | "run"> {
  /** All tools of the server; cards load them if they are missing here. */
  readonly tools?: ReadonlyMap<string, ToolFacts>;
  /** What the server stores about finished calls. */
  readonly ends?: ReadonlyMap<string, Ended>;
}

/** The kind of an outcome, which the stream does not distinguish, and other facts about a finished call. */
export interface Ended {
  readonly outcome?: string | undefined;
  readonly afterSec?: number | undefined;
  readonly tookMs?: number | undefined;
  readonly reason?: string | undefined;
  readonly title?: string | undefined;
  readonly summary?: string | undefined;
  readonly isEdited?: boolean | undefined;
  readonly isAlwaysAllowed?: boolean | undefined;
  readonly answeredBy?: string | undefined;
}

/** What only this page knows: which calls it has seen open, and the person's decisions on approvals. */
export interface Memory {
  readonly seenOpen: ReadonlySet<string>;
  readonly reasons: ReadonlyMap<string, string>;
  readonly edited?: ReadonlySet<string>;
}

/** Tools of the server itself, which are not in its list. */
const BUILT_IN: Readonly<Record<string, Kind>> = { answer_form: "form" };

export function viewOf(known: Known, call: Call, memory: Memory, now: number = Date.now()): CardView {
  const fact = known.facts.get(call.id);
  const tool = known.tools?.get(call.tool);
  const ended = known.ends?.get(call.id);
  const card = fact?.card ?? tool?.card ?? BUILT_IN[call.tool];
  const kind = call.phase === "asking" ? "approval" : kindOf(card);
  const executor = fact?.executor ?? tool?.executor ?? "frontend";
  const view: CardView = {
    call, kind, executor, card, state: stateOf(known, call, { memory, now }), tookMs: ended?.tookMs, title: ended?.title ?? fact?.callTitle, summary: ended?.summary,
    isEdited: ended?.isEdited ?? memory.edited?.has(call.id), isAlwaysAllowed: ended?.isAlwaysAllowed, answeredBy: ended?.answeredBy, runsWith: call.phase === "asking" ? fact?.runsWith : undefined,
  };
  return tool === undefined ? view : { ...view, tool };
}

const OVER: ReadonlySet<CardState["name"]> = new Set(["done", "failed", "skipped", "declined", "elsewhere", "timed-out", "denied", "running", "writing"]);

export function isWaiting({ state }: CardView): boolean {
  return !OVER.has(state.name);
}

export function kindOf(card: string | null | undefined): Kind {
  return KINDS.find((kind) => kind === card) ?? "unknown";
}

function stateOf(known: Known, call: Call, { memory, now }: { memory: Memory; now: number }): CardState {
  if (call.phase === "writing") {
    return { name: "writing" };
  }
  const delivery = known.deliveries.get(call.phase === "asking" ? call.approvalId : call.id);
  if (call.phase === "settled") {
    return settledState(call, { delivery, memory, ended: known.ends?.get(call.id) });
  }
  const fact = known.facts.get(call.id);
  if (call.phase === "asking" && delivery?.state === "refused") {
    // an approval that was refused is shown again as a card, so that nothing is allowed again without being seen
    return openState(known, call, { fact, now, refusal: delivery });
  }
  if (delivery !== undefined) {
    return onItsWay(delivery);
  }
  if (known.running.has(call.id) || isElsewhere(call, fact)) {
    return { name: "running" };
  }
  // the server has not said yet which card it is, nor which defaults an approval would add
  return fact === undefined ? { name: "writing" } : openState(known, call, { fact, now });
}

/** Whether it runs on the server, or was taken by a program or another tab. One that is not taken may be gone. */
function isElsewhere(call: Call, fact: OpenCall | undefined): boolean {
  return call.phase !== "asking" && (fact?.executor === "server" || fact?.phase === "taken");
}

/** A connected program takes its calls within this time. */
const TAKEN_WITHIN_MS = 2_000;

/** Whether a program was asked and has not taken its call yet: only time tells whether it is connected. */
export function isAskedElsewhere(facts: Known["facts"]): boolean {
  return [...facts.values()].some(({ executor, phase }) => executor === "client" && phase === "ready");
}

interface Open {
  readonly fact: OpenCall | undefined;
  readonly now: number;
  readonly refusal?: Refusal;
}

function openState({ run }: Known, call: Call, { fact, now, refusal }: Open): CardState {
  if (fact?.executor === "client" && call.phase !== "asking") {
    const since = Date.parse(fact.openedAt);
    return Math.abs(now - since) < TAKEN_WITHIN_MS ? { name: "running" } : { name: "no-client", client: fact.clientId ?? call.tool, since };
  }
  const deadline = fact?.deadline == null ? undefined : Date.parse(fact.deadline);
  return { name: run.state === "parked" ? "parked" : "open", deadline, ...(refusal === undefined ? {} : { refusal }) };
}

function onItsWay(delivery: Delivery): CardState {
  switch (delivery.state) {
    case "undelivered":
      return { name: "undelivered", retryAt: delivery.retryAt };
    case "refused":
      return { name: "refused", refusal: delivery };
    case "sending":
      return { name: "sending" };
    case "settled":
      return delivery.mine ? { name: "sending" } : lateState(delivery.reason);
  }
}

function lateState(reason: string): CardState {
  switch (reason) {
    case "expired":
      return { name: "timed-out", afterSec: undefined };
    case "unknown":
      return { name: "failed", words: "", isCancelled: true };
    default:
      return { name: "elsewhere" };
  }
}

interface Past {
  readonly delivery: Delivery | undefined;
  readonly memory: Memory;
  readonly ended: Ended | undefined;
}

function settledState(call: Extract<Call, { phase: "settled" }>, { delivery, memory, ended }: Past): CardState {
  const { outcome } = call;
  switch (outcome.kind) {
    case "denied":
      return { name: "denied", reason: outcome.reason || ended?.reason || memory.reasons.get(call.id) || "" };
    case "timed_out":
      return { name: "timed-out", afterSec: outcome.after_sec ?? undefined };
    case "failure":
      return failedState(outcome.error, ended);
    case "cancelled":
      return { name: "failed", words: outcome.reason, isCancelled: true };
    case "success": {
      const isElsewhere = memory.seenOpen.has(call.id) && !mayBeMine(delivery);
      return isElsewhere ? { name: "elsewhere" } : { name: "done" };
    }
  }
}

/** Whether the accepted answer may be this page's own: the stream may be faster than the receipt. */
function mayBeMine(delivery: Delivery | undefined): boolean {
  return delivery?.state === "settled" ? delivery.mine : delivery?.state === "sending" || delivery?.state === "undelivered";
}

// the stream's texts for a call that was stopped or timed out, until the record has its outcome
const CANCELLED = /^Cancelled: /;
const TIMED_OUT = /^Nobody answered (?:within ([\d.]+) s|in time)/;

/** What this page and others send for Skip and No. */
const CHOICES: ReadonlyMap<string, "skipped" | "declined"> = new Map([["skipped by the user", "skipped"], ["declined by the user", "declined"]]);

function failedState(error: string, ended: Ended | undefined): CardState {
  if (ended?.outcome === "timed_out") {
    return { name: "timed-out", afterSec: ended.afterSec };
  }
  if (ended === undefined ? CANCELLED.test(error) : ended.outcome === "cancelled") {
    return { name: "failed", words: error, isCancelled: true };
  }
  const choice = CHOICES.get(error);
  if (choice !== undefined) {
    return { name: choice };
  }
  const late = ended === undefined ? TIMED_OUT.exec(error) : null;
  return late === null ? { name: "failed", words: error } : { name: "timed-out", afterSec: late[1] === undefined ? undefined : Number(late[1]) };
}
