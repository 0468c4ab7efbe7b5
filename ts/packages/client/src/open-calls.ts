// The open calls, and how each event of the feed changes them. Pure: no wire, no handlers.
import { isOpenCall, type OpenCall } from "@farhand/protocol";
import type { Call } from "./call.ts";
import type { FeedEvent } from "./shared-feed.ts";

export type Facts = ReadonlyMap<string, OpenCall>;

/** The fields of events that are used here. Times are in seconds. */
interface CallEvent extends FeedEvent {
  readonly callId: string;
  readonly at: number;
  readonly tool: string;
  readonly executor: string;
  readonly input: OpenCall["input"];
  readonly phase: string;
  readonly approved: boolean;
  readonly deadline: number | null;
  readonly card: string | null;
}

/** The state of an open call as the server reports it. A take may be released again. */
export function callOf({ callId: id, tool, input, approvalId }: OpenCall): Call {
  return approvalId === undefined ? { id, tool, input, phase: "ready" } : { id, tool, input, phase: "asking", approvalId };
}

/** Parses the response of `GET /api/inbox`; undefined if it is not one. */
export function factsIn(inbox: unknown): Facts | undefined {
  const calls = (inbox as { calls?: unknown } | undefined)?.calls;
  return Array.isArray(calls) ? new Map(calls.filter(isOpenCall).map((call) => [call.callId, call])) : undefined;
}

/** Returns the same map if the event does not concern it. */
export function follow(facts: Facts, event: FeedEvent): Facts {
  const told = event as CallEvent;
  const known = facts.get(told.callId);
  switch (event.type) {
    case "call-opened":
      return isForSomebody(told) ? put(facts, openedBy(told, facts)) : facts;
    case "call-settled":
      return known === undefined ? facts : without(facts, told.callId);
    case "call-taken":
      return known === undefined ? facts : put(facts, { ...known, phase: "taken" });
    case "call-released":
      return known === undefined ? facts : put(facts, { ...known, phase: "ready" });
    case "approval-answered":
      return known === undefined || !told.approved ? facts : approvedBy(told, known, facts);
    default:
      return facts;
  }
}

/** An event about an approval does not say what the call would run with, but the inbox does. */
export function asksForMore(event: FeedEvent): boolean {
  return event.type === "call-opened" && (event as CallEvent).phase === "asking";
}

/** Whether it waits for a page or a program: the server runs its own tools. */
function isForSomebody({ phase, executor }: Pick<CallEvent, "phase" | "executor">): boolean {
  return phase !== "asking" && phase !== "settled" && executor !== "server";
}

function openedBy({ callId, threadId, tool, input, phase, executor, deadline, card, at }: CallEvent, facts: Facts): OpenCall {
  const title = [...facts.values()].find((call) => call.threadId === threadId)?.title ?? "";
  return { callId, threadId: threadId ?? "", title, tool, input, phase, executor, deadline: timeOf(deadline), card, openedAt: timeOf(at) ?? "" };
}

function approvedBy({ executor, input, deadline }: CallEvent, { approvalId: _, ...known }: OpenCall, facts: Facts): Facts {
  if (executor === "server") {
    return without(facts, known.callId);
  }
  return put(facts, { ...known, phase: "ready", input: input ?? known.input, deadline: timeOf(deadline) });
}

function put(facts: Facts, call: OpenCall): Facts {
  return new Map(facts).set(call.callId, call);
}

function without(facts: Facts, callId: string): Facts {
  return new Map([...facts].filter(([id]) => id !== callId));
}

function timeOf(seconds: number | null): string | null {
  return seconds === null ? null : new Date(seconds * 1_000).toISOString();
}
