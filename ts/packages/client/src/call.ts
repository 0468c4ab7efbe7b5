// What a page knows of its thread, and how each chunk of the stream changes it. Pure: no wire, no time, no handlers.
import type { Chunk, Outcome } from "@farhand/protocol";
import { parsed } from "./json.ts";
import { unreachable } from "./unreachable.ts";

export type Input = Readonly<Record<string, unknown>>;

/**
 * A call in its phase, each with only its own fields. `writing` is the model's: nobody may run it yet; `taken` is somebody
 * else's to run, a registered client's.
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

/** How the last answer stands. `parked`: saved, and it goes on when its open calls are answered. */
export type Course =
  | { readonly state: "idle" | "running" | "parked" | "done" | "stopped" }
  | { readonly state: "failed"; readonly error: string };

export interface Talk {
  readonly messages: readonly Message[];
  readonly calls: ReadonlyMap<string, Call>;
  readonly course: Course;
}

export const SILENCE: Talk = { messages: [], calls: new Map(), course: { state: "idle" } };

export function reduce(talk: Talk, chunk: Chunk): Talk {
  switch (chunk.type) {
    case "start":
      return begin(talk, chunk.messageId);
    case "finish-step":
      return finishStep(talk);
    case "start-step":
      return keep(talk, () => true);
    case "text-end":
    case "reasoning-end":
    case "data-gap":
      return talk;
    case "text-start":
    case "reasoning-start":
      return addPart(talk, { type: chunk.type === "text-start" ? "text" : "reasoning", id: chunk.id, text: "" });
    case "text-delta":
    case "reasoning-delta":
      return addText(talk, chunk.id, chunk.delta);
    case "tool-input-start":
      return show(talk, { id: chunk.toolCallId, tool: chunk.toolName, phase: "writing", text: "" });
    case "tool-input-delta":
      return write(talk, chunk.toolCallId, chunk.inputTextDelta);
    case "tool-input-available":
      return show(talk, { id: chunk.toolCallId, tool: chunk.toolName, phase: "ready", input: chunk.input });
    case "tool-input-error":
      return show(talk, {
        id: chunk.toolCallId,
        tool: chunk.toolName,
        phase: "settled",
        input: chunk.input,
        outcome: { kind: "failure", error: chunk.errorText },
      });
    case "tool-approval-request":
      return ask(talk, chunk.toolCallId, chunk.approvalId);
    case "tool-output-available":
      return settle(talk, chunk.toolCallId, { kind: "success", output: chunk.output });
    case "tool-output-error":
      return settle(talk, chunk.toolCallId, { kind: "failure", error: chunk.errorText });
    case "tool-output-denied":
      return settle(talk, chunk.toolCallId, { kind: "denied" });
    case "error":
      return { ...talk, course: { state: "failed", error: chunk.errorText } };
    case "finish":
      return end(talk, { state: COURSES[chunk.finishReason] ?? "done" });
    default:
      return unreachable(chunk);
  }
}

/** The input of a call as far as it is known; what the model is still writing is nobody's input. */
export function inputOf(call: Call): unknown {
  return call.phase === "writing" ? undefined : call.input;
}

export function isOpen(call: Call): boolean {
  return call.phase !== "writing" && call.phase !== "settled";
}

export function say(talk: Talk, id: string, text: string): Talk {
  const message: Message = { id, role: "user", parts: [{ type: "text", id, text }] };
  return { ...talk, messages: [...talk.messages, message], course: { state: "running" } };
}

const COURSES: Readonly<Record<string, "parked" | "stopped">> = { "tool-calls": "parked", other: "stopped" };

/** A `start` of a message that is there already is a replay of all of it; its calls stay what they were till then. */
function begin(talk: Talk, id: string): Talk {
  const others = talk.messages.filter((message) => message.id !== id);
  return { ...talk, messages: [...others, { id, role: "assistant", parts: [] }], course: { state: "running" } };
}

/** What was written out whole and neither handed out nor asked about is in somebody else's hands. */
function finishStep(talk: Talk): Talk {
  const calls = [...talk.calls].map(([id, call]): [string, Call] => {
    const input = call.phase === "writing" ? objectOf(call.text) : undefined;
    return [id, input === undefined ? call : { id, tool: call.tool, phase: "taken", input }];
  });
  return { ...talk, calls: new Map(calls) };
}

/** Without calls that the model never wrote to their end: their step was discarded, or has ended. */
function keep(talk: Talk, isShown: (id: string) => boolean): Talk {
  return { ...talk, calls: new Map([...talk.calls].filter(([id, { phase }]) => phase !== "writing" && isShown(id))) };
}

/** Calls of a discarded step are in no message any more. */
function end(talk: Talk, course: Course): Talk {
  const shown = new Set(talk.messages.flatMap(({ parts }) => parts.map((part) => part.type === "call" && part.callId)));
  return { ...keep(talk, (id) => shown.has(id)), course };
}

function addPart(talk: Talk, part: Part): Talk {
  const last = talk.messages.at(-1);
  if (last?.role !== "assistant") {
    return talk;
  }
  return { ...talk, messages: talk.messages.with(-1, { ...last, parts: [...last.parts, part] }) };
}

function addText(talk: Talk, id: string, delta: string): Talk {
  const last = talk.messages.at(-1);
  const at = last?.parts.findLastIndex((part) => part.type !== "call" && part.id === id) ?? -1;
  const part = last?.parts[at];
  if (last === undefined || part === undefined || part.type === "call") {
    return talk;
  }
  const parts = last.parts.with(at, { ...part, text: part.text + delta });
  return { ...talk, messages: talk.messages.with(-1, { ...last, parts }) };
}

const RANKS = { writing: 0, taken: 1, asking: 1, ready: 1, settled: 2 } as const;

function show(talk: Talk, call: Call): Talk {
  // without an id there is nothing that an answer could be addressed to
  if (call.id === "") {
    return talk;
  }
  const known = talk.calls.get(call.id);
  const isOlder = known !== undefined && RANKS[known.phase] > RANKS[call.phase];
  const next = isOlder ? talk : { ...talk, calls: new Map(talk.calls).set(call.id, call) };
  const shown = talk.messages.at(-1)?.parts.some((part) => part.type === "call" && part.callId === call.id);
  return shown === true ? next : addPart(next, { type: "call", callId: call.id });
}

function write(talk: Talk, id: string, delta: string): Talk {
  const call = talk.calls.get(id);
  return call?.phase === "writing" ? show(talk, { ...call, text: call.text + delta }) : talk;
}

function ask(talk: Talk, id: string, approvalId: string): Talk {
  const call = talk.calls.get(id);
  if (call === undefined || call.phase === "settled") {
    return talk;
  }
  return show(talk, { id, tool: call.tool, phase: "asking", input: writtenInput(call), approvalId });
}

function settle(talk: Talk, id: string, outcome: Outcome): Talk {
  const call = talk.calls.get(id);
  if (call === undefined) {
    return talk;
  }
  return show(talk, { id, tool: call.tool, phase: "settled", input: writtenInput(call), outcome });
}

/** Written out whole before an approval and in replays; a text that is cut shows as nothing. */
function writtenInput(call: Call): Input {
  return call.phase === "writing" ? (objectOf(call.text) ?? {}) : (call.input as Input);
}

function objectOf(text: string): Input | undefined {
  const value = parsed(text);
  return typeof value === "object" && value !== null ? (value as Input) : undefined;
}
