// Makes the fields of a form from a schema, with their initial values. Pure.
import { isNullable, resolved, type Rule, ruleOf, typeIn } from "./schema.ts";
import { sentenceOf } from "./sentences.ts";

export interface Choice {
  /** `value` is what the control holds; `raw` is what is sent. */
  readonly value: string;
  readonly title: string;
  readonly raw: unknown;
}

export interface Named {
  /** Where its value is in the whole; empty if it is the whole. */
  readonly path: readonly string[];
  /** The path as one string, unique in its form. */
  readonly name: string;
  readonly label: string;
  readonly description: string;
  readonly isRequired: boolean;
  /** Required in an object that may itself be left out. */
  readonly isOwed?: boolean;
  readonly isNullable: boolean;
  readonly rule: Rule;
}

export type Field = Named &
  (
    | { readonly kind: "text"; readonly type: "text" | "email" | "url" | "date" | "datetime-local" | "long" }
    /** `list` has one text per line; `json` is for values that no field can be made for. */
    | { readonly kind: "number" | "integer" | "boolean" | "list" | "json" }
    | ChoiceKind
  );

export interface ChoiceKind {
  readonly kind: "one" | "many";
  readonly choices: readonly Choice[];
}

/** The content of a field: a text, a boolean, or the chosen values. */
export type Draft = string | boolean | readonly string[];
export type FieldDrafts = Readonly<Record<string, Draft>>;

const TYPES = { email: "email", uri: "url", date: "date", "date-time": "datetime-local" } as const;
/** Texts that may be longer than this get several lines. */
const LINE_AT_MOST = 200;
const NESTED_AT_MOST = 3;

/** The fields of an object. A nested object becomes fields with the labels of both. */
export function fieldsOf(schema: unknown): readonly Field[] {
  const root = ruleOf(schema);
  return fieldsIn(resolved(root, root), { root, path: [], labels: [], isNeeded: true });
}

/** The fields of any answer, objects or not; undefined if a part of it would have to be written as JSON. */
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

/** The fields of an input that a person wants to edit, with its current values, including values that the schema does not name. `whole`
 * is the input with its defaults: such a field is not empty, since leaving it out would restore the default. */
export function editFields(schema: unknown, input: Rule, whole: Rule = input): readonly Field[] {
  const root = ruleOf(schema);
  const rules = ruleOf(resolved(root, root)["properties"]);
  const needed = new Set(listIn(resolved(root, root)["required"]));
  const names = [...new Set([...Object.keys(whole), ...Object.keys(rules)])];
  return names.map((name) => {
    const own = Object.hasOwn(rules, name) ? ruleOf(rules[name]) : undefined;
    const value = Object.hasOwn(whole, name) ? whole[name] : undefined;
    const isDefault = value !== undefined && !Object.hasOwn(input, name);
    const rule = own === undefined ? { type: typeof value === "string" ? "string" : "json" } : ownRule(own, root);
    // an optional value that the model wrote may be removed; a default may not, since leaving it out would restore it
    const place = { path: [name], labels: [], isRequired: own === undefined || isDefault || needed.has(name), isNullable: own !== undefined && isNullable(own) };
    const field = fieldOf({ ...rule, default: value }, place, root);
    // a value that its field could not show exactly is edited as JSON
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
  /** False inside an object that may be left out. */
  readonly isNeeded: boolean;
}

/** The rule with its references resolved. The title of a shared definition names a type, which several fields may have, so it is not used
 * as a label. */
function ownRule(own: Rule, root: Rule): Rule {
  return { ...resolved(own, root), title: own["title"] };
}

function fieldsIn(rule: Rule, { root, path, labels, isNeeded }: Within): readonly Field[] {
  const needed = new Set(listIn(rule["required"]));
  return Object.entries(ruleOf(rule["properties"])).flatMap(([name, each]) => {
    const own = ruleOf(each);
    const inner = ownRule(own, root);
    const isRequired = isNeeded && needed.has(name);
    const place = [...path, name];
    if (typeIn(inner) === "object" && inner["properties"] !== undefined && place.length < NESTED_AT_MOST) {
      return fieldsIn(inner, { root, path: place, labels: [...labels, labelOf(inner, name)], isNeeded: isRequired });
    }
    return [fieldOf(inner, { path: place, labels, isRequired, isOwed: needed.has(name) && !isNeeded, isNullable: isNullable(own) }, root)];
  });
}

interface Place extends Pick<Named, "path" | "isRequired" | "isOwed" | "isNullable"> {
  /** Those of the objects around it. */
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
      // a box that nobody has touched is an answer only where there has to be one
      return first === undefined && !field.isRequired ? "" : first === true;
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

/** A time in the format of the browser's own field: local, without a time zone. */
function localTime(moment: string): string {
  const at = new Date(moment);
  return Number.isNaN(at.getTime()) ? "" : new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

function listIn(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
