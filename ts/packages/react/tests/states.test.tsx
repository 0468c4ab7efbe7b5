// Every state of UX on one card, in its words.
import { type Call, type Delivery, httpOf, EMPTY_CONVERSATION, type ThreadState } from "@farhand/client";
import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import type { ReactNode } from "react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { type CardHost, CardHostProvider, CardList, type CardState, type CardView, ToolCard, viewOf } from "../src/index.ts";
import { timeLeft } from "../src/sentences.ts";

// the clock stands still: what a card says of time must not depend on how long it took to show it
const NOW = Date.parse("2026-11-01T09:00:00.000Z");
beforeEach(() => void vi.setSystemTime(NOW));
afterEach(() => void vi.useRealTimers());
afterEach(cleanup);
afterEach(() => sessionStorage.clear());

const nothing = (): void => undefined;
const host: CardHost = {
  http: httpOf({ url: "http://127.0.0.1:9" }), cards: [], connection: { state: "open" },
  answer: nothing, approve: nothing, retry: nothing, discard: nothing, retryNow: nothing, say: nothing,
};
const call: Call = { id: "call_1", tool: "user_confirm", phase: "ready", input: { message: "Delete 12 old drafts?" } };
const settled: Call = { ...call, phase: "settled", input: call.input, outcome: { kind: "success", output: "yes" } };

function shown(state: CardState, { of = call, kind = "confirm" as CardView["kind"] } = {}): string {
  const view: CardView = { call: of, kind, state, executor: "frontend" };
  const { container } = render(<CardHostProvider host={host}><ToolCard view={view} /></CardHostProvider>);
  return container.textContent ?? "";
}

const STATES: [CardState, Call, string[]][] = [
  [{ name: "writing" }, { id: "c", tool: "user_confirm", phase: "writing", text: "{" }, ["The assistant is still writing the question"]],
  [{ name: "open", deadline: NOW + 53_500 }, call, ["Delete 12 old drafts?", "0:54", "Yes", "No"]],
  [{ name: "running" }, call, ["Running in this browser"]],
  [{ name: "sending" }, call, ["Sending", "Yes"]],
  [{ name: "undelivered", retryAt: NOW + 3_500 }, call, ["Your answer did not reach the server", "Still here and not lost. Trying again in 4 s.", "Try now", "Change answer"]],
  [{ name: "refused", refusal: { status: 422, reason: "errorText is larger than 4096 bytes." } }, call, ["The server did not accept your answer", "errorText is larger"]],
  [{ name: "done" }, settled, ["Delete 12 old drafts?", "yes"]],
  [{ name: "elsewhere" }, settled, ["Answered in another tab"]],
  [{ name: "timed-out", afterSec: 60 }, settled, ["Timed out: “Delete 12 old drafts?”", "No answer within 60 s", "Ask me again"]],
  [{ name: "denied", reason: "Wrong address" }, settled, ["Denied: “Wrong address”", "Denied"]],
  [{ name: "parked", deadline: NOW + 3 * 86_400_000 }, call, ["Saved. You have 3 days to answer.", "Yes"]],
  [{ name: "no-client", client: "studio-mac", since: NOW - 125_000 }, call, ["No client", "“studio-mac” has not been seen for 2 min", "Wait", "Run here", "Skip"]],
  [{ name: "failed", words: "no window" }, settled, ["no window"]],
];

it.each(STATES)("a card shows $name", (state, of, words) => {
  const text = shown(state, { of });
  for (const word of words) {
    expect(text).toContain(word);
  }
});

it("a question that is being written goes by the title of its tool, and never by the name", () => {
  const writing: Call = { id: "c", tool: "user_confirm", phase: "writing", text: "{" };
  expect(shown({ name: "writing" }, { of: writing })).toBe("The assistant is still writing the question");
  cleanup();
  const view: CardView = { call: writing, kind: "confirm", state: { name: "writing" }, executor: "frontend", tool: { card: null, executor: "frontend", title: "A yes or no" } };
  render(<CardHostProvider host={host}><ToolCard view={view} /></CardHostProvider>);
  expect(document.body.textContent).toBe("A yes or noThe assistant is still writing the question");
});

