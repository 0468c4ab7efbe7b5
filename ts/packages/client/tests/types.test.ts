// `farhand types`: what the compiler says about handlers that do not fit the Python tools.
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { isAbsolute, join, resolve } from "node:path";
import ts from "typescript";
import { afterAll, expect, it } from "vitest";

const ROOT = resolve(import.meta.dirname, "../../../..");
const VENV = process.env["VENV"] ?? ".venv";
const FARHAND = join(isAbsolute(VENV) ? VENV : join(ROOT, VENV), "bin/farhand");
// inside the workspace: the page under test imports the client
const ROOM = mkdtempSync(join(import.meta.dirname, ".types-"));
execFileSync(FARHAND, ["types", "farhand.demo.agent:agent", "-o", join(ROOM, "tools.ts")], { cwd: ROOT });
afterAll(() => rmSync(ROOM, { recursive: true }));

const HANDLERS: Readonly<Record<string, string>> = {
  open_url: "({ url }) => ({ url, viewKey: 'v1' })",
  user_confirm: "({ message }) => (message.endsWith('?') ? 'yes' : 'no')",
  ask_text: "async ({ question }) => question",
  select_option: "({ options }) => options[0] ?? ''",
  pick_file: "() => ({ name: 'a', type: 'text/plain', size: 1, ref: 'blob_1' })",
  pick_color: "() => ({ hex: '#ffffff' })",
  get_location: "() => ({ place: 'Oslo' })",
  copy_to_clipboard: "() => true",
  read_thermometer: "({ room }) => room.length",
  take_photo: "({ camera = 'front' }, { signal }) => ({ name: camera, type: String(signal.aborted), size: 1, ref: 'blob_1' })",
  photograph: "({ subject }) => ({ name: subject, type: 'image/png', size: 1, ref: 'blob_1' })",
};

function faults(handlers: Readonly<Record<string, string>>): string[] {
  const listed = Object.entries(handlers).map(([name, handler]) => `  ${name}: ${handler},`);
  const page = join(ROOM, "page.ts");
  writeFileSync(
    page,
    [
      'import { LiveThread } from "@farhand/client";',
      'import type { Handlers } from "./tools.ts";',
      `const handlers: Handlers = {\n${listed.join("\n")}\n};`,
      'export const thread = new LiveThread({ threadId: "t", handlers });',
    ].join("\n"),
  );
  const config = ts.readConfigFile(join(ROOT, "ts/tsconfig.json"), ts.sys.readFile).config as { compilerOptions: object };
  const { options } = ts.convertCompilerOptionsFromJson(config.compilerOptions, join(ROOT, "ts"));
  const program = ts.createProgram([page], options);
  return ts.getPreEmitDiagnostics(program).map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, "\n"));
}

it("handlers that fit compile", () => {
  expect(faults(HANDLERS)).toEqual([]);
});

it("a missing handler does not compile", () => {
  const { pick_color: _, ...rest } = HANDLERS;
  expect(faults(rest)).toEqual([expect.stringContaining("Property 'pick_color' is missing")]);
});

it("a wrong argument does not compile", () => {
  expect(faults({ ...HANDLERS, open_url: "({ link }) => ({ url: link, viewKey: 'v' })" })).toContainEqual(
    expect.stringContaining("Property 'link' does not exist"),
  );
  expect(faults({ ...HANDLERS, ask_text: "({ question }: { question: number }) => String(question)" })).toContainEqual(
    expect.stringContaining("'string' is not assignable to type 'number'"),
  );
});

it("a wrong return does not compile", () => {
  expect(faults({ ...HANDLERS, copy_to_clipboard: "() => 'true'" })).toEqual([expect.stringContaining("not assignable")]);
  expect(faults({ ...HANDLERS, open_url: "async ({ url }) => ({ url })" })).toEqual([expect.stringContaining("viewKey")]);
});

it("a handler for a tool that is not there does not compile", () => {
  expect(faults({ ...HANDLERS, open_door: "() => 1" })).toEqual([expect.stringContaining("'open_door' does not exist")]);
});
