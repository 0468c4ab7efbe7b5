// Cards for tools that name none, and the forms that are made from their schemas.
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, it } from "vitest";
import { requirement } from "../../../tests/requirement.ts";
import { answerFields, editFields, type FieldDrafts, firstDrafts } from "../src/fields.ts";
import { edited, filled } from "../src/form-values.ts";
import { choicesIn, confirmValues, guessCard, type ToolFacts } from "../src/guess.ts";
import { viewOf } from "../src/index.ts";
import { withTool } from "../src/tools.ts";

const object = (properties: object, required: readonly string[] = Object.keys(properties)): object => ({ type: "object", properties, required });
const tool = (inputs: object, outputSchema: unknown, description = "Ask.", more: Partial<ToolFacts> = {}): ToolFacts => ({ card: null, executor: "frontend", description, inputSchema: object(inputs), outputSchema, ...more });
const TEXT = { type: "string" };
const YES_NO = { enum: ["yes", "no"], type: "string" };

interface Guessed extends ToolFacts {
  readonly name: string;
  readonly card: string;
}

// the server has to guess as the page does: a card that is answered with a press has less time
const GUESSED = JSON.parse(readFileSync(resolve(import.meta.dirname, "../../../../tests/guessed_cards.json"), "utf8")) as Guessed[];

it.each(GUESSED)("$card: $name", ({ card, ...facts }) => {
  requirement("cards:guessed");
  expect(guessCard({ ...facts, card: null, executor: "frontend" })).toBe(card);
});

it("a card that a tool names is not guessed unless nobody has it, nor one of a program or of an approval", () => {
  requirement("cards:guessed");
  const known = { facts: new Map(), running: new Set<string>(), deliveries: new Map(), run: { state: "idle" } as const };
  const memory = { seenOpen: new Set<string>(), reasons: new Map<string, string>() };
  const kind = (facts: ToolFacts, asks = false): string => {
    const call = asks ? ({ id: "c", tool: "t", phase: "asking", input: {}, approvalId: "a" } as const) : ({ id: "c", tool: "t", phase: "ready", input: {} } as const);
    return withTool(viewOf({ ...known, tools: new Map([["t", facts]]) }, call, memory), undefined).kind;
  };
  const guessed = tool({ message: TEXT }, YES_NO);
  expect([kind(guessed), kind({ ...guessed, card: "text" }), kind({ ...guessed, card: "rating" }), kind({ ...guessed, executor: "client" }), kind(guessed, true)]).toEqual(["confirm", "text", "confirm", "unknown", "approval"]);
});

it("a call that is over has the card of its tool, and is shown where that ran", () => {
  const call = { id: "c", tool: "t", phase: "settled", input: {}, outcome: { kind: "success", output: { hex: "#00aa33" } } } as const;
  const view = { call, kind: "unknown", executor: "frontend", state: { name: "done" } } as const;
  const guessed = tool({ message: TEXT }, YES_NO);
  const shown = [{ ...guessed, card: "color" }, { ...guessed, executor: "server" }, guessed].map((facts) => withTool(view, facts));
  expect(shown.map(({ kind, executor }) => [kind, executor])).toEqual([["color", "frontend"], ["unknown", "server"], ["confirm", "frontend"]]);
});

it("Yes and No send what the tool returns, and its values are the options", () => {
  expect([confirmValues(undefined), confirmValues(tool({}, { type: "boolean" }))]).toEqual([{ yes: "yes", no: "no" }, { yes: true, no: false }]);
  expect([choicesIn(tool({}, { enum: [1, 2] })), choicesIn(tool({}, TEXT)), choicesIn(undefined)]).toEqual([[1, 2], undefined, undefined]);
});

const PLACE = { $ref: "#/$defs/Place" };
const TICKET = {
  ...object({ title: TEXT, urgency: { enum: [1, 2] }, tags: { type: "array", items: TEXT }, note: { anyOf: [TEXT, { type: "null" }] }, place: PLACE }, ["title", "urgency", "note", "place"]),
  $defs: { Place: object({ street: TEXT, town: TEXT }, ["street"]) },
};

