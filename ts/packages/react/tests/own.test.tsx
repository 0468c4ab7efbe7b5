// Cards and words of a page's own, marks of approvals, and a card that the page hides.
import { type Call, httpOf } from "@farhand/client";
import { act, cleanup, configure, fireEvent, render, screen } from "@testing-library/react";
import type { ReactNode } from "react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { requirement } from "../../../tests/requirement.ts";
import { type CardHost, CardHostProvider, CardList, type CardProps, type CardView, Rows, ToolCard } from "../src/index.ts";
import { pressesAre } from "./trust.ts";

// as long as any other wait: the machine may be busy
configure({ asyncUtilTimeout: 20_000 });

let answers: unknown[] = [];
let asked: string[] = [];
let allowed: string[] = [];
const server = (path: string, { method = "GET" }: RequestInit = {}): Promise<Response> => {
  asked.push(`${method} ${path}`);
  allowed = method === "DELETE" ? [] : allowed;
  return Promise.resolve(Response.json({ ok: true, tools: [], allowed: allowed.map((tool) => ({ tool })) }));
};
const nothing = (): void => undefined;
const host = (cards: readonly CardView[] = []): CardHost => ({
  http: httpOf({ url: "http://127.0.0.1:9", fetch: server as typeof fetch }),
  cards, connection: { state: "open" }, threadId: "t 1", approve: (_, __, decision) => void answers.push(decision), retry: nothing, discard: nothing, retryNow: nothing, say: nothing,
  answer: (_, outcome) => void answers.push(outcome),
});

beforeEach(() => {
  answers = [];
  asked = [];
  allowed = ["delete_file"];
  pressesAre("a person's");
});
afterEach(cleanup);
afterEach(() => void vi.restoreAllMocks());
afterEach(() => sessionStorage.clear());

const ready = (card: string, kind: CardView["kind"]): CardView => ({ call: { id: `call_${card}`, tool: card, phase: "ready", input: { message: "Go on?" } }, kind, card, state: { name: "open", deadline: undefined }, executor: "frontend" });

function Rating({ view, isOff, answer, skip }: CardProps): ReactNode {
  return <div><button type="button" disabled={isOff} onClick={() => answer(3)}>{`Three for ${view.call.tool}`}</button><button type="button" onClick={skip}>Not now</button></div>;
}

it("a page replaces cards and adds its own, by the names that tools give", () => {
  requirement("cards:own");
  render(<CardList host={host([ready("rating", "unknown"), ready("confirm", "confirm"), ready("constructor", "unknown")])} cards={{ rating: Rating, confirm: Rating }} />);
  fireEvent.click(screen.getByRole("button", { name: "Three for rating" }));
  fireEvent.click(screen.getByRole("button", { name: "Three for confirm" }));
  fireEvent.click(screen.getAllByRole("button", { name: "Not now" })[0] as Element);
  expect(answers).toEqual([{ kind: "success", output: 3 }, { kind: "success", output: 3 }, { kind: "failure", error: "skipped by the user" }]);
});

it("the approval card is not replaced", () => {
  requirement("cards:own");
  const call: Call = { id: "c", tool: "delete_file", phase: "asking", input: { path: "a" }, approvalId: "a" };
  render(<CardList host={host([{ call, kind: "approval", card: "rating", state: { name: "open", deadline: undefined }, executor: "server" }])} cards={{ rating: Rating, approval: Rating }} />);
  expect(screen.getByRole("button", { name: "Allow once" })).toBeTruthy();
});

it("a page says it in its own words", () => {
  requirement("cards:own");
  render(<CardList host={host([ready("confirm", "confirm")])} words={{ yes: "Ja", needed: (count) => `Noch ${count}` }} />);
  expect(screen.getByRole("button", { name: "Ja" })).toBeTruthy();
  expect(document.body.textContent).toContain("Noch 1");
  expect(screen.getByRole("button", { name: "No" })).toBeTruthy();
});

