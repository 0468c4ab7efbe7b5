// The fields of a form: made from a schema, checked before anything is sent.
import { expect, it } from "vitest";
import { type Draft, type Field, fieldsOf, firstDrafts } from "../src/fields.ts";
import { check, typedOf } from "../src/form-values.ts";

function only(rule: object, isRequired = true): Field {
  const [field] = fieldsOf({ type: "object", properties: { it: rule }, required: isRequired ? ["it"] : [] });
  return field as Field;
}

const TEXT = { type: "string" };
const INTEGER = { type: "integer", minimum: 1, maximum: 12 };
const MANY = { type: "array", items: { type: "string", enum: ["a", "b", "c"] }, minItems: 1, maxItems: 2 };

const FITS: [object, Draft, unknown][] = [
  [TEXT, " as typed ", " as typed "],
  [{ ...TEXT, maxLength: 2 }, "😀😀", "😀😀"],
  [{ ...TEXT, format: "email" }, " ada@example.com ", "ada@example.com"],
  [{ ...TEXT, format: "uri" }, "https://example.com/a", "https://example.com/a"],
  [{ ...TEXT, format: "date" }, "2027-03-01", "2027-03-01"],
  [{ ...TEXT, format: "date-time" }, "2027-03-01T12:30", new Date("2027-03-01T12:30").toISOString()],
  [{ ...TEXT, pattern: "^[A-Z]+$" }, "ABC", "ABC"],
  [{ ...TEXT, pattern: "(?<broken" }, "left to the server", "left to the server"],
  [{ type: "number" }, " -2.5e1 ", -25],
  [INTEGER, "12", 12],
  [{ type: "boolean" }, false, false],
  [{ type: "string", enum: ["a", "b"] }, "b", "b"],
  [MANY, ["a", "c"], ["a", "c"]],
];

it.each(FITS)("%j takes %j", (rule, draft, value) => {
  expect(check(only(rule), draft)).toEqual({ value });
});

const WRONG: [object, Draft, string][] = [
  [TEXT, "  ", "Fill in this field."],
  [{ ...TEXT, minLength: 3 }, "ab", "Enter at least 3 characters."],
  [{ ...TEXT, maxLength: 1 }, "ab", "Enter at most 1 character; this has 2."],
  [{ ...TEXT, format: "email" }, "ada at example", "Enter an email address, such as name@example.com."],
  [{ ...TEXT, format: "uri" }, "example.com", "Enter a full address, such as https://example.com."],
  [{ ...TEXT, format: "date" }, "soon", "Enter a date."],
  [{ ...TEXT, format: "date-time" }, "soon", "Enter a date and a time."],
  [{ ...TEXT, pattern: "^[A-Z]+$" }, "abc", "This does not have the expected format."],
  [{ type: "number" }, "1,5", "Enter a number, such as 2.5."],
  [{ type: "number" }, "0x10", "Enter a number, such as 2.5."],
  [{ type: "number", exclusiveMinimum: 0 }, "0", "Enter more than 0."],
  [{ type: "number", exclusiveMaximum: 1 }, "1", "Enter less than 1."],
  [INTEGER, "1.5", "Enter a whole number."],
  [INTEGER, "many", "Enter a whole number."],
  [INTEGER, "0", "Enter 1 or more."],
  [INTEGER, "13", "Enter 12 or less."],
  [INTEGER, "9007199254740993", "This number is too large."],
  [{ type: "string", enum: ["a", "b"] }, "", "Choose one."],
  [MANY, [], "Choose at least 1."],
  [MANY, ["a", "b", "c"], "Choose at most 2."],
];

it.each(WRONG)("%j refuses %j", (rule, draft, error) => {
  expect(check(only(rule), draft)).toEqual({ error });
});

it.each([
  ["^(a+)+$", `${"a".repeat(60)}!`], ["^(?:a|aa){40,60}$", `${"a".repeat(60)}!`], ["^(\\w+\\s?)*$", `${"word ".repeat(20)}!`],
  ["a*a*a*a*a*b", "a".repeat(9_000)], ["^.*.*.*.*=$", "x".repeat(9_000)], ["^(x?){9}(y{0,200}z{0,200}){2}$", "y".repeat(900)],
])("the pattern %s, which could take for ever here, is left to the server", (pattern, text) => {
  expect(check(only({ ...TEXT, pattern }), text)).toEqual({ value: text });
});

it.each([
  ["^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$", "123e4567-e89b-12d3-a456-426614174000"], ["^\\w+@\\w+\\.\\w+$", "ada.lovelace@example.com".replace(".", "_")],
  ["^(?:\\+1 )?\\d{3}-\\d{4}$", "+1 555-0199"], ["^[^*+?{|()]+$", "a plain sentence"], ["^(red|green|blue)$", "green"], ["^\\(a\\)+$", "(a))"],
])("the pattern %s is checked as you type", (pattern, text) => {
  expect(check(only({ ...TEXT, pattern }), text)).toEqual({ value: text });
  expect(check(only({ ...TEXT, pattern }), `*${text}`)).toEqual({ error: "This does not have the expected format." });
});

it.each([[TEXT, ""], [INTEGER, " "], [{ type: "string", enum: ["a"] }, ""], [MANY, []]] as [object, Draft][])("%j may stay empty when it is optional", (rule, draft) => {
  expect(check(only(rule, false), draft)).toBeUndefined();
});

it("defaults are there from the start, and only those that can be chosen", () => {
  const fields = fieldsOf({
    properties: {
      name: { ...TEXT, default: "Ada" },
      guests: { type: "integer", default: 2 },
      reminder: { type: "boolean", default: true },
      area: { oneOf: [{ const: "in", title: "Inside" }, { const: "out" }], default: "out" },
      needs: { ...MANY, default: ["c", "x"] },
      colour: { enum: ["red"], default: "blue" },
      at: { ...TEXT, format: "date-time", default: new Date("2027-03-01T12:30").toISOString() },
      notes: TEXT,
    },
  });
  const drafts = { name: "Ada", guests: "2", reminder: true, area: "out", needs: ["c"], colour: "", at: "2027-03-01T12:30", notes: "" };
  expect(firstDrafts(fields)).toEqual(drafts);
});

it("a field is called by its title or its name, and a choice by its title or its value", () => {
  expect(only({ ...TEXT, title: "Full name" }).label).toBe("Full name");
  expect(fieldsOf({ properties: { street_name: TEXT } })[0]?.label).toBe("Street name");
  const choices = [{ value: "in", title: "Inside" }, { value: "out", title: "out" }];
  expect(only({ oneOf: [{ const: "in", title: "Inside" }, { const: "out" }] })).toMatchObject({ kind: "one", choices });
  expect(only({ enum: ["in", "out"], enumNames: ["Inside"] })).toMatchObject({ kind: "one", choices });
  expect(only({ type: "array", items: { anyOf: [{ const: "in", title: "Inside" }, { const: "out" }] } })).toMatchObject({ kind: "many", choices });
});

it("what was typed can be read again, in the words of the form", () => {
  const fields = fieldsOf({
    properties: { a: { ...TEXT, title: "Name" }, b: { ...TEXT, title: "Name" }, area: { oneOf: [{ const: "in", title: "Inside" }] }, ok: { type: "boolean" }, empty: TEXT },
  });
  expect(typedOf(fields, { a: "Ada", b: "Bob", area: "in", ok: true, empty: "" })).toEqual({ a: "Ada", b: "Bob", Area: "Inside", Ok: "Yes" });
});

it("what is no schema has no fields", () => {
  expect([undefined, null, 1, {}, { properties: 1 }].flatMap(fieldsOf)).toEqual([]);
});
