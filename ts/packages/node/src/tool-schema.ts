// The schema of a tool's input: JSON Schema, or an object of a schema library that follows Standard Schema (zod 4.2 or newer, ArkType and
// others), which also checks the input and types it.

import type { ToolOptions } from "@farhand/client";

export type JsonSchema = ToolOptions["parameters"];

interface Checked<Out> {
  readonly value?: Out;
  readonly issues?: ReadonlyArray<{ readonly message: string; readonly path?: readonly unknown[] | undefined }> | undefined;
}

/** The part of Standard Schema that is used here. */
export interface StandardSchema<Out = unknown> {
  readonly "~standard": {
    readonly validate: (value: unknown) => Checked<Out> | Promise<Checked<Out>>;
    readonly jsonSchema?: { readonly input: (options: { readonly target: "draft-2020-12" }) => JsonSchema };
    readonly types?: { readonly output: Out } | undefined;
  };
}

/** The type of the input that a handler gets for this schema. */
export type InputOf<S> = S extends { readonly "~standard": { readonly types?: { readonly output: infer Out } | undefined } } ? Out : Readonly<Record<string, unknown>>;

export function jsonSchemaOf(parameters: StandardSchema | JsonSchema): JsonSchema {
  if (!isStandard(parameters)) {
    return parameters;
  }
  const converter = parameters["~standard"].jsonSchema;
  if (converter === undefined) {
    throw new TypeError("This schema cannot be converted to JSON Schema. With zod, use version 4.2 or newer.");
  }
  return converter.input({ target: "draft-2020-12" });
}

/** The input with the library's defaults and conversions; throws if it does not match the schema. */
export async function inputFor(parameters: StandardSchema | JsonSchema, input: unknown): Promise<unknown> {
  if (!isStandard(parameters)) {
    // the server has checked it already
    return input;
  }
  const { value, issues } = await parameters["~standard"].validate(input);
  if (issues !== undefined) {
    throw new TypeError(issues.map(({ message, path }) => `${path?.map(stepOf).join(".") || "input"}: ${message}`).join("; "));
  }
  return value;
}

function stepOf(step: unknown): string {
  return String((step as { key?: unknown } | undefined)?.key ?? step);
}

function isStandard(parameters: StandardSchema | JsonSchema): parameters is StandardSchema {
  return "~standard" in parameters;
}
