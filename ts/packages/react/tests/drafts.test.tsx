// What is typed and not sent yet: it outlives its card and the page, and goes with the call.
import { type Call, httpOf } from "@farhand/client";
import { act, cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { requirement } from "../../../tests/requirement.ts";
import { type CardHost, CardHostProvider, CardList, type CardView, ToolCard } from "../src/index.ts";
import { pressesAre } from "./trust.ts";

const DELETE = { name: "delete_file", executor: "server", card: null, inputSchema: { type: "object", properties: { path: { type: "string" }, copies: { type: "integer" } } } };
const nothing = (): void => undefined;
let decisions: unknown[] = [];
let tellTools: () => void = nothing;

/** A page in a new life: nothing of it is left but what the browser keeps. */
function host(cards: readonly CardView[], more: Partial<CardHost> = {}): CardHost {
  const tools = new Promise<Response>((tell) => (tellTools = () => tell(Response.json({ tools: [DELETE] }))));
  return {
    http: httpOf({ url: "http://127.0.0.1:9", fetch: (() => tools) as typeof fetch }), cards, connection: { state: "open" }, threadId: "t1", answer: nothing, approve: (_, __, decision) => void decisions.push(decision),
    retry: nothing, discard: nothing, retryNow: nothing, ...more,
  };
}

const TEXT: Call = { id: "call_text", tool: "ask_text", phase: "ready", input: { question: "Which folder?" } };
const text = (call: Call = TEXT, state: CardView["state"] = { name: "open", deadline: undefined }): CardView => ({ call, kind: "text", card: "text", state, executor: "frontend" });
const settled = (outcome: Extract<Call, { phase: "settled" }>["outcome"]): Call => ({ ...TEXT, phase: "settled", input: TEXT.phase === "ready" ? TEXT.input : {}, outcome });
const ASKING: Call = { id: "call_delete", tool: "delete_file", phase: "asking", input: { path: "old.txt", copies: 1 }, approvalId: "a1" };
const approval: CardView = { call: ASKING, kind: "approval", state: { name: "open", deadline: undefined }, executor: "server" };
const kept = (): string[] => Array.from({ length: sessionStorage.length }, (_, index) => sessionStorage.key(index) ?? "");
const allow = (): HTMLButtonElement => screen.getByRole("button", { name: "Allow once" });
const pass = (ms: number): Promise<void> => act(async () => void (await vi.advanceTimersByTimeAsync(ms)));

beforeEach(() => {
  decisions = [];
  pressesAre("a person's");
  vi.useFakeTimers();
});
afterEach(() => {
  cleanup();
  sessionStorage.clear();
  vi.useRealTimers();
});

it("what was typed into a card is there again after a reload, and for no other call", () => {
  requirement("cards:drafts");
  render(<CardList host={host([text()])} />);
  fireEvent.change(screen.getByRole("textbox"), { target: { value: "Scans 2026" } });
  cleanup();
  render(<CardList host={host([text()])} />);
  expect(screen.getByRole<HTMLInputElement>("textbox").value).toBe("Scans 2026");
  cleanup();
  render(<CardList host={host([text({ ...TEXT, id: "call_text2" })])} />);
  expect(screen.getByRole<HTMLInputElement>("textbox").value).toBe("");
});

it("a changed input is there again after a reload, says so, and is what is allowed", async () => {
  requirement("cards:drafts");
  render(<CardList host={host([approval])} />);
  tellTools();
  await pass(0);
  expect(document.body.textContent).not.toContain("Changed by you");
  fireEvent.click(screen.getByRole("button", { name: "Edit" }));
  fireEvent.change(screen.getByRole("textbox", { name: /copies/i }), { target: { value: "3" } });
  expect(document.body.textContent).toContain("Changed by you");
  cleanup();
  render(<CardList host={host([approval])} />);
  tellTools();
  await pass(0);
  expect(document.body.textContent).toContain("Changed by you");
  expect(screen.getByRole<HTMLInputElement>("textbox", { name: /copies/i }).value).toBe("3");
  await pass(300);
  await pass(700);
  fireEvent.click(allow());
  expect(decisions).toEqual([{ approved: true, scope: "once", input: { path: "old.txt", copies: 3 } }]);
});

it("the title of a changed call says nothing that was made from the old input", async () => {
  requirement("cards:drafts");
  render(<CardList host={host([{ ...approval, title: "Delete old.txt", tool: { ...DELETE, title: "Delete …" } }])} />);
  await pass(0);
  expect(screen.getByRole("heading").textContent).toBe("Delete old.txt?");
  fireEvent.click(screen.getByRole("button", { name: "Edit" }));
  fireEvent.change(screen.getByRole("textbox", { name: /path/i }), { target: { value: "new.txt" } });
  expect(screen.getByRole("heading").textContent).toBe("Delete file?");
});

it("a kept change that does not fit the fields of the tool can be undone and not be allowed", async () => {
  requirement("cards:drafts");
  sessionStorage.setItem("farhand:draft:http://127.0.0.1:9 call_delete input", JSON.stringify({ path: "new.txt", mode: "fast" }));
  render(<CardList host={host([approval])} />);
  tellTools();
  await pass(300);
  await pass(5_000);
  expect(allow().disabled).toBe(true);
  expect(document.body.textContent).toContain("no longer fit this tool");
  fireEvent.click(screen.getByRole("button", { name: "Undo changes" }));
  await pass(5_000);
  fireEvent.click(allow());
  expect(decisions).toEqual([{ approved: true, scope: "once" }]);
});

it("a change that was begun before the tool was known is allowed with the rest as it was", async () => {
  requirement("cards:drafts");
  sessionStorage.setItem("farhand:draft:http://127.0.0.1:9 call_delete input", JSON.stringify({ path: "new.txt" }));
  render(<CardList host={host([approval])} />);
  tellTools();
  await pass(300);
  await pass(700);
  fireEvent.click(allow());
  expect(decisions).toEqual([{ approved: true, scope: "once", input: { copies: 1, path: "new.txt" } }]);
});

it.each(["{", "[1]", '{"path": 1}', "null"])("what cannot be a draft is left alone: %s", async (stored) => {
  requirement("cards:drafts");
  sessionStorage.setItem("farhand:draft:http://127.0.0.1:9 call_delete input", stored);
  render(<CardList host={host([approval])} />);
  await pass(0);
  expect(screen.getByRole("button", { name: "Edit" })).toBeTruthy();
});

it("a draft goes with its call; one that came too late stays to be read", () => {
  requirement("cards:drafts");
  const page = host([text()]);
  const { rerender } = render(<CardList host={page} />);
  fireEvent.change(screen.getByRole("textbox"), { target: { value: "Scans 2026" } });
  expect(kept()).toHaveLength(1);
  rerender(<CardList host={{ ...page, cards: [text(settled({ kind: "timed_out", after_sec: 300 }), { name: "timed-out", afterSec: 300 })] }} />);
  expect(kept()).toHaveLength(1);
  rerender(<CardList host={{ ...page, cards: [text(settled({ kind: "success", output: "Other" }), { name: "done" })] }} />);
  expect(kept()).toEqual([]);
});

it("an inbox lets go of what was typed when the call has left it", () => {
  requirement("cards:drafts");
  const page = host([text()], { threadId: undefined });
  const { rerender } = render(<CardList host={page} />);
  fireEvent.change(screen.getByRole("textbox"), { target: { value: "Scans 2026" } });
  rerender(<CardList host={{ ...page, cards: [] }} />);
  expect(kept()).toEqual([]);
});

it("a page that may not keep anything still has what was typed when the card comes back", () => {
  requirement("cards:drafts");
  vi.spyOn(Storage.prototype, "setItem").mockImplementation(() => {
    throw new DOMException("full", "QuotaExceededError");
  });
  const page = host([text()]);
  render(<CardList host={page} />);
  fireEvent.change(screen.getByRole("textbox"), { target: { value: "Scans 2026" } });
  cleanup();
  render(<CardHostProvider host={page}><CardList host={page} /></CardHostProvider>);
  expect(screen.getByRole<HTMLInputElement>("textbox").value).toBe("Scans 2026");
  vi.restoreAllMocks();
});

const LATE: CardView = text(settled({ kind: "timed_out", after_sec: 60 }), { name: "timed-out", afterSec: 60 });
const again = (more: { readonly id?: string; readonly tool?: string; readonly input?: object } = {}): CardView => text({ id: "call_again", tool: "ask_text", phase: "ready", input: { question: "Which folder, then?" }, ...more } as Call);
const asksAgain = (): void => void fireEvent.click(screen.getByRole("button", { name: "Ask me again" }));
const field = (): string => screen.getByRole<HTMLInputElement>("textbox").value;

function typedTooLate(): void {
  render(<CardList host={host([text()])} />);
  fireEvent.change(screen.getByRole("textbox"), { target: { value: "Scans 2026" } });
  cleanup();
  render(<CardHostProvider host={host([LATE], { say: nothing })}><ToolCard view={LATE} /></CardHostProvider>);
}

it("what was typed when the time ran out is in the field again once the person is asked again, also after a reload", () => {
  typedTooLate();
  asksAgain();
  cleanup();
  render(<CardList host={host([LATE, again()])} />);
  expect(field()).toBe("Scans 2026");
  fireEvent.change(screen.getByRole("textbox"), { target: { value: "" } });
  cleanup();
  render(<CardList host={host([LATE, again(), again({ id: "call_third" })])} />);
  expect(screen.getAllByRole<HTMLInputElement>("textbox").map(({ value }) => value)).toEqual(["", ""]);
});

it.each([
  ["without a press", again(), {}],
  ["another tool", again({ tool: "ask_name" }), {}],
  ["other options", again({ input: { question: "Which folder?", options: ["a"] } }), {}],
  ["another chat", again(), { threadId: "t2" }],
])("what was typed too late goes into no field of %s", (what, view, more) => {
  typedTooLate();
  what === "without a press" || asksAgain();
  cleanup();
  render(<CardList host={host([view], more)} />);
  expect(field()).toBe("");
});
