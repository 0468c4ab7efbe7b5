// An approval cannot be given by accident, and shows what it allows.
import { type Call, type Decision, httpOf, EMPTY_CONVERSATION } from "@farhand/client";
import { act, cleanup, fireEvent, render, screen } from "@testing-library/react";
import type { ReactNode } from "react";
import { afterAll, afterEach, beforeEach, expect, it, vi } from "vitest";
import { requirement } from "../../../tests/requirement.ts";
import { type CardHost, CardHostProvider, CardList, cardsMoved, type CardState, ToolCard, viewOf } from "../src/index.ts";
import { pressesAre } from "./trust.ts";

let decisions: Decision[] = [];
let time = 0;

beforeEach(() => {
  vi.useFakeTimers();
  // the clock of a page never goes back
  vi.advanceTimersByTime((time += 10_000));
  decisions = [];
  // drafts are kept for each server
  host = { ...host, http: httpOf({ url: "http://127.0.0.1:9" }) };
  pressesAre("a person's");
});
afterEach(() => void vi.useRealTimers());
// what these files remember is of a clock that is ahead of the real one: the next file of this process loads them anew
afterAll(() => void vi.resetModules());
afterEach(() => void vi.restoreAllMocks());
afterEach(() => void vi.unstubAllGlobals());
afterEach(cleanup);
afterEach(() => sessionStorage.clear());

const nothing = (): void => undefined;
let host: CardHost = {
  http: httpOf({ url: "http://127.0.0.1:9" }), cards: [], connection: { state: "open" }, answer: nothing, retry: nothing, discard: nothing, retryNow: nothing, say: nothing,
  approve: (_callId, _approvalId, decision) => void decisions.push(decision),
};
const asking = (input: Readonly<Record<string, unknown>>): Call => ({ id: "call_1", tool: "delete_file", phase: "asking", input, approvalId: "apr_1" });
const OPEN: CardState = { name: "open", deadline: undefined };

function card(input: Readonly<Record<string, unknown>> = { path: "old.txt" }, state: CardState = OPEN): ReactNode {
  return <CardHostProvider host={host}><ToolCard view={{ call: asking(input), kind: "approval", state, executor: "server" }} /></CardHostProvider>;
}

const button = (name: string | RegExp): HTMLButtonElement => screen.getByRole("button", { name });
const settle = (): void => act(() => void vi.advanceTimersByTime(700));

it("no press counts in the first 600 ms", () => {
  requirement("approval:deliberate");
  render(card());
  expect(button("Allow once").disabled).toBe(true);
  fireEvent.click(button("Allow once"));
  fireEvent.keyDown(button("Deny"), { key: "a" });
  act(() => void vi.advanceTimersByTime(590));
  fireEvent.keyDown(button("Deny"), { key: "a" });
  expect([button("Allow once").disabled, decisions]).toEqual([true, []]);
  act(() => void vi.advanceTimersByTime(20));
  fireEvent.click(button("Allow once"));
  expect(decisions).toEqual([{ approved: true, scope: "once" }]);
});

it("a script cannot press it, nor its letters", () => {
  requirement("approval:deliberate");
  render(card());
  settle();
  pressesAre("a script's");
  button("Allow once").click();
  fireEvent.keyDown(button("Allow once"), { key: "a" });
  fireEvent.click(button("Always in this chat"));
  settle();
  button("Allow always in this chat").click();
  expect(decisions).toEqual([]);
});

it("a key that is held down presses nothing", () => {
  requirement("approval:deliberate");
  render(card());
  settle();
  // an Enter that is repeated would be a click, unless it is prevented
  expect(fireEvent.keyDown(button("Allow once"), { key: "Enter", repeat: true })).toBe(false);
  expect(fireEvent.keyDown(button("Allow once"), { key: "Enter" })).toBe(true);
  fireEvent.keyDown(button("Allow once"), { key: "a", repeat: true });
  expect(decisions).toEqual([]);
});

