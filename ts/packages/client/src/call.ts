// What a page knows of its thread, and how each chunk of the stream changes it. Pure: no wire, no clock, no handlers.
import type { Chunk, Outcome } from "@farhand/protocol";
import { parsed } from "./json.ts";
import { unreachable } from "./unreachable.ts";

export type Input = Readonly<Record<string, unknown>>;

/**
 * A call in its phase, each with only its own fields. `writing`: the model is still writing it, and nobody may run it. `taken`: somebody
 * else runs it, such as a registered client.
 */
export type Call = { readonly id: string; readonly tool: string } & (
  | { readonly phase: "writing"; readonly text: string }
  | { readonly phase: "asking"; readonly input: Input; readonly approvalId: string }
  | { readonly phase: "ready" | "taken"; readonly input: Input }
  | { readonly phase: "settled"; readonly input: unknown; readonly outcome: Outcome }
);

export type Part =
  | { readonly type: "text"; readonly id: string; readonly text: string }
  | { readonly type: "reasoning"; readonly id: string; readonly text: string }
  | { readonly type: "call"; readonly callId: string };

export interface Message {
  readonly id: string;
  readonly role: "user" | "assistant";
  readonly parts: readonly Part[];
}

/** The state of the last answer. `parked`: stored, and it continues when its open calls are answered. */
export type RunStatus =
  | { readonly state: "idle" | "running" | "parked" | "done" | "stopped" }
  | { readonly state: "failed"; readonly error: string };

export interface Conversation {
  readonly messages: readonly Message[];
  readonly calls: ReadonlyMap<string, Call>;
  readonly run: RunStatus;
}

export const EMPTY_CONVERSATION: Conversation = { messages: [], calls: new Map(), run: { state: "idle" } };

export function reduce(conversation: Conversation, chunk: Chunk): Conversation {
  switch (chunk.type) {
    case "start":
      return begin(conversation, chunk.messageId);
    case "finish-step":
      return finishStep(conversation);
    case "start-step":
      return keep(conversation, () => true);
    case "text-end":
    case "reasoning-end":
    case "data-gap":
      return conversation;
    case "text-start":
    case "reasoning-start":
      return addPart(conversation, { type: chunk.type === "text-start" ? "text" : "reasoning", id: chunk.id, text: "" });
    case "text-delta":
    case "reasoning-delta":
      return addText(conversation, chunk.id, chunk.delta);
    case "tool-input-start":
      return show(conversation, { id: chunk.toolCallId, tool: chunk.toolName, phase: "writing", text: "" });
    case "tool-input-delta":
      return write(conversation, chunk.toolCallId, chunk.inputTextDelta);
    case "tool-input-available":
      return show(conversation, { id: chunk.toolCallId, tool: chunk.toolName, phase: "ready", input: chunk.input });
    case "tool-input-error":
      return show(conversation, {
        id: chunk.toolCallId,
        tool: chunk.toolName,
        phase: "settled",
        input: chunk.input,
        outcome: { kind: "failure", error: chunk.errorText },
      });
    case "tool-approval-request":
      return ask(conversation, chunk.toolCallId, chunk.approvalId);
    case "tool-output-available":
      return settle(conversation, chunk.toolCallId, { kind: "success", output: chunk.output });
    case "tool-output-error":
      return settle(conversation, chunk.toolCallId, { kind: "failure", error: chunk.errorText });
    case "tool-output-denied":
      return settle(conversation, chunk.toolCallId, { kind: "denied" });
    case "error":
      return { ...conversation, run: { state: "failed", error: chunk.errorText } };
    case "finish":
      return end(conversation, { state: RUN_STATUSES[chunk.finishReason] ?? "done" });
    default:
      return unreachable(chunk);
  }
}

/** The input of a call; undefined while the model is still writing it. */
export function inputOf(call: Call): unknown {
  return call.phase === "writing" ? undefined : call.input;
}

export function isOpen(call: Call): boolean {
  return call.phase !== "writing" && call.phase !== "settled";
}

export function say(conversation: Conversation, id: string, text: string): Conversation {
  const message: Message = { id, role: "user", parts: [{ type: "text", id, text }] };
  return { ...conversation, messages: [...conversation.messages, message], run: { state: "running" } };
}

