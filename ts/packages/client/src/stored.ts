// Converts a thread as the server stores it to the state that a page keeps.
import type { OpenCall, Outcome, Thread, UIPart } from "@farhand/protocol";
import type { Call, Conversation, Input, Message, Part, RunStatus } from "./call.ts";

type Facts = ReadonlyMap<string, OpenCall>;

export function conversationOf(thread: Thread, facts: Facts): Conversation {
  const parts = thread.messages.flatMap((message) => message.parts);
  const calls = new Map(parts.flatMap((part): [string, Call][] => (part.toolCallId === undefined ? [] : [[part.toolCallId, callOf(part, part.toolCallId, facts)]])));
  const messages = thread.messages.map((message) => ({
    id: message.id,
    role: message.role === "user" ? ("user" as const) : ("assistant" as const),
    parts: message.parts.flatMap((part, index) => partOf(part, `${message.id}-${index}`)),
  })) satisfies Message[];
  return { messages, calls, run: runStatusOf(thread.state) };
}

/** The stored conversation, followed by what the page received since it requested it. */
export function joined(stored: Conversation, heard: Conversation): Conversation {
  const known = new Set(heard.messages.map(({ id }) => id));
  return {
    messages: [...stored.messages.filter(({ id }) => !known.has(id)), ...heard.messages],
    calls: new Map([...stored.calls, ...heard.calls]),
    run: heard.run,
  };
}

function partOf(part: UIPart, id: string): Part[] {
  if (part.type === "text" || part.type === "reasoning") {
    return [{ type: part.type, id, text: part.text ?? "" }];
  }
  return part.toolCallId === undefined ? [] : [{ type: "call", callId: part.toolCallId }];
}

function callOf(part: UIPart, id: string, facts: Facts): Call {
  const named = { id, tool: part.type.replace(/^tool-/, "") };
  const input = (part.input ?? {}) as Input;
  const outcome = outcomeOf(part);
  if (outcome !== undefined) {
    return { ...named, phase: "settled", input, outcome };
  }
  const approvalId = facts.get(id)?.approvalId;
  return approvalId === undefined ? { ...named, phase: "ready", input } : { ...named, phase: "asking", input, approvalId };
}

function outcomeOf(part: UIPart): Outcome | undefined {
  switch (part.state) {
    case "output-available":
      return { kind: "success", output: part.output };
    case "output-error":
      return errorOf(part);
    case "output-denied":
      return { kind: "denied", reason: part.approval?.reason ?? "" };
    default:
      return undefined;
  }
}

/** AI SDK has one state for several outcomes; the record has the kind of each. */
function errorOf({ outcome, afterSec, errorText = "" }: UIPart): Outcome {
  switch (outcome) {
    case "timed_out":
      return { kind: "timed_out", after_sec: afterSec ?? null };
    case "cancelled":
      return { kind: "cancelled", reason: errorText };
    default:
      return { kind: "failure", error: errorText };
  }
}

function runStatusOf(state: string): RunStatus {
  switch (state) {
    case "running":
    case "done":
    case "stopped":
      return { state };
    case "waiting":
      return { state: "parked" };
    case "failed":
      return { state: "failed", error: "The last answer failed." };
    default:
      return { state: "idle" };
  }
}