it("the second half of a double click is no press of what has come under it", () => {
  requirement("approval:deliberate");
  render(card());
  settle();
  fireEvent.pointerDown(document.body);
  fireEvent.pointerDown(button("Allow once"));
  fireEvent.click(button("Allow once"), { detail: 2 });
  expect(decisions).toEqual([]);
  settle();
  // long after the first it is a press of its own, however the system counts
  fireEvent.pointerDown(button("Allow once"));
  fireEvent.click(button("Allow once"), { detail: 2 });
  expect(decisions.length).toBe(1);
});

it("who presses the same place again and again allows nothing, however long the button has been there", () => {
  requirement("approval:deliberate");
  render(card());
  for (let presses = 0; presses < 8; presses += 1) {
    // a button that is off hears no click, and fingers are counted from one again
    fireEvent.pointerDown(button("Allow once"));
    fireEvent.click(button("Allow once"), { detail: (presses % 3) + 1 });
    act(() => void vi.advanceTimersByTime(200));
  }
  expect(decisions).toEqual([]);
  settle();
  fireEvent.pointerDown(button("Allow once"));
  fireEvent.click(button("Allow once"), { detail: 1 });
  expect(decisions.length).toBe(1);
});

function press(target: Element): void {
  fireEvent.pointerDown(target);
  fireEvent.click(target, { detail: 1 });
}

it("the places of many buttons are read together, and only of those that could be pressed", () => {
  requirement("approval:deliberate");
  const begun = vi.spyOn(globalThis, "setInterval");
  const ended = vi.spyOn(globalThis, "clearInterval");
  const cards = (state: CardState): ReactNode => (
    <CardHostProvider host={host}>
      {Array.from({ length: 10 }, (_, index) => <ToolCard key={index} view={{ call: { ...asking({ path: `${index}.txt` }), id: `call_${index}` }, kind: "approval", state: index < 4 ? OPEN : state, executor: "server" }} />)}
    </CardHostProvider>
  );
  const { rerender, unmount } = render(cards(OPEN));
  settle();
  const places = vi.spyOn(Element.prototype, "getBoundingClientRect");
  const shared = vi.spyOn(document.body, "scrollHeight", "get");
  const look = (): number[] => {
    places.mockClear();
    shared.mockClear();
    act(() => void vi.advanceTimersByTime(32));
    return [places.mock.calls.length, shared.mock.calls.length];
  };
  // what is around all of them is read once
  expect(look()).toEqual([10, 1]);
  rerender(cards({ name: "sending" }));
  expect(look()).toEqual([4, 1]);
  const timers = begun.mock.results.filter((_, index) => begun.mock.calls[index]?.[1] === 32).map(({ value }) => value as unknown);
  const isOver = (timer: unknown): boolean => ended.mock.calls.some(([each]) => each === timer);
  expect(timers.filter((timer) => !isOver(timer))).toHaveLength(1);
  unmount();
  expect(timers.filter((timer) => !isOver(timer))).toEqual([]);
});

it("a pointer under which the button has come presses nothing for a moment; a key does", () => {
  requirement("approval:deliberate");
  let top = 0;
  vi.spyOn(Element.prototype, "getBoundingClientRect").mockImplementation(() => new DOMRect(0, top, 90, 36));
  render(card());
  settle();
  const allow = button("Allow once");
  // a card above it has left or grown
  top = 60;
  press(allow);
  expect([allow.disabled, allow.getAttribute("aria-disabled"), decisions]).toEqual([false, "true", []]);
  fireEvent.click(allow, { detail: 0 });
  expect(decisions.length).toBe(1);
  settle();
  press(allow);
  expect([allow.getAttribute("aria-disabled"), decisions.length]).toEqual([null, 2]);
  // seen by a look, before any press
  top = 120;
  act(() => void vi.advanceTimersByTime(100));
  expect(allow.getAttribute("aria-disabled")).toBe("true");
  settle();
  // the page says that it has scrolled
  act(cardsMoved);
  press(allow);
  expect([allow.getAttribute("aria-disabled"), decisions.length]).toEqual(["true", 2]);
  settle();
  // what is scrolled got shorter, and the browser moved it down
  const extent = vi.spyOn(document.documentElement, "scrollHeight", "get").mockReturnValue(800);
  document.documentElement.scrollTop = 50;
  top = 70;
  press(allow);
  expect(decisions.length).toBe(2);
  settle();
  // somebody who scrolls sees where it goes, also while the list grows
  extent.mockReturnValue(900);
  document.documentElement.scrollTop = 100;
  top = 20;
  fireEvent.wheel(document.body);
  press(allow);
  expect(decisions.length).toBe(3);
  settle();
  // with the keyboard or the scrollbar, too
  document.documentElement.scrollTop = 60;
  top = 60;
  press(allow);
  expect(decisions.length).toBe(4);
  document.documentElement.scrollTop = 0;
});

