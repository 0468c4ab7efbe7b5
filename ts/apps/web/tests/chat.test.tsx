// The chat page's own rules: addresses, calls out of parts, blocks, groups, words. Whole scenes are played in a real browser.
import type { OpenCall, Thread } from "@farhand/client";
import { type CardView, viewOf } from "@farhand/react";
import { cleanup, fireEvent, render } from "@testing-library/react";
import type { UIMessage } from "ai";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { baseOf } from "../src/base.ts";
import { callsOf, endsOf, factsOf } from "../src/chat/calls.ts";
import { Composer } from "../src/chat/composer.tsx";
import { Drafts } from "../src/chat/drafts.ts";
import { timeOf } from "../src/chat/parts.tsx";
import type { Conversation } from "../src/chat/conversation.ts";
import { recorded } from "../src/chat/record.ts";
import { type Signs, stateOf } from "../src/chat/run-state.ts";
import { agoOf } from "../src/chat/inbox.tsx";
import { sandboxFor } from "../src/chat/panel.tsx";
import { hrefOf, routeOf } from "../src/chat/route.ts";
import { iconFor } from "../src/chat/starters.ts";
import { groupsOf } from "../src/chat/chats.tsx";
import { blocksOf } from "../src/chat/message.tsx";
import { ENGLISH } from "../src/chat/words.ts";

afterEach(cleanup);
beforeEach(() => void (drafts = new Drafts(undefined)));

const fact: OpenCall = {
  callId: "call_1", threadId: "t", title: "Hello", tool: "delete_file", input: { path: "a" }, phase: "asking",
  executor: "server", deadline: null, card: null, openedAt: "2026-11-01T08:00:00.000Z", approvalId: "apr_1",
};

const part = (state: string, more: object = {}): UIMessage["parts"][number] =>
  ({ type: "tool-delete_file", toolCallId: "call_1", state, input: { path: "a" }, ...more }) as UIMessage["parts"][number];

const answer = (...parts: UIMessage["parts"]): UIMessage => ({ id: "run_1", role: "assistant", parts });

it("an address names a view, and strange ones name the first", () => {
  expect(routeOf("#/chat/a.b:c-1")).toEqual({ view: "chat", id: "a.b:c-1" });
  expect(["", "#/", "#/chat/", "#/chat/<b>", `#/chat/${"x".repeat(129)}`].map((hash) => routeOf(hash).view)).toEqual(Array(5).fill("new"));
  for (const route of [{ view: "inbox" }, { view: "new" }, { view: "chat", id: "t1" }] as const) {
    expect(routeOf(hrefOf(route))).toEqual(route);
  }
});

it("the server's paths begin where the page stands", () => {
  expect(["http://h/", "http://h/_farhand#/runs", "http://h/agent/", "http://h/agent/?token=x#/inbox"].map(baseOf)).toEqual(["", "", "/agent", "/agent"]);
});

it("parts become calls, and the server's word counts more than an old part", () => {
  const phase = (state: string, facts: OpenCall[] = [], more: object = {}): string | undefined =>
    callsOf([answer(part(state, more))], new Map(facts.map((each) => [each.callId, each]))).get("call_1")?.phase;
  expect(phase("input-streaming")).toBe("writing");
  expect(phase("input-streaming", [{ ...fact, executor: "client", phase: "ready" }])).toBe("ready");
  expect(phase("approval-requested", [fact], { approval: { id: "apr_1" } })).toBe("asking");
  expect(phase("approval-requested", [{ ...fact, phase: "ready" }], { approval: { id: "apr_1" } })).toBe("ready");
  expect(["approval-responded", "input-available"].map((state) => phase(state))).toEqual(["ready", "ready"]);
  expect(["output-available", "output-error", "output-denied"].map((state) => phase(state))).toEqual(["settled", "settled", "settled"]);
});

it("a call whose time is over is known by the record, not by its words", () => {
  const stored = { type: "tool-delete_file", toolCallId: "call_1", state: "output-error", errorText: "Zu spät.", outcome: "timed_out", afterSec: 60, tookMs: 60_004 };
  const thread: Thread = { id: "t", title: "", state: "done", messages: [{ id: "run_1", role: "assistant", parts: [stored] }], openCalls: [] };
  const calls = callsOf([answer(part("output-error", { errorText: "Zu spät." }))], factsOf(thread));
  const known = { facts: factsOf(thread), ends: endsOf(thread), running: new Set<string>(), deliveries: new Map(), run: { state: "idle" } as const };
  const view = viewOf(known, calls.get("call_1")!, { seenOpen: new Set(), reasons: new Map() });
  expect(view).toMatchObject({ state: { name: "timed-out", afterSec: 60 }, tookMs: 60_004 });
});

