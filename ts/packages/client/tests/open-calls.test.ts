// @vitest-environment node
// How each event of the feed changes what waits for somebody.
import { expect, it } from "vitest";
import { requirement } from "../../../tests/requirement.ts";
import { asksForMore, callOf, type Facts, factsIn, follow } from "../src/open-calls.ts";
import type { FeedEvent } from "../src/shared-feed.ts";

const told = (type: string, more: object = {}): FeedEvent => ({ type, threadId: "t1", ...{ callId: "call_1", ...more } });
const OPENED = told("call-opened", { at: 1_800_000_000, tool: "open_url", executor: "frontend", input: { url: "a" }, phase: "ready", approvalId: null, deadline: null, card: null });
const ASKED = { ...OPENED, phase: "asking", approvalId: "apr_1" };
const FACT = { callId: "call_1", threadId: "t1", title: "", tool: "open_url", input: { url: "a" }, phase: "ready", executor: "frontend", deadline: null, card: null, openedAt: "2027-01-15T08:00:00.000Z" };
/** As the inbox has it. */
const asked = (executor: string): Facts => factsIn({ calls: [{ ...FACT, executor, phase: "asking", approvalId: "apr_1" }] }) ?? new Map();
const after = (...events: FeedEvent[]): Facts => events.reduce(follow, new Map() as Facts);

it("a call for a page is there from its opening to its outcome", () => {
  requirement("connect:runs");
  expect([...after(OPENED).values()]).toEqual([FACT]);
  expect(after(OPENED, told("call-taken")).get("call_1")?.phase).toBe("taken");
  expect(after(OPENED, told("call-taken"), told("call-released")).get("call_1")?.phase).toBe("ready");
  expect(after(OPENED, told("call-settled")).size).toBe(0);
});

it("a question is one until it is approved, and then the call with the input that was approved", () => {
  requirement("connect:approvals");
  const fact = asked("frontend").get("call_1");
  expect(fact && callOf(fact)).toEqual({ id: "call_1", tool: "open_url", phase: "asking", input: { url: "a" }, approvalId: "apr_1" });
  const approved = follow(asked("frontend"), told("approval-answered", { approved: true, executor: "frontend", input: { url: "b" }, deadline: 1_800_000_060 })).get("call_1");
  expect(approved).toMatchObject({ phase: "ready", input: { url: "b" }, deadline: "2027-01-15T08:01:00.000Z" });
  expect(approved && callOf(approved)).toEqual({ id: "call_1", tool: "open_url", phase: "ready", input: { url: "b" } });
  expect(follow(asked("frontend"), told("approval-answered", { approved: false })).get("call_1")?.phase).toBe("asking");
});

it("what the server runs itself waits for nobody, except while it is asked about", () => {
  requirement("connect:runs");
  expect(after({ ...OPENED, executor: "server" } as FeedEvent).size).toBe(0);
  expect(follow(asked("server"), told("approval-answered", { approved: true, executor: "server" })).size).toBe(0);
});

it("of a question an event says too little: the inbox is asked what it would run with", () => {
  requirement("approval:defaults");
  expect([OPENED, ASKED, told("call-settled", { phase: "asking" })].map(asksForMore)).toEqual([false, true, false]);
  expect(after(ASKED).size).toBe(0);
});

it("events about something else change nothing, and what is no inbox is none", () => {
  requirement("connect:runs");
  const before = after(OPENED);
  for (const event of [told("run-started"), told("call-progressed"), told("call-taken", { callId: "call_2" }), told("call-settled", { callId: "call_2" })]) {
    expect(follow(before, event)).toBe(before);
  }
  expect(factsIn({ calls: [{ callId: 1 }] })).toEqual(new Map());
  expect(factsIn("<html>")).toBeUndefined();
});
