// What a rerun sends, and how it is worded. Pure.
import type { Input } from "@farhand/react";

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

/** The message, where it can be changed. */
export function messageOf({ call, step, prompt }: RerunPlace): string | undefined {
  return call === undefined && step === 1 && typeof prompt === "string" ? prompt : undefined;
}

/** The input of a call by its fields; whatever else it is cannot be changed. */
export function inputOf({ call }: RerunPlace): Input | undefined {
  const input = call?.input;
  return typeof input === "object" && input !== null && !Array.isArray(input) ? (input as Input) : undefined;
}

/** What somebody made of the message, or of the input. */
export interface Changes {
  readonly text?: string | undefined;
  readonly input?: Input | undefined;
}

/** What is sent; what was not changed is left out, so that the server takes it as it is. A text says what is wrong. */
export function bodyOf(place: RerunPlace, { text, input }: Changes, repeat: boolean): RerunBody | string {
  const { call, step } = place;
  const body: RerunBody = { step, ...(call === undefined ? {} : { callId: call.id }), ...(repeat ? { repeat } : {}) };
  const isNewText = text !== undefined && text !== messageOf(place);
  const isNewInput = input !== undefined && JSON.stringify(input) !== JSON.stringify(call?.input);
  if (isNewInput && JSON.stringify(input).includes(MASK)) {
    return "Part of it is masked. Write the value in its place, or leave everything as it is.";
  }
  if (isNewText && text.trim() === "") {
    return "Write a message.";
  }
  return { ...body, ...(isNewText ? { text } : {}), ...(isNewInput ? { input } : {}) };
}

export function repeatWords(tools: readonly string[]): string {
  const [last, ...others] = tools.toReversed();
  const names = others.length === 0 ? last : `${others.toReversed().join(", ")} and ${last}`;
  return `${names} finished on the server. The new run may call ${tools.length === 1 ? "it" : "them"} again, with real effects.`;
}
