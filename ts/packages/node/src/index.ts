export type { ToolOptions } from "@farhand/client";
export { Client, type ClientOptions, type RunOptions } from "./client.ts";
export { Rejected, Superseded } from "./errors.ts";
export type { CallContext, Shown } from "./call-context.ts";
export type { InputOf, JsonSchema, StandardSchema } from "./tool-schema.ts";
