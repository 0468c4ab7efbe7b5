// The fields of a form, from its schema: what each starts with, and whether what was typed fits. Pure.
import { FIELD_WORDS, sentenceOf } from "./words.ts";

type Rule = Readonly<Record<string, unknown>>;

export interface Choice {
  readonly value: string;
  readonly title: string;
}

interface Named {
  readonly name: string;
  readonly label: string;
  readonly description: string;
  readonly isRequired: boolean;
  readonly rule: Rule;
}

export type Field = Named &
  (
    | { readonly kind: "text"; readonly type: "text" | "email" | "url" | "date" | "datetime-local" | "long" }
    | { readonly kind: "number" | "integer" | "boolean" }
    | { readonly kind: "one" | "many"; readonly choices: readonly Choice[] }
  );

/** What is in a field: text as typed, a tick, or the values that are ticked. */
export type Draft = string | boolean | readonly string[];
export type FieldDrafts = Readonly<Record<string, Draft>>;

/** The value to send, nothing for a field that was left empty, or what is wrong. */
export type Checked = { readonly value: unknown } | { readonly error: string } | undefined;

const TYPES = { email: "email", uri: "url", date: "date", "date-time": "datetime-local" } as const;
/** Texts that may be longer than this get more than one line. */
const LINE_AT_MOST = 200;

export function fieldsOf(schema: unknown): readonly Field[] {
  const { properties, required } = ruleOf(schema);
  const needed = new Set(Array.isArray(required) ? required : []);
  return Object.entries(ruleOf(properties)).map(([name, each]) => {
    const rule = ruleOf(each);
    const named = { name, label: textOf(rule["title"]) || sentenceOf(name), description: textOf(rule["description"]), isRequired: needed.has(name), rule };
    return { ...named, ...kindOf(rule) } as Field;
  });
}

function kindOf(rule: Rule): object {
  const choices = choicesOf(rule);
  if (choices.length > 0) {
    return { kind: "one", choices };
  }
  switch (rule["type"]) {
    case "array":
      return { kind: "many", choices: choicesOf(ruleOf(rule["items"])) };
    case "number":
    case "integer":
    case "boolean":
      return { kind: rule["type"] };
    default:
      return { kind: "text", type: typeOf(rule) };
  }
}

function typeOf({ format, maxLength, default: first }: Rule): string {
  const known = TYPES[format as keyof typeof TYPES];
  // a field of one line would drop the line breaks of its default
  return known ?? ((typeof maxLength === "number" && maxLength > LINE_AT_MOST) || textOf(first).includes("\n") ? "long" : "text");
}

function choicesOf({ enum: values, enumNames: names, oneOf, anyOf }: Rule): readonly Choice[] {
  if (Array.isArray(values)) {
    return values.map((value, index) => ({ value: String(value), title: (Array.isArray(names) && textOf(names[index])) || String(value) }));
  }
  const titled: unknown = oneOf ?? anyOf;
  return Array.isArray(titled) ? titled.map(ruleOf).map(({ const: value, title }) => ({ value: String(value), title: textOf(title) || String(value) })) : [];
}

export function firstDrafts(fields: readonly Field[]): FieldDrafts {
  return Object.fromEntries(fields.map((field) => [field.name, firstDraft(field)]));
}

function firstDraft(field: Field): Draft {
  const first = field.rule["default"];
  switch (field.kind) {
    case "boolean":
      return first === true;
    case "many":
      return field.choices.map(({ value }) => value).filter((value) => Array.isArray(first) && first.includes(value));
    case "one":
      return field.choices.find(({ value }) => value === first)?.value ?? "";
    case "text":
      return field.type === "datetime-local" ? localTime(textOf(first)) : textOf(first);
    default:
      return typeof first === "number" ? String(first) : "";
  }
}

