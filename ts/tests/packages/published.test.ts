// @vitest-environment node
// The packages as somebody installs them: built, packed, and used by a program outside the workspace.
import { checkPackage, createPackageFromTarballData } from "@arethetypeswrong/core";
import { execFile, execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { afterAll, beforeAll, expect, it } from "vitest";
import { requirement } from "../requirement.ts";
import { Server } from "../server.ts";
import { runtimes } from "./runtimes.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const NAMES = ["protocol", "client", "ai-sdk", "react", "node"] as const;
const tarballs = new Map<string, string>();
const room = mkdtempSync(join(tmpdir(), "farhand-packages-"));
const run = (command: string, ...words: string[]): string => execFileSync(command, words, { cwd: room, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });

beforeAll(() => {
  execFileSync(join(ROOT, "node_modules/.bin/tsdown"), ["--logLevel", "error"], { cwd: ROOT, stdio: "ignore" });
  mkdirSync(join(room, "node_modules/@farhand"), { recursive: true });
  for (const name of NAMES) {
    const [packed] = JSON.parse(run("npm", "pack", "--json", "--loglevel=error", join(ROOT, "packages", name))) as [{ filename: string }];
    const place = join(room, "node_modules/@farhand", name);
    tarballs.set(name, join(room, packed.filename));
    mkdirSync(place);
    run("tar", "-xzf", packed.filename, "-C", place, "--strip-components=1");
  }
  // what they depend on is installed already, beside the workspace
  for (const name of ["eventsource-parser", "lucide-react", "react", "react-dom", "ai", "zod", "@types"]) {
    symlinkSync(join(ROOT, "node_modules", name), join(room, "node_modules", name));
  }
  writeFileSync(join(room, "package.json"), '{"type":"module"}');
}, 600_000);

afterAll(() => rmSync(room, { recursive: true, force: true }));

it("each package is there as plain modules with types, and without its sources", () => {
  for (const name of NAMES) {
    const place = join(room, "node_modules/@farhand", name);
    const { exports } = JSON.parse(readFileSync(join(place, "package.json"), "utf8")) as { exports: Record<string, { types: string; default: string } | string> };
    const files = Object.values(exports).flatMap((each) => (typeof each === "string" ? [each] : [each.types, each.default]));
    expect(files.filter((file) => !existsSync(join(place, file)))).toEqual([]);
    expect(existsSync(join(place, "src/index.ts"))).toBe(false);
    expect(readFileSync(join(place, "LICENSE"), "utf8")).toBe(readFileSync(join(ROOT, "../LICENSE"), "utf8"));
  }
});

it("plain Node imports every one of them", () => {
  const program = `
    const names = await Promise.all(["protocol", "client", "client/awaiting", "client/websocket", "ai-sdk", "react", "node"].map((name) => import("@farhand/" + name)));
    console.log(names.map((each) => Object.keys(each).length > 0).join());`;
  writeFileSync(join(room, "program.mjs"), program);
  expect(run("node", "program.mjs").trim()).toBe("true,true,true,true,true,true,true");
});

it("their types are found and hold", () => {
  writeFileSync(join(room, "page.tsx"), `
    import { LiveThread } from "@farhand/client";
    import { LiveTransport } from "@farhand/ai-sdk";
    import { useThread, type CardHost } from "@farhand/react";
    import { Client } from "@farhand/node";
    export const client: Client = new Client({ url: "http://127.0.0.1:8787", clientID: "desk" });
    client.tool("read", { description: "Read.", parameters: z.object({ name: z.string() }) }, ({ name }, { progress, signal }) => (progress(name.trim()), signal.aborted));
    // @ts-expect-error: the schema says what the input is
    client.tool("count", { description: "Count.", parameters: z.object({ name: z.string() }) }, ({ name }) => name.toFixed());
    import { z } from "zod";
    export const thread: LiveThread = new LiveThread({ threadId: "t" });
    export const line: LiveTransport = new LiveTransport();
    export function usePage(): CardHost { return useThread({ threadId: "t" }); }
    // @ts-expect-error: a thread has a name
    export const nameless = new LiveThread({});
  `);
  const options = ["--noEmit", "--strict", "--skipLibCheck", "--jsx", "react-jsx", "--module", "esnext", "--moduleResolution", "bundler", "--target", "es2023", "--types", "node"];
  expect(run(join(ROOT, "node_modules/.bin/tsc"), ...options, "page.tsx")).toBe("");
});

it.each(NAMES)("@farhand/%s has a manifest that every tool reads alike", async (name) => {
  const pkgDir = join(room, "node_modules/@farhand", name);
  const { messages, pkg } = await publint({ pkgDir, strict: true, pack: false });
  expect(messages.map((message) => formatMessage(message, pkg ?? {}))).toEqual([]);
});

it.each(NAMES)("the types of @farhand/%s are found by every way of resolution that knows modules", async (name) => {
  const result = await checkPackage(createPackageFromTarballData(readFileSync(tarballs.get(name) ?? "")), { excludeEntrypoints: [/\.css$/] });
  const problems = result.types === false ? ["no types"] : result.problems;
  // there are modules only: no `require`, and no resolution from before there were exports
  const isOld = (problem: unknown): boolean => ["node10", "node16-cjs"].includes((problem as { resolutionKind?: string }).resolutionKind ?? "");
  expect(problems.filter((problem) => !isOld(problem))).toEqual([]);
});

const PROGRAM = `
  import { Client } from "@farhand/node";
  const client = new Client({ url: process.argv[2], clientID: "desk", graceSec: 30 });
  client.tool("echo", { description: "Say it again.", parameters: {} }, async ({ text }, { progress }) => (progress("at it"), { said: text }));
  void client.connected().then(async () => {
    const body = JSON.stringify({ toolID: "client_desk_echo", input: { text: "hey" } });
    const answer = await fetch(process.argv[2] + "/client-tools/execute", { method: "POST", headers: { "content-type": "application/json" }, body });
    console.log(JSON.stringify((await answer.json()).output));
    client.stop();
  });
  await client.run();
  console.log(await (await fetch(process.argv[2] + "/client-tools/tools/desk")).text());`;

it("a program with @farhand/node runs under Node 20, Node 22 and bun", async () => {
  requirement("node:runtimes");
  writeFileSync(join(room, "desk.mjs"), PROGRAM);
  const server = await Server.start();
  try {
    for (const { name, command } of runtimes()) {
      const { stdout } = await promisify(execFile)(command, ["desk.mjs", server.url], { cwd: room, timeout: 60_000 });
      expect(stdout, name).toBe('{"said":"hey"}\n[]\n');
    }
  } finally {
    await server.close();
  }
}, 600_000);
