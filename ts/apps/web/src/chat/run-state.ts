// The state of a chat's run in one word, from the server's record and the cards on this page. Pure.
import type { Thread } from "@farhand/client";
import { type CardView, isWaiting } from "@farhand/react";
import { isQuestion } from "./question.ts";
import type { Words } from "./words.ts";

export type RunState = "New" | "Thinking" | "Running" | "Waiting for you" | "Parked" | "Done" | "Stopped" | "Failed";

/** The text for each state. */
export const STATE_WORDS = {
  Thinking: "stateThinking",
  Running: "stateRunning",
  "Waiting for you": "stateWaiting",
  Parked: "stateParked",
  Done: "stateDone",
  Stopped: "stateStopped",
  Failed: "stateFailed",
} as const satisfies Readonly<Record<Exclude<RunState, "New">, keyof Words>>;

const UNDER_WAY: ReadonlySet<RunState> = new Set(["Thinking", "Running", "Waiting for you", "Parked"]);

/** Whether the run will continue: the model, a tool or the person has to act. */
export function isUnderWay(state: RunState): boolean {
  return UNDER_WAY.has(state);
}

export interface Signs {
  /** A stream of this chat is open. */
  readonly isOpen: boolean;
  /** No message is shown. */
  readonly isEmpty: boolean;
  readonly cards: readonly CardView[];
  readonly hasError: boolean;
  /** The person pressed Stop on this page. */
  readonly wasStopped: boolean;
}

/** "Waiting for you" only if the person has to answer something: a run also waits for programs and for other tabs. */
export function stateOf(record: Thread | undefined, signs: Signs): RunState {
  if (isAsked(record, signs)) {
    return isParked(record, signs.isOpen) ? "Parked" : "Waiting for you";
  }
  const atWork = signs.cards.some(({ state }) => state.name === "running") ? "Running" : "Thinking";
  if (signs.isOpen) {
    return atWork;
  }
  if (signs.hasError) {
    return "Failed";
  }
  if (record === undefined && signs.wasStopped) {
    return "Stopped";
  }
  if (signs.isEmpty) {
    return "New";
  }
  return record?.state === "waiting" || record?.state === "running" ? atWork : (ENDED[record?.state ?? "done"] ?? "Done");
}

const ENDED: Readonly<Record<string, RunState>> = { stopped: "Stopped", failed: "Failed" };

/** Whether an answer is needed. An answer that is being sent is not needed any more; a question in the record may have no card yet. */
function isAsked(record: Thread | undefined, { isOpen, cards }: Signs): boolean {
  if (cards.some((view) => isWaiting(view) && view.state.name !== "sending")) {
    return true;
  }
  const shown = new Set(cards.map(({ call }) => call.id));
  return !isOpen && record?.state === "waiting" && record.openCalls.some((call) => !shown.has(call.callId) && isQuestion(call));
}

const SHORT_MS = 600_000;

/** Parked: no stream is open, and the first deadline is not near. A held call has only about a minute, so it does not count. */
export function isParked(record: Thread | undefined, isOpen: boolean): boolean {
  return !isOpen && record?.state === "waiting" && (firstDeadline(record) ?? Number.POSITIVE_INFINITY) - Date.now() > SHORT_MS;
}

export function firstDeadline({ openCalls }: Thread): number | undefined {
  const times = openCalls.flatMap(({ deadline }) => (deadline === null ? [] : [Date.parse(deadline)]));
  return times.length === 0 ? undefined : Math.min(...times);
}