/** A moment as the browser's own field writes it: in local time, without a zone. */
function localTime(moment: string): string {
  const at = new Date(moment);
  return Number.isNaN(at.getTime()) ? "" : new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

export function check(field: Field, draft: Draft): Checked {
  switch (field.kind) {
    case "boolean":
      return { value: draft === true };
    case "many":
      return checkMany(field, Array.isArray(draft) ? draft : []);
    default:
      return String(draft).trim() === "" ? (field.isRequired ? { error: field.kind === "one" ? FIELD_WORDS.choose : FIELD_WORDS.empty } : undefined) : checkFilled(field, String(draft));
  }
}

function checkFilled(field: Field, draft: string): Checked {
  switch (field.kind) {
    case "number":
    case "integer":
      return checkNumber(field, draft.trim());
    case "text":
      return checkText(field.type, field.rule, draft);
    default:
      return { value: draft };
  }
}

function checkMany({ isRequired, rule: { minItems, maxItems } }: Field, chosen: readonly string[]): Checked {
  if (chosen.length === 0 && !isRequired) {
    return undefined;
  }
  if (typeof minItems === "number" && chosen.length < minItems) {
    return { error: FIELD_WORDS.fewChoices(minItems) };
  }
  return typeof maxItems === "number" && chosen.length > maxItems ? { error: FIELD_WORDS.manyChoices(maxItems) } : { value: chosen };
}

const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;

function checkNumber({ kind, rule }: Field, draft: string): Checked {
  const value = Number(draft);
  if (!NUMBER.test(draft) || !Number.isFinite(value)) {
    return { error: kind === "integer" ? FIELD_WORDS.integer : FIELD_WORDS.number };
  }
  // a larger one would not be sent as it was typed
  if (kind === "integer" && !Number.isSafeInteger(value)) {
    return { error: Number.isInteger(value) ? FIELD_WORDS.tooLarge : FIELD_WORDS.integer };
  }
  const limits = [
    ["minimum", (limit: number) => value >= limit], ["maximum", (limit: number) => value <= limit],
    ["exclusiveMinimum", (limit: number) => value > limit], ["exclusiveMaximum", (limit: number) => value < limit],
  ] as const;
  for (const [name, fits] of limits) {
    const limit = rule[name];
    if (typeof limit === "number" && !fits(limit)) {
      return { error: FIELD_WORDS[name](limit) };
    }
  }
  return { value };
}

const EMAIL = /^[^\s@]+@[^\s@]+\.[^\s@.]+$/;

function checkText(type: string, { minLength, maxLength, pattern }: Rule, draft: string): Checked {
  const text = type === "text" || type === "long" ? draft : draft.trim();
  if (type === "email" && !EMAIL.test(text)) {
    return { error: FIELD_WORDS.email };
  }
  if (type === "url" && !URL.canParse(text)) {
    return { error: FIELD_WORDS.uri };
  }
  if ((type === "date" || type === "datetime-local") && Number.isNaN(Date.parse(text))) {
    return { error: FIELD_WORDS[type === "date" ? "date" : "dateTime"] };
  }
  const value = type === "datetime-local" ? new Date(text).toISOString() : text;
  // JSON Schema counts characters, not the halves of them
  const length = [...value].length;
  if (typeof minLength === "number" && length < minLength) {
    return { error: FIELD_WORDS.short(minLength) };
  }
  if (typeof maxLength === "number" && length > maxLength) {
    return { error: FIELD_WORDS.long(maxLength, length) };
  }
  return typeof pattern === "string" && !matches(pattern, value) ? { error: FIELD_WORDS.pattern } : { value };
}

function matches(pattern: string, text: string): boolean {
  try {
    return new RegExp(pattern, "u").test(text);
  } catch {
    // not a pattern of this browser: the server checks it
    return true;
  }
}

/** What was typed or chosen, by label, for somebody who reads it again. */
export function typedOf(fields: readonly Field[], drafts: FieldDrafts): Readonly<Record<string, string>> {
  const isAlone = (label: string): boolean => fields.filter((field) => field.label === label).length === 1;
  const lines = fields.map((field): [string, string] => [isAlone(field.label) ? field.label : field.name, draftWords(field, drafts[field.name] ?? "")]);
  return Object.fromEntries(lines.filter(([, words]) => words !== ""));
}

function draftWords(field: Field, draft: Draft): string {
  if (typeof draft === "boolean") {
    return draft ? "Yes" : "No";
  }
  const values = typeof draft === "string" ? [draft] : draft;
  const titles = "choices" in field ? field.choices : [];
  return values.map((value) => titles.find((choice) => choice.value === value)?.title ?? value).join(", ");
}

function ruleOf(value: unknown): Rule {
  return typeof value === "object" && value !== null ? (value as Rule) : {};
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