it("a press that brings the window to the front, or closes a dialog of the browser, allows nothing", () => {
  requirement("approval:deliberate");
  const hasFocus = vi.spyOn(document, "hasFocus").mockReturnValue(false);
  render(card());
  settle();
  const allow = button("Allow once");
  expect([allow.disabled, allow.getAttribute("aria-disabled")]).toEqual([false, "true"]);
  hasFocus.mockReturnValue(true);
  press(allow);
  expect(decisions).toEqual([]);
  settle();
  press(allow);
  expect(decisions.length).toBe(1);
});

it("a consent and a place of the person are not sent by accident, either", () => {
  requirement("approval:deliberate");
  const answers: unknown[] = [];
  const ask = (kind: "confirm" | "location"): ReactNode => <ToolCard view={{ call: { id: `call_${kind}`, tool: "ask", phase: "ready", input: { message: "Delete all?" } }, kind, state: OPEN, executor: "frontend" }} />;
  const find = vi.fn();
  vi.stubGlobal("navigator", { geolocation: { getCurrentPosition: find } });
  render(<CardHostProvider host={{ ...host, answer: (_, outcome) => void answers.push(outcome) }}>{ask("confirm")}{ask("location")}</CardHostProvider>);
  const press = (): void => ["Yes", "Share once"].forEach((name) => fireEvent.click(button(name)));
  press();
  settle();
  pressesAre("a script's");
  press();
  expect([answers, find.mock.calls]).toEqual([[], []]);
  pressesAre("a person's");
  press();
  expect([answers.length, find.mock.calls.length]).toEqual([1, 1]);
});

it("letters count on a button of the card alone: not on its heading or parameters, not in a field, not elsewhere, not with another key", () => {
  requirement("approval:deliberate");
  render(<><input aria-label="Elsewhere" />{card()}</>);
  settle();
  fireEvent.keyDown(document.body, { key: "a" });
  fireEvent.keyDown(screen.getByLabelText("Elsewhere"), { key: "a" });
  fireEvent.keyDown(screen.getByRole("heading"), { key: "a" });
  fireEvent.keyDown(document.querySelector(".fh-inputs") as Element, { key: "a" });
  fireEvent.keyDown(button("Deny"), { key: "a", ctrlKey: true });
  fireEvent.click(button(/Edit/));
  fireEvent.keyDown(screen.getByRole("textbox", { name: "Path" }), { key: "a" });
  // nor on a button, for somebody who takes it for the field
  fireEvent.keyDown(button("Undo changes"), { key: "a" });
  fireEvent.click(button("Undo changes"));
  // nor where a pointer has pressed
  fireEvent.pointerDown(button(/Edit/).querySelector("svg") as Element);
  fireEvent.keyDown(button(/Edit/), { key: "a" });
  expect(decisions).toEqual([]);
  fireEvent.keyDown(button("Deny"), { key: "A" });
  expect(decisions.length).toBe(1);
  cleanup();
  render(card());
  settle();
  fireEvent.keyDown(button("Allow once"), { key: "d" });
  expect(screen.getByRole("textbox", { name: /Reason/ })).toBe(document.activeElement);
  expect(decisions.length).toBe(1);
});

it("the focus goes to the heading at most, and stays in a message box", () => {
  requirement("approval:deliberate");
  const cards = [{ call: asking({ path: "x" }), kind: "approval", state: OPEN, executor: "server" } as const];
  const page = (of: typeof cards): ReactNode => <><textarea aria-label="Message" /><CardList host={{ ...host, cards: of }} /></>;
  const { rerender } = render(page([]));
  screen.getByLabelText("Message").focus();
  rerender(page(cards));
  settle();
  expect(document.activeElement).toBe(screen.getByLabelText("Message"));
  rerender(page([]));
  (document.activeElement as HTMLElement).blur();
  rerender(page(cards));
  expect(document.activeElement).toBe(screen.getByRole("heading"));
  expect(document.querySelector("[aria-live=polite]")?.textContent).toBe("Approval needed: Delete file? 1 parameter.");
});