it("the person is waited for only where something is asked of them", () => {
  const far = new Date(Date.now() + 3 * 86_400_000).toISOString();
  const record = (state: Thread["state"], ...openCalls: OpenCall[]): Thread => ({ id: "t", title: "", state, messages: [], openCalls });
  const card = (name: "open" | "sending" | "running" | "done", id = "call_1"): CardView =>
    ({ call: { id, tool: "t", phase: "ready", input: {} }, kind: "confirm", executor: "frontend", state: { name } }) as unknown as CardView;
  const state = (thread: Thread | undefined, more: Partial<Signs> = {}): string =>
    stateOf(thread, { isOpen: false, isEmpty: false, cards: [], hasError: false, wasStopped: false, ...more });
  const question: OpenCall = { ...fact, executor: "frontend", phase: "ready" };
  expect(state(record("waiting", question))).toBe("Parked");
  expect(state(record("waiting", { ...question, deadline: far }), { cards: [card("open")] })).toBe("Parked");
  const soon = new Date(Date.now() + 30_000).toISOString();
  expect(state(record("waiting", { ...question, deadline: soon }), { cards: [card("open")] })).toBe("Waiting for you");
  expect(state(undefined, { isOpen: true, cards: [card("open"), card("running", "call_2")] })).toBe("Waiting for you");
  // a program, or another tab, has it; the last answer is in, and the run is about to go on
  expect(state(record("waiting", { ...question, phase: "taken", deadline: soon }), { cards: [card("running")] })).toBe("Running");
  expect(state(record("waiting", { ...question, executor: "client", deadline: soon }), { cards: [card("running")] })).toBe("Running");
  expect(state(record("waiting"), { cards: [card("done")] })).toBe("Thinking");
  // what the person has said is on its way
  for (const isOpen of [true, false]) {
    expect(state(record("waiting", { ...question, deadline: far }), { isOpen, cards: [card("sending")] })).toBe("Thinking");
  }
  expect(["done", "stopped", "failed"].map((each) => state(record(each as Thread["state"])))).toEqual(["Done", "Stopped", "Failed"]);
  expect([state(undefined, { isEmpty: true }), state(undefined, { wasStopped: true }), state(undefined, { hasError: true })]).toEqual(["New", "Stopped", "Failed"]);
});

it("finished calls that follow each other are one list; open ones are left to the end", () => {
  const message = answer(
    { type: "step-start" }, { type: "text", text: "One. " }, part("output-available"), part("output-available", { toolCallId: "call_2" }),
    { type: "step-start" }, { type: "text", text: " " }, { type: "text", text: "Two." }, part("input-available", { toolCallId: "call_3" }),
  );
  const memory = { seenOpen: new Set<string>(), reasons: new Map<string, string>() };
  const known = { facts: new Map(), running: new Set<string>(), deliveries: new Map(), run: { state: "idle" } as const };
  const views = new Map([...callsOf([message], new Map())].map(([id, call]) => [id, viewOf(known, call, memory)]));
  const blocks = blocksOf(message, views);
  expect(blocks.map((block) => (block.kind === "calls" ? block.views.map(({ call }) => call.id) : block.text))).toEqual(["One.", ["call_1", "call_2"], "Two."]);
});

it("chats stand under the day they were last used on", () => {
  const now = new Date(2026, 10, 16, 9);
  const row = (id: string, at: Date): Parameters<typeof groupsOf>[0][number] => ({ id, title: id, state: "done", updatedAt: at.toISOString(), openCalls: 0 });
  const rows = [row("a", new Date(2026, 10, 16, 0, 1)), row("b", new Date(2026, 10, 15, 23, 59)), row("c", new Date(2026, 9, 1)), row("d", new Date(2025, 1, 1))];
  expect(groupsOf(rows, now, ENGLISH).map(([name, each]) => [name, each.map(({ id }) => id)])).toEqual([["Today", ["a"]], ["Yesterday", ["b"]], ["Earlier", ["c", "d"]]]);
});

