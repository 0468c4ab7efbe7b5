// How the Inspector formats figures, states and runs. Pure.
import type { InspectedRun, InspectedRunRow } from "@farhand/protocol";
import type { Tone } from "../chat/parts.tsx";

/** 84 ms, 1.30 s, 22.4 s, 3 min 5 s, 2 h 10 min, 3 d 4 h. */
export function durationOf(seconds: number): string {
  if (seconds < 0.9995) {
    return `${Math.round(seconds * 1000)} ms`;
  }
  if (seconds < 9.995) {
    return `${seconds.toFixed(2)} s`;
  }
  if (seconds < 99.95) {
    return `${seconds.toFixed(1)} s`;
  }
  return longOf(Math.round(seconds));
}

/** One digit after the decimal point, as in the header of a run. */
export function figureOf(milliseconds: number): string {
  return milliseconds < 99_950 ? `${(Math.round(milliseconds / 100) / 10).toFixed(1)} s` : longOf(Math.round(milliseconds / 1000));
}

/** Tenths of a second for each part, rounded so that they add up to the rounded whole. */
export function tenthsOf(whole: number, parts: readonly number[]): readonly number[] {
  const tenths = parts.map((part) => Math.floor(part / 100));
  let missing = Math.round(whole / 100) - tenths.reduce((sum, each) => sum + each, 0);
  const byRest = parts.map((part, index) => ({ index, rest: part % 100 })).toSorted((one, other) => other.rest - one.rest);
  for (const { index } of byRest) {
    if (missing <= 0) {
      break;
    }
    tenths[index]! += 1;
    missing -= 1;
  }
  return tenths.map((each) => each * 100);
}

/** Seconds and larger units: 5 min, 2 h 10 min. */
export function longOf(seconds: number): string {
  const units = [["d", 86_400], ["h", 3_600], ["min", 60], ["s", 1]] as const;
  const first = units.findIndex(([, size]) => seconds >= size);
  const [unit, size] = units[Math.max(first, 0)]!;
  const next = units[first + 1];
  const rest = next === undefined ? 0 : Math.floor((seconds % size) / next[1]);
  return `${Math.floor(seconds / size)} ${unit}${rest > 0 && next !== undefined ? ` ${rest} ${next[0]}` : ""}`;
}

export function agoOf(time: string, now: number): string {
  const seconds = Math.max(0, (now - Date.parse(time)) / 1000);
  if (seconds < 60) {
    return "now";
  }
  if (seconds < 3_600) {
    return `${Math.floor(seconds / 60)} min`;
  }
  return seconds < 86_400 ? `${Math.floor(seconds / 3_600)} h` : `${Math.floor(seconds / 86_400)} d`;
}

/** Tokens: 1,200 in, 80 out. */
export function tokensOf(taken: number, given: number): string {
  return `${taken.toLocaleString("en")} in, ${given.toLocaleString("en")} out`;
}

/** $0.0042, $1.30; for very small amounts, "less than". */
export function costOf(dollars: number): string {
  if (dollars > 0 && dollars < 0.0001) {
    return "< $0.0001";
  }
  return `$${dollars.toFixed(dollars >= 1 || dollars === 0 ? 2 : 4)}`;
}

/** Once, twice, 3 times. */
export function timesOf(number: number): string {
  return number === 1 ? "once" : number === 2 ? "twice" : `${number} times`;
}

/** Facts that only some runs have: token counts, pauses, lost connections, repeated answers. */
export function extrasOf({ usage, parks, reconnects = 0, repeats = 0 }: InspectedRun): readonly (readonly [string, string])[] {
  const counts: readonly (readonly [number, string, string])[] = [[reconnects, "reconnect", "reconnects"], [repeats, "repeat ignored", "repeats ignored"]];
  return [
    ...(usage == null ? [] : [[tokensOf(usage.inputTokens, usage.outputTokens), "tokens"] as const]),
    ...(usage?.cost == null ? [] : [[costOf(usage.cost), "cost"] as const]),
    ...(parks > 0 ? [[timesOf(parks), "paused"] as const] : []),
    ...counts.filter(([number]) => number > 0).map(([number, one, many]) => [String(number), number === 1 ? one : many] as const),
  ];
}

interface StateWords {
  readonly words: string;
  readonly tone: Tone;
  readonly hint?: string;
}

export const STATES: Readonly<Record<string, StateWords>> = {
  running: { words: "Running", tone: "blue" },
  waiting: { words: "Waiting for you", tone: "amber" },
  parked: { words: "Parked", tone: "amber", hint: "Saved while waiting. Nothing runs until the answer arrives." },
  done: { words: "Done", tone: "green" },
  stopped: { words: "Stopped", tone: "grey" },
  failed: { words: "Failed", tone: "red" },
};

export function stateOf(state: string): StateWords {
  return STATES[state] ?? { words: state, tone: "grey" };
}

/** The second line of a run in the list: what it waits for, what failed, or how much it did. */
export function noteOf(run: InspectedRunRow): string {
  if (run.state === "waiting") {
    return `${count(run.steps, "step")}, waiting for ${run.waiting === 0 ? "a program" : count(run.waiting, "answer")}`;
  }
  if (run.state === "parked") {
    return run.waiting === 0 ? "Parked, waiting for a program" : `Parked, ${count(run.waiting, "question")} in the inbox`;
  }
  if (run.state === "failed") {
    return run.error ?? "Failed";
  }
  if (run.trouble !== undefined && run.state === "done") {
    return troubleOf(run.trouble);
  }
  // the steps of an active run are counted when it pauses or ends
  const done = run.steps === 0 ? count(run.calls, "call") : `${count(run.steps, "step")}, ${count(run.calls, "call")}`;
  return run.state === "running" ? done : `${done}, ${durationOf(run.seconds)}`;
}

/** The end of `skipped by the user` and `declined by the user`: the person chose it, so nothing failed. */
const BY_CHOICE = " by the user";

/** Whether a call failed in a run that completed. */
export function hasFailure({ state, trouble }: InspectedRunRow): boolean {
  return state === "done" && trouble?.outcome === "failure" && !trouble.told.endsWith(BY_CHOICE);
}

function troubleOf({ tool, outcome, told }: { tool: string; outcome: string; told: string }): string {
  switch (outcome) {
    case "denied":
      return `${tool} was denied, ended cleanly`;
    case "timed_out":
      return `${tool} timed out`;
    case "cancelled":
      return `${tool} was cancelled`;
    default:
      return told.endsWith(BY_CHOICE) ? `${tool} was ${told.slice(0, -BY_CHOICE.length)}` : `${tool} failed: ${told}`;
  }
}

export function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

/** The colour of a run's state, in the list and in its header: red is for failed runs, not for failed calls. */
export function toneOf(run: InspectedRunRow): Tone {
  return run.state === "done" && run.trouble !== undefined ? "grey" : stateOf(run.state).tone;
}

export const OUTCOMES: Readonly<Record<string, { readonly words: string; readonly tone: Tone }>> = {
  success: { words: "Answered", tone: "green" },
  failure: { words: "Failed", tone: "red" },
  denied: { words: "Denied", tone: "grey" },
  timed_out: { words: "Timed out", tone: "grey" },
  cancelled: { words: "Cancelled", tone: "grey" },
};

export const PHASES: Readonly<Record<string, { readonly words: string; readonly tone: Tone }>> = {
  asking: { words: "Needs approval", tone: "amber" },
  ready: { words: "Waiting", tone: "amber" },
  taken: { words: "Running", tone: "blue" },
};
