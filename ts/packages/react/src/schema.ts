// The part of JSON Schema that forms are made from. Pure.

export type Rule = Readonly<Record<string, unknown>>;

export function ruleOf(value: unknown): Rule {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Rule) : {};
}

/** A schema may refer to itself. */
const STEPS_AT_MOST = 8;

/** The rule with its references resolved, and without a null alternative; `root` has the definitions. */
export function resolved(rule: Rule, root: Rule): Rule {
  let found = rule;
  for (let step = 0; step < STEPS_AT_MOST; step += 1) {
    const { $ref: reference, ...beside } = found;
    if (typeof reference === "string") {
      found = { ...ruleOf(at(root, reference)), ...beside };
      continue;
    }
    const others = choicesBesideNull(found);
    if (others?.length !== 1) {
      break;
    }
    const { anyOf: _, oneOf: __, ...rest } = found;
    found = { ...ruleOf(others[0]), ...rest };
  }
  return found;
}

/** Whether the value may be null: then an empty field means null. */
export function isNullable(rule: Rule): boolean {
  return choicesBesideNull(rule) !== undefined || (Array.isArray(rule["type"]) && rule["type"].includes("null"));
}

function choicesBesideNull({ anyOf, oneOf }: Rule): readonly unknown[] | undefined {
  const choices: unknown = anyOf ?? oneOf;
  if (!Array.isArray(choices)) {
    return undefined;
  }
  const others = choices.filter((each) => ruleOf(each)["type"] !== "null");
  return others.length < choices.length ? others : undefined;
}

/** The one type of a rule, not counting null. */
export function typeIn({ type }: Rule): string | undefined {
  const types = (Array.isArray(type) ? type : [type]).filter((each) => each !== "null");
  return types.length === 1 && typeof types[0] === "string" ? types[0] : undefined;
}

/** The target of a reference such as `#/$defs/Place`; an empty rule for any other reference. */
function at(root: Rule, reference: string): unknown {
  if (!reference.startsWith("#/")) {
    return undefined;
  }
  const steps = reference.slice(2).split("/").map((step) => decoded(step).replaceAll("~1", "/").replaceAll("~0", "~"));
  return steps.reduce<unknown>((place, step) => (Object.hasOwn(ruleOf(place), step) ? ruleOf(place)[step] : undefined), root);
}

/** A segment that is not valid percent-encoding is used as it is. */
function decoded(step: string): string {
  try {
    return decodeURIComponent(step);
  } catch {
    return step;
  }
}