it("while another question is open, nothing is asked again: a new message would end that question", () => {
  const say = vi.fn();
  const late: CardView = { call: { ...settled, id: "call_late" }, kind: "confirm", state: { name: "timed-out", afterSec: 60 }, executor: "frontend" };
  const open: CardView = { call, kind: "confirm", state: { name: "open", deadline: undefined }, executor: "frontend" };
  const card = (cards: readonly CardView[]): ReactNode => <CardHostProvider host={{ ...host, say, cards }}><ToolCard view={late} /></CardHostProvider>;
  const { rerender } = render(card([late, open]));
  const again = (): HTMLButtonElement => screen.getByRole("button", { name: "Ask me again" });
  expect(again().disabled).toBe(true);
  expect(document.body.textContent).toContain("Answer the open question first.");
  fireEvent.click(again());
  expect(say).not.toHaveBeenCalled();
  rerender(card([late, { ...open, call: settled, state: { name: "done" } }]));
  expect(document.body.textContent).not.toContain("Answer the open question first.");
  fireEvent.click(again());
  expect(say).toHaveBeenCalledOnce();
});

it.each([[90, "90 s"], [300, "5 min"], [259_200, "3 days"]])("a question that waited %d s says so in words that can be read", (afterSec, words) => {
  expect(shown({ name: "timed-out", afterSec }, { of: settled })).toContain(`No answer within ${words}`);
});

it("an answer to a call that the server does not know is not said to be somebody else's", () => {
  const delivery: Delivery = { state: "settled", mine: false, reason: "unknown" };
  const known = { ...EMPTY_CONVERSATION, facts: new Map(), running: new Set<string>(), deliveries: new Map([["call_1", delivery]]) };
  const { state } = viewOf(known, call, { seenOpen: new Set(), reasons: new Map() });
  expect(shown(state)).toContain("Deleted, or asked under another sign-in");
});

it("while an answer is on its way no button can be pressed", () => {
  shown({ name: "sending" });
  expect([...document.querySelectorAll("button")].every((button) => button.disabled)).toBe(true);
});

it("the line above the cards counts what is still to be answered, and not what is on its way", () => {
  const cards = (...states: CardState[]): CardView[] => states.map((state, at) => ({ call: { ...call, id: `c${at}` }, kind: "confirm", state, executor: "frontend" }));
  const line = (): string | null | undefined => document.querySelector(".fh-needed")?.textContent;
  const { rerender } = render(<CardList host={{ ...host, cards: cards({ name: "sending" }, { name: "open", deadline: undefined }) }} />);
  expect(line()).toBe("Waiting for 1 answer.The assistant continues once you reply.");
  rerender(<CardList host={{ ...host, cards: cards({ name: "sending" }, { name: "sending" }) }} />);
  expect(line()).toBe("Sending your answer");
});

it("what was refused for what it says can be changed, not tried again", () => {
  const refused = (status: number): string[] => {
    const known = { ...EMPTY_CONVERSATION, facts: new Map(), running: new Set<string>(), deliveries: new Map([["call_1", { state: "refused", status, reason: "No." } as const]]) };
    const { state } = viewOf(known, call, { seenOpen: new Set(), reasons: new Map() });
    shown(state);
    const names = [...document.querySelectorAll("button")].map(({ textContent }) => textContent ?? "");
    cleanup();
    return names;
  };
  expect(refused(400)).toEqual(["Change answer"]);
  expect(refused(429)).toEqual(["Change answer", "Try again"]);
});

it("the code of a refusal links to the server's explanation", () => {
  shown({ name: "refused", refusal: { status: 413, reason: "The answer is larger than 1 MB.", code: "too_large" } });
  expect(screen.getByRole("alert").textContent?.trim()).toBe("The answer is larger than 1 MB. too_large");
  expect(screen.getByRole("link", { name: "too_large" }).getAttribute("href")).toBe(`${host.http.url}/errors/too_large`);
});

it("an answer that came after the sign-in was over says so, without the words for programs", () => {
  const delivery = { state: "refused", status: 401, reason: "No valid credential was sent. Send Authorization: Bearer.", code: "unauthenticated" } as const;
  const known = { ...EMPTY_CONVERSATION, facts: new Map(), running: new Set<string>(), deliveries: new Map([["call_1", delivery]]) };
  shown(viewOf(known, call, { seenOpen: new Set(), reasons: new Map() }).state);
  expect(screen.getByRole("alert").textContent?.trim()).toBe("You were signed out.");
});

