// A message of any version of the AI SDK, and what a person sees of it.

export interface Message {
  readonly id: string;
  readonly role: string;
  readonly parts: readonly Part[];
}

export interface Part {
  readonly type: string;
  readonly text?: string;
  readonly state?: string;
  readonly toolCallId?: string;
  readonly toolName?: string;
  readonly input?: unknown;
  /** Where clients of 6.0 keep a refused input. */
  readonly rawInput?: unknown;
  readonly output?: unknown;
  readonly errorText?: string;
  readonly approval?: { readonly id: string; readonly approved?: boolean; readonly reason?: string };
}

export function toolOf(part: Part): string | undefined {
  if (part.type === "dynamic-tool") {
    return part.toolName;
  }
  return part.type.startsWith("tool-") ? part.type.slice("tool-".length) : undefined;
}

/** One line for each visible part. */
export function linesOf(messages: readonly Message[]): string[] {
  return messages.flatMap((message) =>
    message.parts.flatMap((part) => {
      const words = wordsOf(part);
      return words === undefined ? [] : [`${message.role}: ${words}`];
    }),
  );
}

export function wordsOf(part: Part): string | undefined {
  if (part.type === "text") {
    return part.text;
  }
  if (part.type === "reasoning") {
    return `(${part.text})`;
  }
  const tool = toolOf(part);
  return tool === undefined
    ? undefined
    : `${tool} ${JSON.stringify(part.input ?? part.rawInput)} ${stateOf(part)}`;
}

function stateOf(part: Part): string {
  switch (part.state) {
    case "output-available":
      return `= ${JSON.stringify(part.output)}`;
    case "output-error":
      return `! ${part.errorText}`;
    case "output-denied":
      return "denied";
    case "approval-requested":
      return "may it run?";
    case "approval-responded":
      return part.approval?.approved === true ? "may run" : "must not run";
    case "input-available":
      return "is to run";
    default:
      return "is being written";
  }
}
