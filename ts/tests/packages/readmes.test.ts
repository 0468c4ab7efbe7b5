// Every sample in the README of a package and in the how-to pages, and the program of an example, compiles, as strictly as the packages themselves.
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import ts from "typescript";
import { expect, it } from "vitest";

const ROOT = resolve(import.meta.dirname, "../..");
const PACKAGES = join(ROOT, "packages");
// what `farhand types` writes for an agent with one tool
const TOOLS = `export type Handlers = {
  readonly open_url: (input: { readonly url: string }, context: { readonly callId: string; readonly signal: AbortSignal }) =>
    { readonly url: string; readonly viewKey: string } | Promise<{ readonly url: string; readonly viewKey: string }>;
};
`;

interface Sample {
  readonly name: string;
  readonly code: string;
}

const HOW_TO = resolve(ROOT, "../docs/how-to");
// prints parts of examples/copilotkit, which has dependencies of its own: tests/docs/test_copilotkit.py holds page and program together
const ELSEWHERE = ["copilotkit.md"];

function samplesIn(name: string, file = join(PACKAGES, name, "README.md")): Sample[] {
  const text = readFileSync(file, "utf8");
  const blocks = [...text.matchAll(/^```(tsx?)\n(.*?)^```$/gms)];
  return blocks.map(([, kind, code], index) => ({ name: `${name}-${index}.${kind}`, code: code ?? "" }));
}

it("every sample of every README compiles", () => {
  const names = readdirSync(PACKAGES);
  const samples = names.flatMap((name) => samplesIn(name));
  expect(new Set(samples.map(({ name }) => name.replace(/-\d+\.tsx?$/, "")))).toEqual(new Set(names));
  // inside the workspace, so that the packages are found
  const room = mkdtempSync(join(import.meta.dirname, ".samples-"));
  try {
    writeFileSync(join(room, "tools.ts"), TOOLS);
    writeFileSync(join(room, "styles.d.ts"), 'declare module "*.css";\n');
    const read = readdirSync(HOW_TO).filter((page) => !ELSEWHERE.includes(page));
    const pages = read.flatMap((page) => samplesIn(`how-to-${basename(page, ".md")}`, join(HOW_TO, page)));
    expect(pages.map(({ name }) => name)).toContain("how-to-use-chat-0.tsx");
    const example = { name: "example-editor.ts", code: readFileSync(resolve(ROOT, "../examples/vscode_like/editor.ts"), "utf8") };
    const files = [...samples, ...pages, example].map(({ name, code }) => {
      const path = join(room, name);
      writeFileSync(path, code);
      return path;
    });
    expect(faultsIn([...files, join(room, "styles.d.ts")])).toEqual([]);
  } finally {
    rmSync(room, { recursive: true });
  }
}, 180_000);

function faultsIn(files: string[]): string[] {
  const { config } = ts.readConfigFile(join(ROOT, "tsconfig.json"), ts.sys.readFile) as { config: { compilerOptions: object } };
  const { options } = ts.convertCompilerOptionsFromJson(config.compilerOptions, ROOT);
  const program = ts.createProgram(files, options);
  return ts.getPreEmitDiagnostics(program).map(({ file, messageText }) => `${basename(file?.fileName ?? "")}: ${ts.flattenDiagnosticMessageText(messageText, "\n")}`);
}