it("an edit that was refused is there again with what was typed", () => {
  const asking: Call = { id: "call_1", tool: "delete_file", phase: "asking", input: { path: "old.txt" }, approvalId: "appr_1" };
  const page = (state: CardState): ReactNode => <CardHostProvider host={host}><ToolCard view={{ call: asking, kind: "approval", state, executor: "server" }} /></CardHostProvider>;
  const { rerender } = render(page({ name: "open", deadline: undefined }));
  fireEvent.click(screen.getByRole("button", { name: "Edit" }));
  fireEvent.change(screen.getByRole("textbox"), { target: { value: "../new.txt" } });
  rerender(page({ name: "sending" }));
  rerender(page({ name: "refused", refusal: { status: 422, reason: "It does not fit." } }));
  expect(screen.queryByRole("textbox")).toBeNull();
  rerender(page({ name: "open", deadline: undefined }));
  expect(screen.getByRole<HTMLTextAreaElement>("textbox").value).toBe("../new.txt");
});

it("Enter sends a choice and a reason", () => {
  const answers: unknown[] = [];
  const answering: CardHost = { ...host, answer: (_, outcome) => void answers.push(outcome), approve: (_, id, decision) => void answers.push([id, decision]) };
  const page = (of: Call, kind: CardView["kind"]): ReactNode => <CardHostProvider host={answering}><ToolCard view={{ call: of, kind, state: { name: "open", deadline: undefined }, executor: "server" }} /></CardHostProvider>;
  render(page({ ...call, phase: "ready", input: { question: "Lunch?", options: ["Soup", "Noodles"] } }, "select"));
  fireEvent.submit(screen.getByRole("radio", { name: "Soup" }).closest("form") as Element);
  expect(answers).toEqual([]);
  fireEvent.click(screen.getByRole("radio", { name: "Noodles" }));
  fireEvent.submit(screen.getByRole("radio", { name: "Noodles" }).closest("form") as Element);
  cleanup();
  render(page({ id: "call_2", tool: "delete_file", phase: "asking", input: {}, approvalId: "appr_2" }, "approval"));
  fireEvent.click(screen.getByRole("button", { name: "Deny" }));
  fireEvent.change(screen.getByRole("textbox"), { target: { value: "Not today" } });
  fireEvent.submit(screen.getByRole("textbox").closest("form") as Element);
  expect(answers).toEqual([{ kind: "success", output: "Noodles" }, ["appr_2", { approved: false, scope: "once", reason: "Not today" }]]);
});

it("the focus continues with each answer and back to an answer that was not taken, never away from somebody who is elsewhere", () => {
  const view = (id: string, name: "open" | "sending"): CardView => ({ call: { ...call, id }, kind: "confirm", executor: "frontend", state: name === "open" ? { name, deadline: undefined } : { name } });
  const page = (...cards: CardView[]): ReactNode => <><a href="#elsewhere">Elsewhere</a><CardList host={{ ...host, cards }} /></>;
  const where = (): string | undefined => document.activeElement?.closest<HTMLElement>("[data-call]")?.dataset["call"];
  const { rerender } = render(page(view("one", "open"), view("two", "open"), view("three", "open")));
  expect(where()).toBe("one");
  document.querySelector<HTMLElement>("[data-call=two] button:not(:disabled)")?.focus();
  rerender(page(view("one", "open"), view("two", "sending"), view("three", "open")));
  expect(where()).toBe("three");
  document.querySelector<HTMLElement>("[data-call=three] button:not(:disabled)")?.focus();
  rerender(page(view("one", "open"), view("two", "sending"), view("three", "sending")));
  expect(where()).toBe("one");
  screen.getByText("Elsewhere").focus();
  rerender(page(view("one", "open"), view("two", "open"), view("three", "sending")));
  expect(document.activeElement?.textContent).toBe("Elsewhere");
});

it("an address that must not be opened is shown as such and has no Open button", () => {
  for (const url of ["javascript:alert(1)", "data:text/html,x", "file:///etc/passwd"]) {
    const text = shown({ name: "open", deadline: undefined }, { of: { ...call, input: { url } }, kind: "open_page" });
    expect(text).toContain("Only http and https pages open");
    expect([...document.querySelectorAll("button")].map((button) => button.textContent)).toEqual(["Do not open it"]);
    cleanup();
  }
});

