// Derives the card of a tool that names none, from its schemas alone. Pure.
import { answerFields } from "./fields.ts";
import { typeIn, resolved, ruleOf, type Rule } from "./schema.ts";
import type { Kind } from "./view.ts";

/** The facts about a tool that cards use. Older servers send fewer. */
export interface ToolFacts {
  readonly card: string | null;
  readonly executor: string;
  readonly title?: string | null;
  readonly description?: string;
  readonly inputSchema?: unknown;
  readonly outputSchema?: unknown;
}

/** `Returns: "yes" or "no"` in a docstring, for a return type of `str`. */
const YES_OR_NO = /Returns:\s*["'“`]?yes["'”`]?\s*(?:or|\/|,)\s*["'“`]?no["'”`]?[.\s]*$/i;

export function guessCard(tool: ToolFacts): Kind {
  const output = outputOf(tool);
  if (output === undefined) {
    return "unknown";
  }
  if (returnsNothing(tool)) {
    return "form";
  }
  if (asksOneThing(tool) && (isYesNo(output) || typeIn(output) === "boolean" || (isPlainText(output) && YES_OR_NO.test(tool.description ?? "")))) {
    return "confirm";
  }
  if (enumOf(output) !== undefined || (isPlainText(output) && offersOptions(tool))) {
    return "select";
  }
  if (isPlainText(output)) {
    return "text";
  }
  return answerFields(tool.outputSchema) === undefined ? "unknown" : "form";
}

/** Whether the tool has no output: then there is nothing to fill in. */
export function returnsNothing(tool: ToolFacts | undefined): boolean {
  return tool !== undefined && outputOf(tool)?.["type"] === "null";
}

/** The values of an output with a fixed set of values; undefined for any other output. */
export function choicesIn(tool: ToolFacts | undefined): readonly unknown[] | undefined {
  const output = tool === undefined ? undefined : outputOf(tool);
  return output === undefined ? undefined : enumOf(output);
}

/** What Yes and No send: strings, unless the tool wants a boolean. */
export function confirmValues(tool: ToolFacts | undefined): { readonly yes: unknown; readonly no: unknown } {
  const isBoolean = tool !== undefined && typeIn(outputOf(tool) ?? {}) === "boolean";
  return isBoolean ? { yes: true, no: false } : { yes: "yes", no: "no" };
}

function outputOf({ outputSchema }: ToolFacts): Rule | undefined {
  return typeof outputSchema === "object" && outputSchema !== null ? resolved(ruleOf(outputSchema), ruleOf(outputSchema)) : undefined;
}

function inputsOf({ inputSchema }: ToolFacts): readonly Rule[] {
  const root = ruleOf(inputSchema);
  return Object.values(ruleOf(root["properties"])).map((rule) => resolved(ruleOf(rule), root));
}

function asksOneThing(tool: ToolFacts): boolean {
  const inputs = inputsOf(tool);
  return inputs.length === 1 && inputs[0]?.["type"] === "string";
}

/** A parameter that lists the texts to choose from. */
function offersOptions({ inputSchema }: ToolFacts): boolean {
  const root = ruleOf(inputSchema);
  const options = resolved(ruleOf(ruleOf(root["properties"])["options"]), root);
  return options["type"] === "array" && ruleOf(options["items"])["type"] === "string";
}

function isPlainText(output: Rule): boolean {
  return output["type"] === "string" && output["enum"] === undefined && output["format"] === undefined;
}

function isYesNo(output: Rule): boolean {
  const values = enumOf(output);
  return values?.length === 2 && values.includes("yes") && values.includes("no");
}

function enumOf({ enum: values }: Rule): readonly unknown[] | undefined {
  const isPlain = Array.isArray(values) && values.length > 0 && values.every((each) => typeof each === "string" || typeof each === "number");
  return isPlain ? values : undefined;
}