it("for the whole chat it says what it covers and takes a second press", () => {
  requirement("approval:deliberate");
  render(card());
  settle();
  fireEvent.click(button("Always in this chat"));
  expect(document.body.textContent).toContain("Every later call of delete_file in this chat will run without asking you, whatever the input.");
  expect([button("Allow always in this chat").disabled, decisions]).toEqual([true, []]);
  fireEvent.click(button("Back"));
  fireEvent.click(button("Always in this chat"));
  settle();
  fireEvent.click(button("Allow always in this chat"));
  expect(decisions).toEqual([{ approved: true, scope: "thread" }]);
});

it("what hides in a value is shown as marks", () => {
  requirement("approval:readable");
  render(card({ path: `/home/ada/secrets${"\n".repeat(120)}notes.txt`, "na\u202eme": "a\u200bb" }));
  expect([...document.querySelectorAll("th")].map(({ textContent }) => textContent)).toEqual(["path", "naU+202Eme"]);
  expect([...document.querySelectorAll("td")].map(({ textContent }) => textContent?.replace("\n", ""))).toEqual(["/home/ada/secrets⏎ ×120notes.txt", "aU+200Bb"]);
  expect([...document.querySelectorAll(".fh-mark")].map(({ textContent }) => textContent)).toEqual(["⏎ ×120", "U+202E", "U+200B"]);
});

it("its parameters have names of words, and beside the tool's name is how long there is to decide", () => {
  render(card({ insured_since: "2019", _id: "7" }, { name: "open", deadline: Date.now() + 90_000 }));
  expect(screen.getAllByRole("rowheader").map(({ textContent }) => textContent)).toEqual(["insured since", "_id"]);
  expect(document.querySelector(".fh-aside")?.textContent).toBe("delete_file 1:30");
});

const PARCEL = { type: "object", properties: { to: { type: "string" }, urgent: { type: "boolean", default: true }, greeting: { type: "string", default: "Dear all" }, parcel: { type: "object" } }, required: ["to"] };
const FACT = { callId: "call_1", threadId: "t", title: "", tool: "delete_file", input: { to: "Ada", parcel: { weight: 1 } }, phase: "asking", executor: "server", deadline: null, card: null, openedAt: "2027-01-15T08:00:00.000Z", approvalId: "apr_1" };
const RUNS_WITH = { input: { to: "Ada", parcel: { weight: 1, unit: "kg" }, urgent: true, greeting: "Dear all" }, defaults: [["parcel", "unit"], ["urgent"], ["greeting"]], leftOut: ["note", "copy_to\u200b"] };

function asked(fact: object | undefined, connection: CardHost["connection"] = { state: "open" }): ReactNode {
  const facts = new Map(fact === undefined ? [] : [["call_1", { ...FACT, ...fact }]]);
  const view = viewOf({ ...EMPTY_CONVERSATION, facts, running: new Set(), deliveries: new Map() }, asking(FACT.input), { seenOpen: new Set(), reasons: new Map() });
  return <CardHostProvider host={{ ...host, connection }}><ToolCard view={{ ...view, tool: { card: null, executor: "server", inputSchema: PARCEL } }} /></CardHostProvider>;
}

it("what the model left out is shown with its default, and marked", () => {
  requirement("approval:defaults");
  render(asked({ runsWith: RUNS_WITH }));
  expect(screen.getAllByRole("row").map(({ textContent }) => textContent)).toEqual(["toAda", 'parcel{ "weight": 1, "unit": "kg" }default: unit', "urgenttruedefault", "greetingDear alldefault"]);
  expect(document.body.textContent).toContain("Left out: note, copy toU+200B");
  cleanup();
  render(asked({ runsWith: { ...RUNS_WITH, bySchema: true } }));
  expect(screen.getAllByRole("row").at(-1)?.textContent).toBe("greetingDear alldefault according to its schema");
  cleanup();
  // of a call without any input, too
  render(asked({ input: {}, runsWith: { input: {}, leftOut: ["note"] } }));
  expect(document.querySelector(".fh-inputs")?.textContent).toBe("Left out: note");
});