it("why an answer has to be given again, and how long there is for it, is said in the page's words, too", () => {
  requirement("cards:own");
  const call: Call = { id: "c", tool: "delete_file", phase: "asking", input: { path: "a" }, approvalId: "a" };
  const german = { signedOut: "Abgemeldet.", notDelivered: "Nicht angekommen", decideAgain: (reason: string) => `${reason} Bitte neu entscheiden.`, days: (count: number) => `${count} Tage`, saved: (time: string | undefined) => `Noch ${time}.` };
  const shown = (state: CardView["state"]): string | null => {
    cleanup();
    render(<CardList host={host([{ call, kind: "approval", state, executor: "server" }])} words={german} />);
    return document.body.textContent;
  };
  const parked = { name: "parked", deadline: Date.now() + 3 * 86_400_000 } as const;
  expect(shown({ ...parked, refusal: { status: 401, reason: "unauthenticated" } })).toMatch(/Noch 3 Tage\..*Abgemeldet\. Bitte neu entscheiden\./);
  expect(shown({ ...parked, refusal: { status: 0, reason: "Your answer did not reach the server." } })).toContain("Nicht angekommen. Bitte neu entscheiden.");
  expect(shown({ ...parked, refusal: { status: 403, reason: "May not approve." } })).toContain("May not approve. Bitte neu entscheiden.");
});

const guessed = (kind: CardView["kind"], input: Record<string, unknown>, more: Partial<CardView> = {}): CardView => ({ call: { id: `call_${kind}`, tool: "overwrite_file", phase: "ready", input }, kind, state: { name: "open", deadline: undefined }, executor: "frontend", ...more });

it("a question of a tool's own shows its title and all of its input", () => {
  requirement("cards:guessed");
  const shown = (view: CardView): string => {
    cleanup();
    render(<CardList host={host([view])} />);
    return [screen.getByRole("heading").textContent, ...Array.from(document.querySelectorAll(".fh-table tr"), (row) => row.textContent)].join(" | ");
  };
  const facts = { card: null, executor: "frontend" };
  expect(shown(guessed("confirm", { text: "Shall I go on?" }))).toBe("Shall I go on?");
  expect(shown(guessed("confirm", { path: "old.txt" }))).toBe("Overwrite file | pathold.txt");
  expect(shown(guessed("confirm", { path: "old.txt" }, { title: "Overwrite old.txt?" }))).toBe("Overwrite old.txt? | pathold.txt");
  expect(shown(guessed("confirm", { text: "Why?" }, { tool: { ...facts, title: "Explain" } }))).toBe("Explain | textWhy?");
  expect(shown(guessed("confirm", { message: "Go on?", path: "old.txt", timeout_sec: 9, note: "" }, { card: "confirm" }))).toBe("Go on? | pathold.txt");
  expect(shown(guessed("text", { site: "example.org" }))).toBe("Overwrite file | siteexample.org");
  expect(shown(guessed("select", { item: "lamp", options: ["a", "b"] }))).toBe("Overwrite file | itemlamp");
});

it("a title that is a question keeps its own question mark", () => {
  const call: Call = { id: "c", tool: "delete_file", phase: "asking", input: { path: "a" }, approvalId: "a" };
  const asking: CardView = { call, kind: "approval", state: { name: "open", deadline: undefined }, executor: "server" };
  render(<CardList host={host([{ ...asking, title: "Delete a?" }, { ...asking, call: { ...call, id: "d" }, title: "Delete b" }])} />);
  expect(screen.getAllByRole("heading").map(({ textContent }) => textContent)).toEqual(["Delete a?", "Delete b?"]);
});

let calls = 0;
const over = (more: Partial<CardView>): CardView => ({ call: { id: `c${(calls += 1)}`, tool: "delete_file", phase: "settled", input: { path: "a" }, outcome: { kind: "success", output: { deleted: "a" } } }, kind: "unknown", state: { name: "done" }, executor: "server", ...more });

it("a call that was always allowed says so, and that is taken back there", async () => {
  requirement("cards:marks");
  const chat = host();
  const { rerender } = render(<CardHostProvider host={chat}><Rows views={[over({ isAlwaysAllowed: true }), over({ isAlwaysAllowed: true })]} /></CardHostProvider>);
  const [undo] = await screen.findAllByRole("button", { name: "undo" });
  expect(document.body.textContent).toContain("always allowed · undo");
  fireEvent.click(undo!);
  // the other call of the same tool says so, too
  await vi.waitFor(() => expect(screen.getAllByText("asks again")).toHaveLength(2), 20_000);
  expect(asked).toContain("DELETE http://127.0.0.1:9/api/chat/t%201/allowed/delete_file");
  // a later call says that it was allowed again
  allowed = ["delete_file"];
  rerender(<CardHostProvider host={chat}><Rows views={[over({ isAlwaysAllowed: true })]} /></CardHostProvider>);
  await screen.findByRole("button", { name: "undo" });
});

