// Checks a filled-in form: the error of each field, the value of all of them, and the text for a person who reads it again. Pure.
// Separate from `fields.ts`, because a page needs it only with its first form.
import { type ChoiceKind, type Draft, type Field, type FieldDrafts, firstDrafts, type Named } from "./fields.ts";
import { ruleOf, type Rule } from "./schema.ts";
import { type Words, WORDS } from "./words.ts";

/** An error for each field, empty if it is valid; and the value, if all are. */
export interface Filled {
  readonly errors: readonly string[];
  readonly value: unknown;
}

export function filled(fields: readonly Field[], drafts: FieldDrafts, words: Words = WORDS): Filled {
  const checked = fields.map((field) => check(field, drafts[field.name] ?? "", words));
  const errors = checked.map((each) => (each !== undefined && "error" in each ? each.error : ""));
  const whole = fields[0]?.path.length === 0 ? (checked[0] as { value?: unknown } | undefined)?.value : undefined;
  const values = fields.flatMap((field, index): [readonly string[], unknown][] => {
    const each = checked[index];
    return each !== undefined && "value" in each ? [[field.path, each.value]] : [];
  });
  // a box that is not ticked says no once something else of its object is filled in
  const owed = fields.filter(({ kind, isOwed, path, name }) => kind === "boolean" && isOwed && drafts[name] === "" && values.some(([other]) => isBeside(path, other))).map(({ path }) => [path, false] as const);
  return { errors, value: fields[0]?.path.length === 0 ? (whole ?? null) : [...values, ...owed].reduce<Rule>((object, [path, value]) => withValue(object, path, value), {}) };
}

function isBeside(path: readonly string[], other: readonly string[]): boolean {
  return path.slice(0, -1).every((name, index) => other[index] === name);
}

/** An edited input: values that nobody touched are unchanged, byte for byte. */
export function edited(fields: readonly Field[], drafts: FieldDrafts, input: Rule, words: Words = WORDS): Filled {
  const untouched = firstDrafts(fields);
  const touched = fields.filter(({ name }) => !isSame(drafts[name], untouched[name]));
  const { errors, value } = filled(touched, drafts, words);
  const left = Object.fromEntries(Object.entries(input).filter(([name]) => !touched.some(({ path }) => path[0] === name)));
  return { errors: fields.map((field) => errors[touched.indexOf(field)] ?? ""), value: { ...left, ...ruleOf(value) } };
}

function isSame(one: Draft | undefined, other: Draft | undefined): boolean {
  return String(one) === String(other);
}

function withValue(object: Rule, [first = "", ...rest]: readonly string[], value: unknown): Rule {
  return { ...object, [first]: rest.length === 0 ? value : withValue(ruleOf(object[first]), rest, value) };
}

/** The values that differ from the initial ones, by label. */
export function typedOf(fields: readonly Field[], drafts: FieldDrafts, words: Words = WORDS): Readonly<Record<string, string>> {
  const untouched = firstDrafts(fields);
  const isAlone = (label: string): boolean => fields.filter((field) => field.label === label).length === 1;
  const changed = fields.filter(({ name }) => !isSame(drafts[name] ?? untouched[name], untouched[name]));
  const lines = changed.map((field): [string, string] => [isAlone(field.label) && field.label !== "" ? field.label : field.name || words.answer, draftWords(field, drafts[field.name] ?? "", words)]);
  return Object.fromEntries(lines.filter(([, text]) => text !== ""));
}

function draftWords(field: Field, draft: Draft, words: Words): string {
  if (typeof draft === "boolean") {
    return draft ? words.yes : words.no;
  }
  const values = typeof draft === "string" ? [draft] : draft;
  const titles = "choices" in field ? field.choices : [];
  return values.map((value) => titles.find((choice) => choice.value === value)?.title ?? value).join(", ");
}

/** The value to send, undefined for an empty field, or the error. */
export type Checked = { readonly value: unknown } | { readonly error: string } | undefined;

export function check(field: Field, draft: Draft, words: Words = WORDS): Checked {
  switch (field.kind) {
    case "boolean":
      return draft === "" ? undefined : { value: draft === true };
    case "many":
      return checkMany(field, Array.isArray(draft) ? draft : [], words);
    default:
      return String(draft).trim() === "" ? emptyValue(field, words) : checkFilled(field, String(draft), words);
  }
}

function emptyValue(field: Field, words: Words): Checked {
  if (!field.isRequired) {
    return undefined;
  }
  return field.isNullable ? { value: null } : { error: field.kind === "one" ? words.choose : words.fillIn };
}

