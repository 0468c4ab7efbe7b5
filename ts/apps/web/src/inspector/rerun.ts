// The request of a rerun, and its texts. Pure.
import type { Input } from "@farhand/react";

/** A step of a run, or one of its calls with the input that is shown. */
export interface RerunPlace {
  readonly runId: string;
  readonly step: number;
  readonly call?: { readonly id: string; readonly tool: string; readonly input: unknown };
  /** The message that the run answers; it can be edited in the first step. */
  readonly prompt?: string | null | undefined;
}

/** Stands for a masked secret, which the page never received. */
const MASK = "••••••••";

export interface RerunBody {
  readonly step: number;
  readonly callId?: string;
  readonly input?: unknown;
  readonly text?: string;
  readonly repeat?: boolean;
}

/** The message, if it can be edited. */
export function messageOf({ call, step, prompt }: RerunPlace): string | undefined {
  return call === undefined && step === 1 && typeof prompt === "string" ? prompt : undefined;
}

/** The input of a call if it is an object; any other input cannot be edited. */
export function inputOf({ call }: RerunPlace): Input | undefined {
  const input = call?.input;
  return typeof input === "object" && input !== null && !Array.isArray(input) ? (input as Input) : undefined;
}

/** The edited message or input. */
export interface Changes {
  readonly text?: string | undefined;
  readonly input?: Input | undefined;
}

/** The body of the request, without unchanged values: the server uses its own. A string is an error. */
export function bodyOf(place: RerunPlace, { text, input }: Changes, repeat: boolean): RerunBody | string {
  const { call, step } = place;
  const body: RerunBody = { step, ...(call === undefined ? {} : { callId: call.id }), ...(repeat ? { repeat } : {}) };
  const isNewText = text !== undefined && text !== messageOf(place);
  const isNewInput = input !== undefined && JSON.stringify(input) !== JSON.stringify(call?.input);
  if (isNewInput && JSON.stringify(input).includes(MASK)) {
    return "Part of it is masked. Replace the mask with the value, or leave everything as it is.";
  }
  if (isNewText && text.trim() === "") {
    return "Write a message.";
  }
  return { ...body, ...(isNewText ? { text } : {}), ...(isNewInput ? { input } : {}) };
}

export function repeatWords(tools: readonly string[]): string {
  const [last, ...others] = tools.toReversed();
  const names = others.length === 0 ? last : `${others.toReversed().join(", ")} and ${last}`;
  return `${names} ran on the server. The new run may call ${tools.length === 1 ? "it" : "them"} again, with real effects.`;
}