it("a page that was opened is told as that, and any other as the question that its card asked", () => {
  const call = (phase: object): Call => ({ id: `c${(calls += 1)}`, tool: "open_url", input: { url: "https://pages.example/a" }, phase: "settled", ...phase }) as Call;
  const page = (state: CardView["state"]): CardView => over({ kind: "open_page", executor: "frontend", state, call: call({ outcome: { kind: "success", output: { url: "https://pages.example/a", viewKey: "v" } } }) });
  render(<CardHostProvider host={host()}><Rows views={[page({ name: "done" }), page({ name: "skipped" })]} /><ToolCard view={page({ name: "timed-out", afterSec: 60 })} /></CardHostProvider>);
  expect([...document.querySelectorAll(".fh-title")].map(({ textContent }) => textContent)).toEqual(["Page opened", "Open pages.example", "Timed out: “Open pages.example”"]);
});

it("a call with a changed input says so; what was skipped, denied or stopped has no cross", () => {
  requirement("cards:marks");
  render(<CardHostProvider host={host()}><Rows views={[over({ isEdited: true }), over({ state: { name: "skipped" } }), over({ state: { name: "denied", reason: "Wrong" } }), over({ state: { name: "failed", words: "stopped by the user", isCancelled: true } }), over({ state: { name: "failed", words: "No paper." } })]} /></CardHostProvider>);
  expect([...document.querySelectorAll(".fh-row > svg")].map((mark) => mark.getAttribute("aria-label"))).toEqual(["Done", "Not done", "Not done", "Not done", "Failed"]);
  expect(document.body.textContent).not.toContain("answered by");
  expect(document.body.textContent).toMatch(/changed by you.*Skipped.*Denied: “Wrong”.*No paper\./s);
});

it("a call that somebody else answered says who it was", () => {
  requirement("threads:answered-by");
  render(<CardHostProvider host={host()}><Rows views={[over({ answeredBy: "Joan", isEdited: true })]} /><ToolCard view={over({ answeredBy: "Ada", state: { name: "denied", reason: "Wrong" } })} /></CardHostProvider>);
  expect(document.body.textContent).toMatch(/answered by Joan.*changed.*Denied: “Wrong” · answered by Ada/s);
  expect(document.body.textContent).not.toContain("changed by you");
});

it("a list of parameters that the page hides has not been read", () => {
  requirement("approval:readable");
  vi.useFakeTimers();
  let isShown = false;
  HTMLElement.prototype.checkVisibility = () => isShown;
  try {
    const call: Call = { id: "c", tool: "delete_file", phase: "asking", input: { path: "a" }, approvalId: "a" };
    render(<CardHostProvider host={host()}><ToolCard view={{ call, kind: "approval", state: { name: "open", deadline: undefined }, executor: "server" }} /></CardHostProvider>);
    const allow = (): HTMLButtonElement => screen.getByRole("button", { name: "Allow once" });
    act(() => void vi.advanceTimersByTime(5_000));
    expect(allow().disabled).toBe(true);
    isShown = true;
    act(() => void vi.advanceTimersByTime(300));
    act(() => void vi.advanceTimersByTime(700));
    expect(allow().disabled).toBe(false);
  } finally {
    // the DOM of the tests has none of its own
    Reflect.deleteProperty(HTMLElement.prototype, "checkVisibility");
    vi.useRealTimers();
  }
});

it("typed text stays readable when the time is over, and all of a clipboard text can be seen before it is copied", () => {
  requirement("cards:typed");
  const of = host();
  const text = { ...ready("text", "text") };
  const { rerender } = render(<CardHostProvider host={of}><ToolCard view={text} /></CardHostProvider>);
  fireEvent.change(screen.getByRole("textbox"), { target: { value: "Scans 2026" } });
  const call: Call = { id: text.call.id, tool: "text", phase: "settled", input: { message: "Go on?" }, outcome: { kind: "timed_out", after_sec: 300 } };
  rerender(<CardHostProvider host={of}><ToolCard view={{ ...text, call, state: { name: "timed-out", afterSec: 300 } }} /></CardHostProvider>);
  expect(document.body.textContent).toMatch(/Timed out: “Go on\?”.*No answer within 5 min.*What you had typed, not sent:.*Scans 2026.*Ask me again/);
  cleanup();
  const lines = { ...ready("clipboard", "clipboard"), call: { id: "c2", tool: "copy", phase: "ready", input: { text: "one\ntwo\u202e\nthree" } } } as const;
  render(<CardHostProvider host={of}><ToolCard view={lines} /></CardHostProvider>);
  expect(document.body.textContent).not.toContain("three");
  fireEvent.click(screen.getByRole("button", { name: "Show all 3 lines" }));
  expect(document.querySelector(".fh-whole")?.textContent).toBe("one⏎\ntwoU+202E⏎\nthree");
});
