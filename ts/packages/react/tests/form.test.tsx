// The card of a form: nothing wrong is sent, nothing typed is lost, no page opens by itself.
import { type AnswerOutcome, type Call, httpOf } from "@farhand/client";
import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import type { ReactNode } from "react";
import { afterEach, expect, it, vi } from "vitest";
import { type CardHost, CardHostProvider, type CardState, type CardView, ToolCard, viewOf } from "../src/index.ts";
import { doneWords } from "../src/sentences.ts";
import { pressesAre } from "./trust.ts";

afterEach(cleanup);
afterEach(() => sessionStorage.clear());

const SCHEMA = {
  type: "object",
  properties: {
    name: { type: "string", title: "Your name", description: "As on the door." },
    mail: { type: "string", format: "email" },
    guests: { type: "integer", minimum: 1, default: 2 },
    area: { oneOf: [{ const: "in", title: "Inside" }, { const: "out", title: "Terrace" }] },
    needs: { type: "array", items: { enum: ["Quiet", "Step-free"] } },
    reminder: { type: "boolean" },
  },
  required: ["name", "area"],
};
const OPEN: CardState = { name: "open", deadline: undefined };

/** One page, with a server of its own. */
function pageOf(input: object): { at: (state?: CardState, more?: Partial<CardView>) => ReactNode; sent: AnswerOutcome[] } {
  const sent: AnswerOutcome[] = [];
  const nothing = (): void => undefined;
  const host: CardHost = {
    http: httpOf({ url: "http://127.0.0.1:9" }), cards: [], connection: { state: "open" },
    answer: (_, outcome) => void sent.push(outcome), approve: nothing, retry: nothing, discard: nothing, retryNow: nothing,
  };
  const call: Call = { id: "call_1", tool: "answer_form", phase: "ready", input: { message: "Who is it for?", ...input } };
  return { sent, at: (state = OPEN, more = {}) => <CardHostProvider host={host}><ToolCard view={{ call, kind: "form", state, executor: "frontend", ...more }} /></CardHostProvider> };
}

const press = (name: string): void => void fireEvent.click(screen.getByRole("button", { name }));
const type = (label: string, value: string): void => void fireEvent.change(screen.getByLabelText(label), { target: { value } });
const toldAt = (label: string): string =>
  (screen.getByLabelText(label).getAttribute("aria-describedby") ?? "").split(" ").map((id) => document.getElementById(id)?.textContent ?? "").join(" ");

it("a filled form is accepted with the values of its fields, without those left empty", () => {
  const { at, sent } = pageOf({ schema: SCHEMA });
  render(at());
  type("Your name", "Ada");
  fireEvent.click(screen.getByLabelText("Terrace"));
  fireEvent.click(screen.getByLabelText("Step-free"));
  fireEvent.click(screen.getByLabelText("Quiet"));
  fireEvent.submit(document.querySelector("form") as Element);
  const content = { name: "Ada", guests: 2, area: "out", needs: ["Quiet", "Step-free"] };
  expect(sent).toEqual([{ kind: "success", output: { action: "accept", content } }]);
});

it("a tool that returns nothing has no field: Done sends null, once", async () => {
  pressesAre("a person's");
  const { at, sent } = pageOf({});
  const tool = { card: null, executor: "frontend", inputSchema: { type: "object", properties: { minutes: { type: "integer" } } }, outputSchema: { type: "null" } };
  const call: Call = { id: "call_1", tool: "stretch", phase: "ready", input: { minutes: 5 } };
  render(at(OPEN, { call, tool, kind: "unknown" }));
  expect(screen.getByRole("heading").textContent).toBe("Stretch");
  expect(screen.getByRole("row").textContent).toBe("minutes5");
  expect(screen.queryByRole("textbox")).toBeNull();
  // no press counts in the first moment of a card
  await vi.waitFor(() => {
    press("Done");
    expect(sent).toEqual([{ kind: "success", output: null }]);
  }, 20_000);
  expect(doneWords("form", { minutes: 5 }, null)).toBe("Done");
});

it("a box that nobody touched is left out, unless it is required or the schema has a default for it", () => {
  const BOX = { type: "boolean" };
  const trip = { type: "object", properties: { to: { type: "string" }, isReturn: BOX, hasDog: BOX }, required: ["to", "isReturn"] };
  const schema = { type: "object", properties: { news: BOX, on: { ...BOX, default: true }, off: { ...BOX, default: false }, terms: BOX, was: BOX, trip }, required: ["terms"] };
  const { at, sent } = pageOf({ schema });
  render(at());
  const send = (): void => void fireEvent.submit(document.querySelector("form") as Element);
  send();
  const content = { on: true, off: false, terms: false };
  // who ticks it and thinks again has answered it
  fireEvent.click(screen.getByLabelText("Was"));
  fireEvent.click(screen.getByLabelText("Was"));
  // and of a trip that there is, a box that is required says no
  type("Trip: To (optional)", "Oslo");
  send();
  const later = { ...content, was: false, trip: { to: "Oslo", isReturn: false } };
  expect(sent.map((each) => each.kind === "success" && each.output)).toEqual([{ action: "accept", content }, { action: "accept", content: later }]);
});