it("a page beside the chat is sandboxed, and one of our own origin cannot use it", () => {
  const words = (url: string): string[] => sandboxFor(new URL(url), "http://127.0.0.1:8787").split(" ");
  expect(words("https://example.org")).toContain("allow-same-origin");
  expect(words("http://127.0.0.1:8787/x")).not.toContain("allow-same-origin");
  expect(words("https://example.org").some((word) => word.startsWith("allow-top-navigation"))).toBe(false);
});

it("a chat in the list has the icon of what it is about", () => {
  expect(iconFor("Where am I?")).not.toBe(iconFor("Please delete all my drafts"));
  expect(iconFor("Hello")).toBe(iconFor("Something else"));
  // its title says what it is, what it asks for may name other things
  expect(iconFor("Open a page", "Open the lamp form")).toBe(iconFor("Open a page"));
  expect(iconFor("Try it", "Open the lamp form")).toBe(iconFor("lamp"));
});

it("what was said before an answer failed stays on the page, though the server does not keep it", () => {
  const asked: UIMessage = { id: "m1", role: "user", parts: [{ type: "text", text: "Tell me" }] };
  const said: UIMessage = { id: "run_1", role: "assistant", parts: [{ type: "text", text: "Once upon a" }] };
  const thread = (state: string): Thread => ({ id: "t", title: "", state, messages: [asked as unknown as Thread["messages"][number]], openCalls: [], runId: "run_1" });
  expect(recorded(thread("failed"), [asked, said])).toEqual([asked, said]);
  expect(recorded(thread("done"), [asked, said])).toEqual([asked]);
  expect(recorded({ ...thread("failed"), runId: "run_2" }, [asked, said])).toEqual([asked]);
});

let drafts: Drafts;

function conversationOf(state: Conversation["state"], send = vi.fn(), stop = vi.fn()): Conversation {
  const needsAnswers = state === "Waiting for you" || state === "Parked";
  return { state, needsAnswers, isLoaded: true, id: "t", send, stop, returned: undefined, host: { cards: [] } } as unknown as Conversation;
}

it("the box is off while answers are needed, and Stop always works", () => {
  const stop = vi.fn();
  const { getByRole } = render(<Composer drafts={drafts} place="t" talk={conversationOf("Waiting for you", vi.fn(), stop)} />);
  const box = getByRole("textbox", { name: "Message" }) as HTMLTextAreaElement;
  expect([box.readOnly, box.placeholder]).toEqual([true, "Answer above to continue"]);
  fireEvent.click(getByRole("button", { name: "Stop" }));
  expect(stop).toHaveBeenCalledOnce();
});

it("Enter sends once, Shift and Enter and half-written words do not", () => {
  const send = vi.fn();
  const { getByRole } = render(<Composer drafts={drafts} place="t" talk={conversationOf("Done", send)} />);
  const box = getByRole("textbox", { name: "Message" });
  fireEvent.keyDown(box, { key: "Enter" });
  fireEvent.change(box, { target: { value: "  hello " } });
  fireEvent.keyDown(box, { key: "Enter", shiftKey: true });
  expect(send).not.toHaveBeenCalled();
  fireEvent.keyDown(box, { key: "Enter" });
  fireEvent.keyDown(box, { key: "Enter" });
  expect(send.mock.calls).toEqual([["hello", []]]);
});

it("a message is not sent by itself without the file whose upload failed", async () => {
  const send = vi.fn();
  class FailingRequest extends EventTarget {
    readonly upload = new EventTarget();
    readonly open = (): void => undefined;
    readonly setRequestHeader = (): void => undefined;
    readonly send = (): void => void setTimeout(() => this.dispatchEvent(new Event("error")));
  }
  vi.stubGlobal("XMLHttpRequest", FailingRequest);
  const { container, getByRole } = render(<Composer drafts={drafts} place="t" talk={conversationOf("Done", send)} />);
  const box = getByRole("textbox", { name: "Message" });
  fireEvent.change(container.querySelector("input[type=file]") as Element, { target: { files: [new File(["x"], "notes.txt")] } });
  fireEvent.change(box, { target: { value: "here they are" } });
  fireEvent.keyDown(box, { key: "Enter" });
  await vi.waitFor(() => expect(container.querySelector("progress, [role=progressbar]")).toBeNull(), 20_000);
  await vi.waitFor(() => expect(container.textContent).toContain("notes.txt"), 20_000);
  expect(send).not.toHaveBeenCalled();
  fireEvent.keyDown(box, { key: "Enter" });
  expect(send.mock.calls).toEqual([["here they are", []]]);
  expect(container.textContent, "it did not go with the message").toContain("notes.txt");
  vi.unstubAllGlobals();
});