it("a default that stays is no edit; one that is changed goes alone, and cannot be emptied", () => {
  requirement("approval:defaults");
  render(asked({ runsWith: RUNS_WITH }));
  settle();
  fireEvent.click(button(/Edit/));
  const greeting = screen.getByRole<HTMLInputElement>("textbox", { name: /greeting/i });
  expect([greeting.value, screen.getByRole<HTMLInputElement>("checkbox", { name: /urgent/i }).checked]).toEqual(["Dear all", true]);
  expect(screen.getAllByText("default")).toHaveLength(2);
  expect(document.body.textContent).not.toContain("Changed by you");
  // what is a default inside of a value is marked until the value is changed
  const parcel = screen.getByRole<HTMLTextAreaElement>("textbox", { name: /parcel/i });
  const { value } = parcel;
  expect(screen.getAllByText("default: unit")).toHaveLength(1);
  fireEvent.change(parcel, { target: { value: '{"weight": 2}' } });
  expect(screen.queryByText("default: unit")).toBeNull();
  fireEvent.change(parcel, { target: { value } });
  fireEvent.click(button("Allow once"));
  expect(decisions.pop()).toEqual({ approved: true, scope: "once" });
  fireEvent.change(greeting, { target: { value: "" } });
  expect([document.body.textContent?.includes("Fill in this field."), button("Allow once").disabled]).toEqual([true, true]);
  fireEvent.change(greeting, { target: { value: "Hello" } });
  expect(screen.getAllByText("default")).toHaveLength(1);
  expect(document.body.textContent).toContain("Changed by you");
  settle();
  fireEvent.click(button("Allow once"));
  expect(decisions.pop()).toEqual({ approved: true, scope: "once", input: { ...FACT.input, greeting: "Hello" } });
});

it("nothing can be allowed before the server has said what it runs with", () => {
  requirement("approval:defaults");
  render(asked(undefined));
  settle();
  expect(screen.queryByRole("button", { name: "Allow once" })).toBeNull();
  cleanup();
  render(asked({}));
  settle();
  expect(button("Allow once").disabled).toBe(false);
});

it.each([
  [{ state: "lost", retryAt: 0 }, "The server cannot be reached. You can decide once the connection is back."],
  [{ state: "refused", status: 401, reason: "No valid credential was sent." }, "You were signed out."],
] as const)("while the server is away nothing can be decided: %j", (connection, words) => {
  requirement("approval:same-sign-in");
  const { rerender } = render(asked({}, connection));
  settle();
  expect(["Allow once", "Deny", "Always in this chat"].map((name) => button(name).disabled)).toEqual([true, true, true]);
  expect(document.querySelector(".fh-note")?.textContent?.trim()).toBe(words);
  rerender(asked({}));
  expect([button("Allow once").disabled, document.querySelector(".fh-note")]).toEqual([true, null]);
  settle();
  expect(button("Allow once").disabled).toBe(false);
});

it("a number that the browser could not keep exactly says so, and cannot be sent back by an edit", () => {
  requirement("approval:readable");
  render(card(JSON.parse('{"amount": 9007199254740993, "rows": [{"id": -9007199254740995}], "small": 12}') as Record<string, unknown>));
  settle();
  expect(screen.getByRole("table").textContent).toMatch(/amount.*about 9007199254740992, rounded.*about -900719925474099\d, rounded.*small12/s);
  expect(button("Edit").disabled).toBe(true);
  cleanup();
  render(card({ amount: 12 }));
  settle();
  expect(button("Edit").disabled).toBe(false);
});

