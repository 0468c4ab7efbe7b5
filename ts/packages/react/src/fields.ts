// The fields of a form, from a schema: what each starts with, whether what was typed fits, and the value of all of them. Pure.
import { isNullable, resolved, type Rule, ruleOf, typeIn } from "./schema.ts";
import { sentenceOf } from "./sentences.ts";
import { type Words, WORDS } from "./words.ts";

export interface Choice {
  /** What the control holds for it; `raw` is what is sent. */
  readonly value: string;
  readonly title: string;
  readonly raw: unknown;
}

interface Named {
  /** Where its value stands in the whole: empty if it is the whole. */
  readonly path: readonly string[];
  /** The path as one word, unique in its form. */
  readonly name: string;
  readonly label: string;
  readonly description: string;
  readonly isRequired: boolean;
  readonly isNullable: boolean;
  readonly rule: Rule;
}

export type Field = Named &
  (
    | { readonly kind: "text"; readonly type: "text" | "email" | "url" | "date" | "datetime-local" | "long" }
    /** `list` is one text on each line; `json` is what no field can be made for. */
    | { readonly kind: "number" | "integer" | "boolean" | "list" | "json" }
    | ChoiceKind
  );

interface ChoiceKind {
  readonly kind: "one" | "many";
  readonly choices: readonly Choice[];
}

/** What is in a field: text as typed, a tick, or the values that are ticked. */
export type Draft = string | boolean | readonly string[];
export type FieldDrafts = Readonly<Record<string, Draft>>;

/** For what a former life of the page kept. */
export function areDrafts(value: unknown): boolean {
  const isText = (each: unknown): boolean => typeof each === "string";
  return typeof value === "object" && value !== null && !Array.isArray(value) && Object.values(value).every((each) => isText(each) || typeof each === "boolean" || (Array.isArray(each) && each.every(isText)));
}

/** The value to send, nothing for a field that was left empty, or what is wrong. */
export type Checked = { readonly value: unknown } | { readonly error: string } | undefined;

const TYPES = { email: "email", uri: "url", date: "date", "date-time": "datetime-local" } as const;
/** Texts that may be longer than this get more than one line. */
const LINE_AT_MOST = 200;
const NESTED_AT_MOST = 3;

/** The fields of an object; one inside of another becomes fields of its own, with the names of both. */
export function fieldsOf(schema: unknown): readonly Field[] {
  const root = ruleOf(schema);
  return fieldsIn(resolved(root, root), { root, path: [], labels: [], isNeeded: true });
}

/** The fields of an answer that is no object, too; nothing if some of it would have to be written as JSON. */
export function answerFields(schema: unknown): readonly Field[] | undefined {
  if (typeof schema !== "object" || schema === null) {
    return undefined;
  }
  const root = ruleOf(schema);
  const rule = resolved(root, root);
  const isObject = typeIn(rule) === "object" && rule["properties"] !== undefined;
  const fields = isObject ? fieldsOf(schema) : [fieldOf(rule, { path: [], labels: [], isRequired: !isNullable(root), isNullable: isNullable(root) }, root)];
  return fields.length === 0 || fields.some(({ kind }) => kind === "json") ? undefined : fields;
}

/** The fields of an input that somebody wants to change, with what stands in it: whatever the schema does not name is there, too. */
export function editFields(schema: unknown, input: Rule): readonly Field[] {
  const root = ruleOf(schema);
  const rules = ruleOf(resolved(root, root)["properties"]);
  const needed = new Set(listIn(resolved(root, root)["required"]));
  const names = [...new Set([...Object.keys(input), ...Object.keys(rules)])];
  return names.map((name) => {
    const own = Object.hasOwn(rules, name) ? ruleOf(rules[name]) : undefined;
    const value = Object.hasOwn(input, name) ? input[name] : undefined;
    const rule = own === undefined ? { type: typeof value === "string" ? "string" : "json" } : resolved(own, root);
    // what the model wrote without being asked for may stay, or go
    const place = { path: [name], labels: [], isRequired: own === undefined || needed.has(name), isNullable: own !== undefined && isNullable(own) };
    const field = fieldOf({ ...rule, default: value }, place, root);
    // a value that its own field would not show as it is
    return value === undefined || showsAll(field, value) ? field : ({ ...field, kind: "json" } as Field);
  });
}

function showsAll(field: Field, value: unknown): boolean {
  switch (field.kind) {
    case "boolean":
      return typeof value === "boolean";
    case "number":
    case "integer":
      return typeof value === "number";
    case "one":
      return field.choices.some(({ raw }) => raw === value);
    case "many":
      return Array.isArray(value) && value.every((each) => field.choices.some(({ raw }) => raw === each));
    case "list":
      return Array.isArray(value) && value.every((each) => typeof each === "string" && !each.includes("\n") && each.trim() !== "");
    case "text":
      return typeof value === "string";
    case "json":
      return true;
  }
}

