// What a card shows of a call: its kind, its state, its words. Pure, so that every state can be looked at.
import type { Call, Delivery, OpenCall, ThreadState } from "@farhand/client";
import type { ToolFacts } from "./guess.ts";

export const KINDS = [
  "confirm", "text", "select", "file", "photo", "location", "open_page", "clipboard", "color", "form", "approval", "unknown",
] as const;

export type Kind = (typeof KINDS)[number];

/** Why an answer was not taken. Status 401 is a sign-in that is over; with 0 this page did not send it any more. */
export type Refusal = Pick<Extract<Delivery, { state: "refused" }>, "status" | "reason">;

/** The states of UX, each with only its own fields. */
export type CardState =
  | { readonly name: "writing" | "running" | "sending" | "elsewhere" | "done" }
  | { readonly name: "open" | "parked"; readonly deadline: number | undefined; /** Why an answer that was given has to be given again. */ readonly refusal?: Refusal }
  | { readonly name: "no-client"; readonly client: string; readonly since: number }
  | { readonly name: "undelivered"; readonly retryAt: number }
  | { readonly name: "refused"; readonly refusal: Refusal }
  /** Cancelled: somebody stopped it, and nothing broke. Without words the server does not know the call. */
  | { readonly name: "failed"; readonly words: string; readonly isCancelled?: boolean }
  /** A choice of the person, and no error: Skip, or No to what a browser would have done. */
  | { readonly name: "skipped" | "declined" }
  | { readonly name: "timed-out"; readonly afterSec: number | undefined }
  | { readonly name: "denied"; readonly reason: string };

export interface CardView {
  readonly call: Call;
  readonly kind: Kind;
  readonly state: CardState;
  readonly executor: string;
  /** The card that the tool names, if it does; one that is no `Kind` is the page's own. */
  readonly card?: string | undefined;
  /** Its tool, once the server has told of it. */
  readonly tool?: ToolFacts | undefined;
  /** What it runs with once it is allowed, if the model left something out. */
  readonly runsWith?: OpenCall["runsWith"] | undefined;
  /** What the server calls this very call, and its outcome in a few words. */
  readonly title?: string | undefined;
  readonly summary?: string | undefined;
  /** The person changed its input before allowing it, or had allowed its tool for the whole chat. */
  readonly isEdited?: boolean | undefined;
  readonly isAlwaysAllowed?: boolean | undefined;
  /** Who answered it or decided on it, if that was somebody else and the server knows the name. */
  readonly answeredBy?: string | undefined;
  /** How far it is while it runs, in its own words. */
  readonly progress?: string | undefined;
  /** How long it took, once it is over and if the server told. */
  readonly tookMs?: number | undefined;
}

/** What a page knows beside the call itself. */
export interface Known extends Pick<ThreadState, "facts" | "running" | "deliveries" | "run"> {
  /** Every tool that the server has; cards ask for them by themselves if they are not here. */
  readonly tools?: ReadonlyMap<string, ToolFacts>;
  /** What the server keeps of calls that are over. */
  readonly ends?: ReadonlyMap<string, Ended>;
}

/** An outcome by its own name: the stream has one word for several of them. */
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

/** What only this page knows: which calls it saw open, and what its person said to approvals. */
export interface Memory {
  readonly seenOpen: ReadonlySet<string>;
  readonly reasons: ReadonlyMap<string, string>;
  readonly edited?: ReadonlySet<string>;
}

/** Tools of the server itself, which its list of tools does not name. */
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
    // nothing that somebody would allow again stands behind a button without being shown
    return openState(known, call, { fact, now, refusal: delivery });
  }
  if (delivery !== undefined) {
    return onItsWay(delivery);
  }
  if (known.running.has(call.id) || isElsewhere(call, fact)) {
    return { name: "running" };
  }
  // which card it is, the server has yet to say; and with what else an approval would let it run
  return fact === undefined ? { name: "writing" } : openState(known, call, { fact, now });
}

/** On the server, or in a program or another tab that has begun with it; one that has not may be gone. */
function isElsewhere(call: Call, fact: OpenCall | undefined): boolean {
  return call.phase !== "asking" && (fact?.executor === "server" || fact?.phase === "taken");
}

/** A program that is there takes what it is asked for within this time. */
const TAKEN_WITHIN_MS = 2_000;

/** Whether a program was asked that has not begun yet: whether it is there, only time tells. */
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

/** The stream may be faster than the receipt: an answer that is still on its way may be the one that was taken. */
function mayBeMine(delivery: Delivery | undefined): boolean {
  return delivery?.state === "settled" ? delivery.mine : delivery?.state === "sending" || delivery?.state === "undelivered";
}

// what the stream says of a call that was stopped or whose deadline passed, until the record says it by name
const CANCELLED = /^Cancelled: /;
const TIMED_OUT = /^Nobody answered (?:within ([\d.]+) s|in time)/;

/** What this page and others send when somebody presses Skip or No. */
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
