// Forms that somebody has filled in: the value of all fields together, and their words for somebody who reads them again. Pure.
import { check, type Draft, type Field, type FieldDrafts, firstDrafts } from "./fields.ts";
import { ruleOf, type Rule } from "./schema.ts";
import { type Words, WORDS } from "./words.ts";

/** What is wrong with each field, empty if nothing; the value, if nothing is wrong with any. */
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
  return { errors, value: fields[0]?.path.length === 0 ? (whole ?? null) : values.reduce<Rule>((object, [path, value]) => withValue(object, path, value), {}) };
}

/** An edited input: what nobody touched stays as it was, to the letter. */
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

/** What was typed or chosen and is not what the form began with, by label. */
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
