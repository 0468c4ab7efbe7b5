// What a rerun sends, and how it is worded. Pure.

/** A step of a run, or a call of it with its input as it is shown. */
export interface RerunPlace {
  readonly runId: string;
  readonly step: number;
  readonly call?: { readonly id: string; readonly tool: string; readonly input: unknown };
  /** The message that the run answers; of the first step it can be changed. */
  readonly prompt?: string | null | undefined;
}

/** Stands for a secret, which the page never had. */
const MASK = "••••••••";

export interface RerunBody {
  readonly step: number;
  readonly callId?: string;
  readonly input?: unknown;
  readonly text?: string;
  readonly repeat?: boolean;
}

export function shownOf({ call, step, prompt }: RerunPlace): string | undefined {
  if (call !== undefined) {
    return JSON.stringify(call.input, null, 2);
  }
  return step === 1 && typeof prompt === "string" ? prompt : undefined;
}

/** What is sent; what was not changed is left out, so that the server takes it as it is. A text says what is wrong. */
export function bodyOf(place: RerunPlace, typed: string | undefined, repeat: boolean): RerunBody | string {
  const { call, step } = place;
  const body: RerunBody = { step, ...(call === undefined ? {} : { callId: call.id }), ...(repeat ? { repeat } : {}) };
  if (typed === undefined || typed === shownOf(place)) {
    return body;
  }
  if (typed.includes(MASK)) {
    return "Part of it is masked. Write the value in its place, or leave everything as it is.";
  }
  if (call === undefined) {
    return typed.trim() === "" ? "Write a message." : { ...body, text: typed };
  }
  const input = readObject(typed);
  return input === undefined ? "This is not a JSON object." : { ...body, input };
}

function readObject(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

export function repeatWords(tools: readonly string[]): string {
  const [last, ...others] = tools.toReversed();
  const names = others.length === 0 ? last : `${others.toReversed().join(", ")} and ${last}`;
  return `${names} finished on the server. The new run may call ${tools.length === 1 ? "it" : "them"} again, with real effects.`;
}