it("a long value is cut at its end, with its length, and can be unfolded", () => {
  requirement("approval:readable");
  const text = Array.from({ length: 1_600 }, (_, number) => `word${number}`).join(" ");
  render(card({ text, list: Array.from({ length: 300 }, (_, number) => number) }));
  const [shown, list] = [...document.querySelectorAll("td")].map(({ textContent }) => textContent ?? "");
  expect(shown).toMatch(/^word0 word1 word2 .*… 13,089 characters moreShow all 1,600 words$/);
  expect(list).toMatch(/^\[ 0, 1, 2, .*characters moreShow all 302 words$/);
  fireEvent.click(button("Show all 1,600 words"));
  expect(document.querySelector("td")?.textContent).toBe(`${text}Show less`);
  fireEvent.click(button("Show less"));
  expect(document.querySelector("td")?.textContent).toBe(shown);
});

it("a list that does not fit is scrolled to its end before anything can be allowed", () => {
  requirement("approval:readable");
  const heights = { scrollHeight: 2_000, clientHeight: 300 };
  for (const [name, value] of Object.entries(heights)) {
    vi.spyOn(HTMLElement.prototype, name as "scrollHeight", "get").mockReturnValue(value);
  }
  render(card(Object.fromEntries(Array.from({ length: 60 }, (_, number) => [`name${number}`, number]))));
  settle();
  expect([button("Allow once").disabled, button("Always in this chat").disabled, button("Deny").disabled]).toEqual([true, true, false]);
  expect(document.body.textContent).toContain("60 parameters. Scroll to the last one before you allow it.");
  fireEvent.keyDown(button("Deny"), { key: "a" });
  expect(decisions).toEqual([]);
  const list = screen.getByRole("group", { name: "What it runs with" });
  list.scrollTop = 1_699;
  fireEvent.scroll(list);
  settle();
  expect(button("Allow once").disabled).toBe(false);
  vi.restoreAllMocks();
});

it("an edit that hides something is spelled below its field", () => {
  requirement("approval:readable");
  render(card({ path: "plain.txt" }));
  fireEvent.click(button(/Edit/));
  expect(document.querySelector(".fh-spelling")).toBeNull();
  fireEvent.change(screen.getByRole("textbox"), { target: { value: "a\u202eb" } });
  expect(document.querySelector(".fh-spelling")?.textContent).toBe("aU+202Eb");
});

it("of JSON only what hides in it is spelled, not its indentation", () => {
  requirement("approval:readable");
  render(card({ prices: { tea: 3, coffee: { small: 4 } } }));
  fireEvent.click(button(/Edit/));
  const field = screen.getByRole<HTMLTextAreaElement>("textbox");
  expect(field.value).toContain("\n  ");
  expect(document.querySelector(".fh-spelling")).toBeNull();
  fireEvent.change(field, { target: { value: '{\n\t"tea": 3,\n    "a\u202eb": "two  blanks"\n}' } });
  expect(document.querySelector(".fh-spelling")?.textContent).toBe('{ "tea": 3, "aU+202Eb": "two␣ ×2blanks" }');
});

it("an approval that was refused is asked for again, with the reason and what it would allow", () => {
  requirement("approval:same-sign-in");
  const known = { ...EMPTY_CONVERSATION, facts: new Map(), running: new Set<string>(), deliveries: new Map([["apr_1", { state: "refused", status: 401, reason: "No valid credential was sent. Send Authorization: Bearer." } as const]]) };
  const { state } = viewOf(known, asking({ path: "old.txt" }), { seenOpen: new Set(), reasons: new Map() });
  render(card({ path: "old.txt" }, state));
  expect(screen.getByRole("alert").textContent).toContain("You were signed out. Nothing was allowed or denied: decide again.");
  expect(document.querySelector("td")?.textContent).toBe("old.txt");
  settle();
  fireEvent.click(button("Allow once"));
  expect(decisions.length).toBe(1);
});

it("a denial that was begun earlier is shown again, but takes no focus: Enter in its field would send it", () => {
  render(card({ path: "old.txt" }));
  fireEvent.click(button("Deny"));
  const field = (): HTMLElement => screen.getByRole("textbox", { name: "Reason (optional)" });
  expect(document.activeElement).toBe(field());
  fireEvent.change(field(), { target: { value: "still needed" } });
  cleanup();
  render(card({ path: "old.txt" }));
  expect((field() as HTMLInputElement).value).toBe("still needed");
  expect(document.activeElement).toBe(document.body);
  fireEvent.click(button("Deny"));
  expect(decisions).toMatchObject([{ approved: false, reason: "still needed" }]);
});