it("what is wrong is told beside its field, the first of them takes the focus, and nothing is sent", () => {
  const { at, sent } = pageOf({ schema: SCHEMA });
  render(at());
  expect(toldAt("Your name")).toBe("As on the door.");
  fireEvent.submit(document.querySelector("form") as Element);
  expect(sent).toEqual([]);
  expect(toldAt("Your name")).toBe("As on the door. Fill in this field.");
  expect(screen.getByLabelText("Your name").getAttribute("aria-invalid")).toBe("true");
  expect(document.activeElement).toBe(screen.getByLabelText("Your name"));
  expect(screen.getByRole("radiogroup", { name: "Area" }).getAttribute("aria-invalid")).toBe("true");
  type("Your name", "Ada");
  expect(toldAt("Your name")).toBe("As on the door.");
});

it("a mistake is told once the next field is changed, and not while it is typed", () => {
  render(pageOf({ schema: SCHEMA }).at());
  type("Mail (optional)", "ada");
  expect(toldAt("Mail (optional)")).toBe("");
  type("Guests (optional)", "3");
  expect(toldAt("Mail (optional)")).toBe("Enter an email address, such as name@example.com.");
  expect(document.body.textContent).not.toContain("Fill in this field.");
});

it.each([["Decline", "decline"], ["Close", "cancel"]])("%s sends %s, whatever is in the fields", (button, action) => {
  const { at, sent } = pageOf({ schema: SCHEMA });
  render(at());
  fireEvent.keyDown(screen.getByLabelText("Your name"), { key: "Escape" });
  expect(sent).toEqual([]);
  press(button);
  expect(sent).toEqual([{ kind: "success", output: { action } }]);
});

it("while the answer is on its way everything is off, and what was typed is there if it comes back", () => {
  const { at } = pageOf({ schema: SCHEMA });
  const { rerender } = render(at());
  type("Your name", "Ada");
  rerender(at({ name: "sending" }));
  const controls = [...document.querySelectorAll<HTMLInputElement>("input, select, button")];
  expect(controls.filter((each) => !each.matches(":disabled, fieldset:disabled *"))).toEqual([]);
  rerender(at({ name: "refused", refusal: { status: 422, reason: "No." } }));
  rerender(at());
  expect((screen.getByLabelText("Your name") as HTMLInputElement).value).toBe("Ada");
});

it("what was typed can be read when the time has run out, in another list of cards too", () => {
  const { at } = pageOf({ schema: SCHEMA });
  render(at());
  type("Your name", "Ada");
  fireEvent.click(screen.getByLabelText("Inside"));
  cleanup();
  render(at({ name: "timed-out", afterSec: 60 }));
  expect([...document.querySelectorAll("tr")].map((row) => row.textContent)).toEqual(["Your nameAda", "AreaInside"]);
});

it("more than five choices, and those that may stay empty, are a list", () => {
  const many = { enum: ["1", "2", "3", "4", "5", "6"] };
  const { at, sent } = pageOf({ schema: { properties: { floor: many, side: { enum: ["left", "right"] } }, required: ["floor"] } });
  render(at());
  expect(document.querySelectorAll("input[type=radio]").length).toBe(0);
  type("Floor", "6");
  type("Side (optional)", "left");
  type("Side (optional)", "");
  fireEvent.submit(document.querySelector("form") as Element);
  expect(sent).toEqual([{ kind: "success", output: { action: "accept", content: { floor: "6" } } }]);
});

it("a page is named by its host, opens from its link alone, and is done when the person says so", () => {
  const { at, sent } = pageOf({ url: "https://accounts.example:8443/connect?state=1" });
  render(at());
  const link = screen.getByRole("link", { name: "Open page" }) as HTMLAnchorElement;
  expect(screen.getByText("accounts.example:8443")).toBeTruthy();
  expect([link.target, link.rel, link.getAttribute("href")]).toEqual(["_blank", "noopener noreferrer", "https://accounts.example:8443/connect?state=1"]);
  expect(sent).toEqual([]);
  press("Done");
  expect(sent).toEqual([{ kind: "success", output: { action: "accept" } }]);
});

it.each(["javascript:alert(1)", "https://bank.example@evil.example/", "nowhere"])("%s has no link, and can be declined", (url) => {
  const { at, sent } = pageOf({ url });
  render(at());
  expect(screen.queryByRole("link")).toBeNull();
  press("Decline");
  expect(sent).toEqual([{ kind: "success", output: { action: "decline" } }]);
});

it("a form that is over says what was sent, or how it was left, and offers its page no more", () => {
  const words = (output: object): string => doneWords("form", {}, output);
  expect(words({ action: "accept", content: { name: "Ada", guests: 4, needs: ["Quiet"], reminder: true } })).toBe("Ada, 4, Quiet, Yes");
  expect(words({ action: "accept" })).toBe("Done");
  expect(words({ action: "decline" })).toBe("Declined");
  expect(words({ action: "cancel" })).toBe("Closed");
  const call: Call = { id: "call_2", tool: "answer_form", phase: "settled", input: { message: "Sign in", url: "https://a.example" }, outcome: { kind: "success", output: { action: "accept" } } };
  const known = { facts: new Map(), running: new Set<string>(), deliveries: new Map(), run: { state: "idle" } as const };
  const view = viewOf(known, call, { seenOpen: new Set(), reasons: new Map() });
  expect(view.kind).toBe("form");
  render(<CardHostProvider host={{ http: httpOf({ url: "http://127.0.0.1:9" }), cards: [] as const } as Partial<CardHost> as CardHost}><ToolCard view={view} /></CardHostProvider>);
  expect(screen.queryByRole("button")).toBeNull();
});