const RUN_STATUSES: Readonly<Record<string, "parked" | "stopped">> = { "tool-calls": "parked", other: "stopped" };

/** A `start` of a known message replays all of it; until the replay reaches them, its calls keep their state. */
function begin(conversation: Conversation, id: string): Conversation {
  const others = conversation.messages.filter((message) => message.id !== id);
  return { ...conversation, messages: [...others, { id, role: "assistant", parts: [] }], run: { state: "running" } };
}

/** A call whose input is complete, and which was neither offered to the page nor needs approval, is run by somebody else. */
function finishStep(conversation: Conversation): Conversation {
  const calls = [...conversation.calls].map(([id, call]): [string, Call] => {
    const input = call.phase === "writing" ? objectOf(call.text) : undefined;
    return [id, input === undefined ? call : { id, tool: call.tool, phase: "taken", input }];
  });
  return { ...conversation, calls: new Map(calls) };
}

/** Removes calls that the model never finished writing: their step was discarded, or has ended. */
function keep(conversation: Conversation, isShown: (id: string) => boolean): Conversation {
  return { ...conversation, calls: new Map([...conversation.calls].filter(([id, { phase }]) => phase !== "writing" && isShown(id))) };
}

/** Removes the calls of a discarded step: no message contains them any more. */
function end(conversation: Conversation, run: RunStatus): Conversation {
  const shown = new Set(conversation.messages.flatMap(({ parts }) => parts.map((part) => part.type === "call" && part.callId)));
  return { ...keep(conversation, (id) => shown.has(id)), run };
}

function addPart(conversation: Conversation, part: Part): Conversation {
  const last = conversation.messages.at(-1);
  if (last?.role !== "assistant") {
    return conversation;
  }
  return { ...conversation, messages: conversation.messages.with(-1, { ...last, parts: [...last.parts, part] }) };
}

function addText(conversation: Conversation, id: string, delta: string): Conversation {
  const last = conversation.messages.at(-1);
  const at = last?.parts.findLastIndex((part) => part.type !== "call" && part.id === id) ?? -1;
  const part = last?.parts[at];
  if (last === undefined || part === undefined || part.type === "call") {
    return conversation;
  }
  const parts = last.parts.with(at, { ...part, text: part.text + delta });
  return { ...conversation, messages: conversation.messages.with(-1, { ...last, parts }) };
}

const RANKS = { writing: 0, taken: 1, asking: 1, ready: 1, settled: 2 } as const;

function show(conversation: Conversation, call: Call): Conversation {
  // an answer needs the id of its call
  if (call.id === "") {
    return conversation;
  }
  const known = conversation.calls.get(call.id);
  const isOlder = known !== undefined && RANKS[known.phase] > RANKS[call.phase];
  const next = isOlder ? conversation : { ...conversation, calls: new Map(conversation.calls).set(call.id, call) };
  const shown = conversation.messages.at(-1)?.parts.some((part) => part.type === "call" && part.callId === call.id);
  return shown === true ? next : addPart(next, { type: "call", callId: call.id });
}

function write(conversation: Conversation, id: string, delta: string): Conversation {
  const call = conversation.calls.get(id);
  return call?.phase === "writing" ? show(conversation, { ...call, text: call.text + delta }) : conversation;
}

function ask(conversation: Conversation, id: string, approvalId: string): Conversation {
  const call = conversation.calls.get(id);
  if (call === undefined || call.phase === "settled") {
    return conversation;
  }
  return show(conversation, { id, tool: call.tool, phase: "asking", input: writtenInput(call), approvalId });
}

function settle(conversation: Conversation, id: string, outcome: Outcome): Conversation {
  const call = conversation.calls.get(id);
  if (call === undefined) {
    return conversation;
  }
  return show(conversation, { id, tool: call.tool, phase: "settled", input: writtenInput(call), outcome });
}

/** Sent as a whole before an approval and in replays; text that is cut off is not shown. */
function writtenInput(call: Call): Input {
  return call.phase === "writing" ? (objectOf(call.text) ?? {}) : (call.input as Input);
}

function objectOf(text: string): Input | undefined {
  const value = parsed(text);
  return typeof value === "object" && value !== null ? (value as Input) : undefined;
}