interface Within {
  readonly root: Rule;
  readonly path: readonly string[];
  readonly labels: readonly string[];
  /** False inside of an object that may be left out. */
  readonly isNeeded: boolean;
}

function fieldsIn(rule: Rule, { root, path, labels, isNeeded }: Within): readonly Field[] {
  const needed = new Set(listIn(rule["required"]));
  return Object.entries(ruleOf(rule["properties"])).flatMap(([name, each]) => {
    const own = ruleOf(each);
    const inner = resolved(own, root);
    const isRequired = isNeeded && needed.has(name);
    const place = [...path, name];
    if (typeIn(inner) === "object" && inner["properties"] !== undefined && place.length < NESTED_AT_MOST) {
      return fieldsIn(inner, { root, path: place, labels: [...labels, labelOf(inner, name)], isNeeded: isRequired });
    }
    return [fieldOf(inner, { path: place, labels, isRequired, isNullable: isNullable(own) }, root)];
  });
}

interface Place extends Pick<Named, "path" | "isRequired" | "isNullable"> {
  /** Of the objects around it. */
  readonly labels: readonly string[];
}

function fieldOf(rule: Rule, { path, labels, ...place }: Place, root: Rule): Field {
  const label = [...labels, labelOf(rule, path.at(-1) ?? "")].filter((each) => each !== "").join(": ");
  return { ...place, path, name: path.join("."), label, description: textOf(rule["description"]), rule, ...kindOf(rule, root) } as Field;
}

function labelOf({ title }: Rule, name: string): string {
  return textOf(title) || sentenceOf(name);
}

function kindOf(rule: Rule, root: Rule): object {
  const choices = choicesOf(rule);
  if (choices !== undefined) {
    return { kind: "one", choices };
  }
  switch (typeIn(rule)) {
    case "array":
      return listKind(resolved(ruleOf(rule["items"]), root));
    case "number":
    case "integer":
    case "boolean":
      return { kind: typeIn(rule) };
    case "string":
      return { kind: "text", type: lineType(rule) };
    default:
      return { kind: "json" };
  }
}

function listKind(items: Rule): object {
  const choices = choicesOf(items);
  return choices !== undefined ? { kind: "many", choices } : typeIn(items) === "string" ? { kind: "list" } : { kind: "json" };
}

function lineType({ format, maxLength, default: first }: Rule): string {
  const known = TYPES[format as keyof typeof TYPES];
  // a field of one line would drop the line breaks of its default
  return known ?? ((typeof maxLength === "number" && maxLength > LINE_AT_MOST) || textOf(first).includes("\n") || textOf(first).length > LINE_AT_MOST ? "long" : "text");
}

function choicesOf({ enum: values, enumNames: names, oneOf, anyOf, const: only }: Rule): readonly Choice[] | undefined {
  if (Array.isArray(values)) {
    return values.map((raw, index) => ({ value: String(raw), title: (Array.isArray(names) && textOf(names[index])) || String(raw), raw: raw as unknown }));
  }
  if (only !== undefined) {
    return [{ value: String(only), title: String(only), raw: only }];
  }
  const titled: unknown = oneOf ?? anyOf;
  const rules = Array.isArray(titled) ? titled.map(ruleOf) : [];
  return rules.length > 0 && rules.every((rule) => rule["const"] !== undefined)
    ? rules.map(({ const: raw, title }) => ({ value: String(raw), title: textOf(title) || String(raw), raw }))
    : undefined;
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
      return field.choices.filter(({ raw }) => Array.isArray(first) && first.includes(raw)).map(({ value }) => value);
    case "one":
      return field.choices.find(({ raw }) => raw === first)?.value ?? "";
    case "text":
      return field.type === "datetime-local" ? localTime(textOf(first)) : textOf(first);
    case "list":
      return Array.isArray(first) ? first.join("\n") : "";
    case "json":
      return first === undefined ? "" : JSON.stringify(first, undefined, 1);
    default:
      return typeof first === "number" ? String(first) : "";
  }
}

/** A moment as the browser's own field writes it: in local time, without a zone. */
function localTime(moment: string): string {
  const at = new Date(moment);
  return Number.isNaN(at.getTime()) ? "" : new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

export function check(field: Field, draft: Draft, words: Words = WORDS): Checked {
  switch (field.kind) {
    case "boolean":
      return { value: draft === true };
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
  // a larger one would not be sent as it was typed
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
  // JSON Schema counts characters, not the halves of them
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
    return new RegExp(pattern, "u").test(text);
  } catch {
    // not a pattern of this browser: the server checks it
    return true;
  }
}

function listIn(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
