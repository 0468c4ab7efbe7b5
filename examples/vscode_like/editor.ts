// What an editor's extension would run: three tools for the open folder. Usage: editor URL FOLDER, with FARHAND_TOKEN set.
import { Client } from "@farhand/node";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { relative, resolve } from "node:path";
import { z } from "zod";

const [, , url = "http://127.0.0.1:8787", folder = "."] = process.argv;
/** How long the tests may be silent. Each line they print is reported as progress and restarts this time, up to ten times the limit in total. */
const timeoutSec = Number(process.env["EDITOR_SILENCE_SEC"] ?? 30);
const token = process.env["FARHAND_TOKEN"];
const client = new Client({ url, clientID: "editor", ...(token === undefined ? {} : { token }) });

const path = z.string().refine((name) => !relative(folder, resolve(folder, name)).startsWith(".."), "must be inside the open folder");

client.tool("read_file", { description: "Read a file of the open folder.", parameters: z.object({ path }), title: "Read a file" }, ({ path }) =>
  readFile(resolve(folder, path), "utf8"),
);

const running = { description: "Run the tests of the open folder.", parameters: z.object({}), title: "Run the tests", timeoutSec };

client.tool("run_tests", running, async (_, { progress, signal, show }) => {
  const tests = spawn(process.execPath, ["--test", "--test-reporter=tap"], { cwd: folder, signal, stdio: ["ignore", "pipe", "inherit"] });
  // the end of the call stops the tests; the resulting error is not needed
  tests.once("error", () => undefined);
  const failed: string[] = [];
  let passed = 0;
  for await (const line of linesOf(tests.stdout)) {
    progress(line.replace(/^# /, ""));
    passed += /^ok /.test(line) ? 1 : 0;
    failed.push(...(/^not ok \d+ - (.*)$/.exec(line)?.slice(1) ?? []));
  }
  signal.throwIfAborted();
  show({ title: `${passed} passed, ${failed.length} failed` });
  return { passed, failed };
});

const patching = { description: "Apply a unified diff to the open folder.", parameters: z.object({ diff: z.string() }), title: "Apply a patch", needsApproval: true };

client.tool("apply_patch", patching, async ({ diff }, { signal }) => {
  // git refuses paths that lead out of the folder
  const git = spawn("git", ["apply", "--verbose", "-"], { cwd: folder, signal, stdio: ["pipe", "ignore", "pipe"] });
  let said = "";
  git.stderr.setEncoding("utf8").on("data", (text: string) => (said += text));
  git.stdin.on("error", () => undefined).end(diff);
  const [code] = (await once(git, "close")) as [number];
  if (code !== 0) {
    throw new Error(`The patch does not apply. ${said.trim()}`);
  }
  return { applied: true };
});

async function* linesOf(stream: NodeJS.ReadableStream): AsyncGenerator<string> {
  let rest = "";
  for await (const text of stream.setEncoding("utf8")) {
    const lines = (rest + String(text)).split("\n");
    rest = lines.pop() ?? "";
    yield* lines.filter((line) => line.trim() !== "");
  }
}

for (const name of ["SIGINT", "SIGTERM"]) {
  process.once(name, () => client.stop());
}
void client.connected().then(() => console.log("the editor is connected"));
await client.run();
