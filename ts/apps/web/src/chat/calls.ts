// Calls in the form that cards use, from AI SDK's message parts and the server's record. Pure.
import type { Call, OpenCall, Thread } from "@farhand/client";
import type { Ended } from "@farhand/react";
import type { UIMessage } from "ai";

type Facts = ReadonlyMap<string, OpenCall>;

/** The fields of a part that are used here; AI SDK has a type for each tool. */
interface ToolPart {
  readonly type: string;
  readonly toolName?: string;
  readonly toolCallId: string;
  readonly state: string;
  readonly input?: unknown;
  readonly output?: unknown;
  readonly errorText?: string;
  readonly approval?: { readonly id: string; readonly reason?: string };
}

export function toolPartOf(part: UIMessage["parts"][number]): ToolPart | undefined {
  return part.type.startsWith("tool-") || part.type === "dynamic-tool" ? (part as ToolPart) : undefined;
}

export function callsOf(messages: readonly UIMessage[], facts: Facts): ReadonlyMap<string, Call> {
  const parts = messages.flatMap((message) => toolPartsOf(message, facts));
  return new Map(parts.map((part) => [part.toolCallId, callOf(part, facts.get(part.toolCallId))]));
}

/** The tool parts without unfinished ones of a step that a crash discarded: the step was written again, with other ids. */
function toolPartsOf({ parts }: UIMessage, facts: Facts): readonly ToolPart[] {
  const lastStep = parts.findLastIndex(({ type }) => type === "step-start");
  const found = parts.map((part, index) => [toolPartOf(part), index] as const);
  return found.flatMap(([part, index]) => (part === undefined || (part.state === "input-streaming" && index < lastStep && !facts.has(part.toolCallId)) ? [] : [part]));
}

/** The server's facts about open calls, by call id. */
export function factsOf(thread: Thread | undefined): Facts {
  return new Map(thread?.openCalls.map((call) => [call.callId, call]));
}

/** What the server stores about finished calls: outcome, duration, title, summary. */
export function endsOf(thread: Thread | undefined): ReadonlyMap<string, Ended> {
  const parts = thread?.messages.flatMap((message) => message.parts) ?? [];
  return new Map(
    parts.flatMap(({ toolCallId, outcome, afterSec, tookMs, approval, title, summary, edited, alwaysAllowed, answeredBy }): [string, Ended][] =>
      toolCallId === undefined || outcome === undefined
        ? []
        : [[toolCallId, { outcome, afterSec, tookMs, reason: approval?.reason, title, summary, isEdited: edited, isAlwaysAllowed: alwaysAllowed, answeredBy }]]),
  );
}

function callOf(part: ToolPart, fact: OpenCall | undefined): Call {
  const named = { id: part.toolCallId, tool: part.type === "dynamic-tool" ? (part.toolName ?? "") : part.type.slice("tool-".length) };
  const input = fieldsOf(part.input);
  switch (part.state) {
    case "approval-requested":
      // the server's state counts: a call that was approved elsewhere needs no answer here
      return fact !== undefined && fact.phase !== "asking"
        ? { ...named, phase: "ready", input }
        : { ...named, phase: "asking", input: fact?.input ?? input, approvalId: part.approval?.id ?? "" };
    case "approval-responded":
    case "input-available":
      return { ...named, phase: "ready", input };
    case "output-available":
      return { ...named, phase: "settled", input, outcome: { kind: "success", output: part.output } };
    case "output-denied":
      return { ...named, phase: "settled", input, outcome: { kind: "denied", reason: part.approval?.reason ?? "" } };
    case "output-error":
      return { ...named, phase: "settled", input, outcome: { kind: "failure", error: part.errorText ?? "" } };
    default:
      // the input of a registered client's call is never sent to a page, but the record says that it is complete
      return fact === undefined ? { ...named, phase: "writing", text: "" } : { ...named, phase: "ready", input: fact.input };
  }
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}
