// Decides when an AI SDK chat posts automatically. Knows the parts of a message, and no transport.

/** The fields of an AI SDK message that are used here; messages of `ai` 6 and 7 match as they are. */
export interface AnswerableMessage {
  readonly role: string;
  readonly parts: readonly AnswerablePart[];
}

export interface AnswerablePart {
  readonly type: string;
  readonly toolName?: string;
  readonly state?: string;
  readonly preliminary?: boolean | undefined;
  readonly approval?: { readonly approved?: boolean | undefined } | undefined;
}

export interface AnsweredOptions {
  /** The names of the tools that run in this page. */
  readonly frontendTools: readonly string[];
}

/**
 * A `sendAutomaticallyWhen` for chats in which a tool of the page needs a person's approval. Returns true once every call of the last
 * step is answered: an approval by a decision, a tool of the page by its output. After an approval it waits for the output of that tool,
 * so that both are sent in one request; the helpers of AI SDK send the approval alone, and the page has to be told to run the tool.
 */
export function sendWhenAnswered({
  frontendTools,
}: AnsweredOptions): (options: { messages: readonly AnswerableMessage[] }) => boolean {
  const here = new Set(frontendTools);
  return ({ messages }) => {
    const calls = callsOfLastStep(messages.at(-1));
    return calls.some((call) => answeredHere(call, here)) && calls.every((call) => answered(call, here));
  };
}

function callsOfLastStep(message: AnswerableMessage | undefined): readonly AnswerablePart[] {
  if (message?.role !== "assistant") {
    return [];
  }
  const start = message.parts.findLastIndex((part) => part.type === "step-start");
  return message.parts.slice(start + 1).filter((part) => toolOf(part) !== undefined);
}

/** Whether the answer to this call is one that only this page can have given: without one there is nothing to send. */
function answeredHere(call: AnswerablePart, here: ReadonlySet<string>): boolean {
  return call.state === "approval-responded" || (finished(call) && here.has(toolOf(call) ?? ""));
}

function answered(call: AnswerablePart, here: ReadonlySet<string>): boolean {
  if (call.state !== "approval-responded") {
    return finished(call) || call.state === "output-denied";
  }
  const willRunHere = call.approval?.approved === true && here.has(toolOf(call) ?? "");
  return !willRunHere;
}

function finished(call: AnswerablePart): boolean {
  return call.state === "output-error" || (call.state === "output-available" && call.preliminary !== true);
}

function toolOf(part: AnswerablePart): string | undefined {
  if (part.type === "dynamic-tool") {
    return part.toolName;
  }
  return part.type.startsWith("tool-") ? part.type.slice("tool-".length) : undefined;
}