it("time left is short while it is short", () => {
  expect([54_000, 118_400, 0, -5, 3_600_000, 5 * 3_600_000, 3 * 86_400_000].map((ms) => timeLeft(ms, 0))).toEqual(["0:54", "1:59", "0:00", "0:00", "1 hour", "5 hours", "3 days"]);
});

it("what the page knows becomes a state", () => {
  const memory = { seenOpen: new Set<string>(), reasons: new Map() };
  const state: ThreadState = { ...EMPTY_CONVERSATION, facts: new Map(), running: new Set(), deliveries: new Map(), connection: { state: "open" } };
  const now = Date.parse("2026-11-01T08:00:10.000Z");
  const name = (extra: Partial<ThreadState>, of: Call = call, at: number = now): string => viewOf({ ...state, ...extra }, of, memory, at).state.name;
  const fact = { callId: "call_1", threadId: "t", title: "", tool: call.tool, input: {}, phase: "ready", deadline: null, card: "confirm", openedAt: "2026-11-01T08:00:00.000Z" };
  const facts = (executor: string): Partial<ThreadState> => ({ facts: new Map([["call_1", { ...fact, executor }]]) });
  expect(name({})).toBe("writing");
  expect(name(facts("frontend"))).toBe("open");
  expect(name(facts("server"))).toBe("running");
  expect(name(facts("client"))).toBe("no-client");
  // one that is there takes it in a moment: until then nobody has to decide anything
  expect(name(facts("client"), call, now - 9_000)).toBe("running");
  const begun = { facts: new Map([["call_1", { ...fact, executor: "client", phase: "taken" }]]) };
  expect(name(begun, { ...call, phase: "taken", input: {} })).toBe("running");
  expect(name({ ...facts("frontend"), run: { state: "parked" } })).toBe("parked");
  expect(name({ running: new Set(["call_1"]) })).toBe("running");
  expect(name({ deliveries: new Map([["call_1", { state: "sending" }]]) })).toBe("sending");
  expect(name({ deliveries: new Map([["call_1", { state: "settled", mine: false, reason: "expired" }]]) })).toBe("timed-out");
  expect(name({ deliveries: new Map([["call_1", { state: "settled", mine: false, reason: "conflict" }]]) })).toBe("elsewhere");
  expect(name({}, settled)).toBe("done");
  memory.seenOpen.add("call_1");
  const over = (delivery: Delivery | undefined): string => name({ deliveries: new Map(delivery === undefined ? [] : [["call_1", delivery]]) }, settled);
  expect(over(undefined)).toBe("elsewhere");
  expect(over({ state: "settled", mine: false, reason: "conflict" })).toBe("elsewhere");
  // the stream may be faster than the receipt
  expect([over({ state: "sending" }), over({ state: "undelivered", retryAt: 0 }), over({ state: "settled", mine: true })]).toEqual(["done", "done", "done"]);
  const late: Call = { ...settled, phase: "settled", outcome: { kind: "failure", error: "Nobody answered within 5 s." } };
  expect(viewOf(state, late, memory).state).toEqual({ name: "timed-out", afterSec: 5 });
  // a tool may use the same words; the record knows better than the sentence
  const ends = (outcome: string): Partial<ThreadState> => ({ ends: new Map([["call_1", { outcome, afterSec: 7 }]]) }) as Partial<ThreadState>;
  expect(name(ends("failure"), late)).toBe("failed");
  const other: Call = { ...late, outcome: { kind: "failure", error: "Zu spät." } };
  expect(viewOf({ ...state, ...ends("timed_out") }, other, memory).state).toEqual({ name: "timed-out", afterSec: 7 });
});

it("a tool of the server has the same icon while it runs as when it is done", () => {
  const running = { call: { id: "call_1", tool: "bake", phase: "ready", input: {} }, kind: "unknown", state: { name: "running" }, executor: "server" } as const;
  const done = { ...running, call: { ...running.call, phase: "settled", outcome: { kind: "success", output: 1 } }, state: { name: "done" } } as const;
  render(<CardHostProvider host={host}><ToolCard view={running} /><ToolCard view={done} /></CardHostProvider>);
  const icons = [...document.querySelectorAll(".fh-icon svg")].map((each) => each.innerHTML);
  // two boxes, one on the other
  expect(icons.map((each) => each.split("<rect").length - 1)).toEqual([2, 2]);
});