it("a form has a field for each part of an object, inner ones too, and sends the object again", () => {
  requirement("cards:guessed");
  const fields = answerFields(TICKET) ?? [];
  expect(fields.map(({ label, kind, isRequired }) => [label, kind, isRequired])).toEqual([
    ["Title", "text", true], ["Urgency", "one", true], ["Tags", "list", false], ["Note", "text", true], ["Place: Street", "text", true], ["Place: Town", "text", false],
  ]);
  const empty = filled(fields, firstDrafts(fields));
  expect(empty.errors).toEqual(["Fill in this field.", "Choose one.", "", "", "Fill in this field.", ""]);
  const drafts: FieldDrafts = { ...firstDrafts(fields), title: "Lamp", urgency: "2", tags: " dark \n\nstreet", "place.street": "Mill Lane" };
  expect(filled(fields, drafts)).toEqual({ errors: ["", "", "", "", "", ""], value: { title: "Lamp", urgency: 2, tags: ["dark", "street"], note: null, place: { street: "Mill Lane" } } });
});

it("two fields of one type have their own names and not the title of the type", () => {
  requirement("cards:guessed");
  const schema = {
    ...object({ sender: PLACE, to: { ...PLACE, title: "Receiver" }, over: { anyOf: [PLACE, { type: "null" }] } }),
    $defs: { Place: { ...object({ street: TEXT }), title: "Place" } },
  };
  expect(answerFields(schema)?.map(({ label }) => label)).toEqual(["Sender: Street", "Receiver: Street", "Over: Street"]);
  expect(editFields(schema, { sender: {} }).map(({ label }) => label)).toEqual(["Sender", "Receiver", "Over"]);
});

it.each(["#/$defs/100%", "#/%zz/%", "#", "#/", "", "#/$defs/__proto__", "other.json#/Place", 7])("a reference that leads nowhere, %j, makes no form and no error", (reference) => {
  expect(answerFields({ ...object({ place: { $ref: reference } }), $defs: {} })).toBeUndefined();
});

it("a reference is found by its name as it is written, percent-encoded or not", () => {
  const rule = object({ share: { $ref: "#/$defs/100%" }, place: { $ref: "#/$defs/a%20b" } });
  expect(answerFields({ ...rule, $defs: { "100%": { type: "integer" }, "a b": TEXT } })?.map(({ kind }) => kind)).toEqual(["integer", "text"]);
});

it("an answer that is no object has one field, and is sent as it is", () => {
  const fields = answerFields({ type: "number", minimum: 0 }) ?? [];
  expect(filled(fields, { "": "21.5" })).toEqual({ errors: [""], value: 21.5 });
  expect(filled(fields, { "": "-1" }).errors).toEqual(["Enter 0 or more."]);
  expect([answerFields({ type: "object" }), answerFields(null), answerFields({ anyOf: [TEXT, { type: "number" }] })]).toEqual([undefined, undefined, undefined]);
});

it("an edited input has fields of its schema, and what nobody touched stays to the letter", () => {
  const schema = object({ at: { type: "string", format: "date-time" }, copies: { type: "integer", maximum: 9 }, mode: { enum: ["a", "b"] }, extra: TEXT }, ["at", "copies", "mode"]);
  const input = { at: "2027-03-01T12:30:45.123Z", copies: 1, mode: "a", rows: [{ id: 1 }] };
  const fields = editFields(schema, input);
  expect(fields.map(({ name, kind }) => [name, kind])).toEqual([["at", "text"], ["copies", "integer"], ["mode", "one"], ["rows", "json"], ["extra", "text"]]);
  const untouched = firstDrafts(fields);
  expect(edited(fields, untouched, input).value).toEqual(input);
  expect(edited(fields, { ...untouched, copies: "3", mode: "b" }, input).value).toEqual({ ...input, copies: 3, mode: "b" });
  expect(edited(fields, { ...untouched, copies: "12" }, input).errors).toEqual(["", "Enter 9 or less.", "", "", ""]);
  expect(edited(fields, { ...untouched, rows: "[" }, input).errors[3]).toContain("not JSON");
  // a value that does not suit its own field is edited as JSON
  expect(editFields(object({ copies: { type: "integer" } }), { copies: "many" })[0]?.kind).toBe("json");
});