it("a file that the server refuses says why, and its code links to the explanation", async () => {
  class RefusedRequest {
    readonly upload = {};
    readonly open = (): void => undefined;
    readonly setRequestHeader = (): void => undefined;
    readonly status = 413;
    readonly responseText = '{"error": {"code": "too_large", "message": "Your files are too large. Delete chats that contain files."}}';
    onload = (): void => undefined;
    readonly send = (): void => void setTimeout(() => this.onload());
  }
  vi.stubGlobal("XMLHttpRequest", RefusedRequest);
  const { container, findByRole } = render(<Composer drafts={drafts} place="refused" talk={conversationOf("Done", vi.fn())} />);
  fireEvent.change(container.querySelector("input[type=file]") as Element, { target: { files: [new File(["x"], "film.zip")] } });
  const alert = await findByRole("alert", {}, { timeout: 20_000 });
  expect(alert.textContent).toBe("Your files are too large. Delete chats that contain files. too_large");
  expect(alert.querySelector("a")?.getAttribute("href")).toBe("/errors/too_large");
  vi.unstubAllGlobals();
});

it("what is entered before an answer is over is sent when it is, unless it is changed or stopped", () => {
  const send = vi.fn();
  const { getByRole, queryByText, rerender } = render(<Composer drafts={drafts} place="t" talk={conversationOf("Thinking", send)} />);
  const box = getByRole("textbox", { name: "Message" });
  const enter = (text: string): void => {
    fireEvent.change(box, { target: { value: text } });
    fireEvent.keyDown(box, { key: "Enter" });
  };
  enter("stopped");
  rerender(<Composer drafts={drafts} place="t" talk={conversationOf("Stopped", send)} />);
  rerender(<Composer drafts={drafts} place="t" talk={conversationOf("Thinking", send)} />);
  enter("changed");
  fireEvent.change(box, { target: { value: "changed my mind" } });
  rerender(<Composer drafts={drafts} place="t" talk={conversationOf("Done", send)} />);
  expect(send).not.toHaveBeenCalled();
  rerender(<Composer drafts={drafts} place="t" talk={conversationOf("Running", send)} />);
  enter("next");
  expect(queryByText("Sent when this answer is complete")).not.toBeNull();
  rerender(<Composer drafts={drafts} place="t" talk={conversationOf("Done", send)} />);
  rerender(<Composer drafts={drafts} place="t" talk={conversationOf("Thinking", send)} />);
  rerender(<Composer drafts={drafts} place="t" talk={conversationOf("Done", send)} />);
  expect(send.mock.calls).toEqual([["next", []]]);
});

it("times are formatted for people", () => {
  const now = new Date(2026, 10, 16, 9, 0).getTime();
  expect(timeOf(now + 60_000, now)).not.toContain(",");
  expect(timeOf(now + 3 * 86_400_000, now)).toMatch(/^Thu, \D?\d/);
  expect(timeOf(now + 8 * 86_400_000, now)).toMatch(/24.*,/);
  expect([5_000, 130_000, 3 * 3_600_000, 50 * 3_600_000].map((ms) => agoOf(now - ms, ENGLISH, now))).toEqual(["just now", "2 min ago", "3 h ago", "2 d ago"]);
});

it("what a discarded step had begun to write is no card; what the last step writes is one", () => {
  const tool = (toolCallId: string, state: string): object => ({ type: "tool-ask_text", toolCallId, state, input: {} });
  const step = { type: "step-start" };
  const message = { id: "m", role: "assistant", parts: [step, tool("done", "output-available"), tool("cut", "input-streaming"), tool("client", "input-streaming"), step, tool("now", "input-streaming")] } as unknown as UIMessage;
  const facts = new Map([["client", { callId: "client", input: {} } as OpenCall]]);
  expect([...callsOf([message], facts).keys()]).toEqual(["done", "client", "now"]);
});