function checkFilled(field: Field, draft: string, words: Words): Checked {
  switch (field.kind) {
    case "number":
    case "integer":
      return checkNumber(field, draft.trim(), words);
    case "text":
      return checkText(field.type, field.rule, draft, words);
    case "list":
      return checkLines(field.rule, draft.split("\n").map((line) => line.trim()).filter((line) => line !== ""), words);
    case "json":
      return checkJson(draft, words);
    case "one":
      return { value: field.choices.find(({ value }) => value === draft)?.raw };
    default:
      return { value: draft };
  }
}

function checkMany(field: Named & ChoiceKind, chosen: readonly string[], words: Words): Checked {
  const { minItems, maxItems } = field.rule;
  if (chosen.length === 0 && !field.isRequired) {
    return undefined;
  }
  if (typeof minItems === "number" && chosen.length < minItems) {
    return { error: words.fewChoices(minItems) };
  }
  const values = field.choices.filter(({ value }) => chosen.includes(value)).map(({ raw }) => raw);
  return typeof maxItems === "number" && chosen.length > maxItems ? { error: words.manyChoices(maxItems) } : { value: values };
}

function checkLines({ minItems, maxItems }: Rule, lines: readonly string[], words: Words): Checked {
  if (typeof minItems === "number" && lines.length < minItems) {
    return { error: words.fewLines(minItems) };
  }
  return typeof maxItems === "number" && lines.length > maxItems ? { error: words.manyLines(maxItems) } : { value: lines };
}

function checkJson(draft: string, words: Words): Checked {
  try {
    return { value: JSON.parse(draft) as unknown };
  } catch {
    return { error: words.notJson };
  }
}

const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;

function checkNumber({ kind, rule }: Field, draft: string, words: Words): Checked {
  const value = Number(draft);
  if (!NUMBER.test(draft) || !Number.isFinite(value)) {
    return { error: kind === "integer" ? words.integer : words.number };
  }
  // a larger number would not be sent as it was typed
  if (kind === "integer" && !Number.isSafeInteger(value)) {
    return { error: Number.isInteger(value) ? words.tooLarge : words.integer };
  }
  const limits = [
    ["minimum", (limit: number) => value >= limit], ["maximum", (limit: number) => value <= limit],
    ["exclusiveMinimum", (limit: number) => value > limit], ["exclusiveMaximum", (limit: number) => value < limit],
    ["multipleOf", (step: number) => kind !== "integer" || value % step === 0],
  ] as const;
  for (const [name, fits] of limits) {
    const limit = rule[name];
    if (typeof limit === "number" && !fits(limit)) {
      return { error: words[name](limit) };
    }
  }
  return { value };
}

const EMAIL = /^[^\s@]+@[^\s@]+\.[^\s@.]+$/;

function checkText(type: string, { minLength, maxLength, pattern }: Rule, draft: string, words: Words): Checked {
  const text = type === "text" || type === "long" ? draft : draft.trim();
  if (type === "email" && !EMAIL.test(text)) {
    return { error: words.email };
  }
  if (type === "url" && !URL.canParse(text)) {
    return { error: words.uri };
  }
  if ((type === "date" || type === "datetime-local") && Number.isNaN(Date.parse(text))) {
    return { error: words[type === "date" ? "date" : "dateTime"] };
  }
  const value = type === "datetime-local" ? new Date(text).toISOString() : text;
  // JSON Schema counts characters, not UTF-16 code units
  const length = [...value].length;
  if (typeof minLength === "number" && length < minLength) {
    return { error: words.short(minLength) };
  }
  if (typeof maxLength === "number" && length > maxLength) {
    return { error: words.long(maxLength, length) };
  }
  return typeof pattern === "string" && !matches(pattern, value) ? { error: words.pattern } : { value };
}

function matches(pattern: string, text: string): boolean {
  try {
    // a pattern that may be slow is left to the server, which checks every pattern in linear time
    return !isQuick(pattern, text) || new RegExp(pattern, "u").test(text);
  } catch {
    // not a valid pattern in this browser: the server checks it
    return true;
  }
}

/** Nothing in these is a choice: an escape, a character class, a fixed repetition of something that is not a group. */
const FIXED = /\\.|\[(?:\\.|[^\]\\])*\]|(?<!\))\{\d+\}/gs;
const WAYS_AT_MOST = 1e7;

/** Whether the pattern is fast. A browser matches by backtracking: each choice multiplies the number of attempts by the length of the
 * text, and a repeated group may cause exponentially many. */
function isQuick(pattern: string, { length }: string): boolean {
  const rest = pattern.replace(FIXED, "a");
  const choices = rest.match(/[*+?{|]/g) ?? [];
  return !/\)[*+{]/.test(rest) && (length + 2) ** (choices.length + 1) < WAYS_AT_MOST;
}
