// @vitest-environment node
// The packages as somebody installs them: built, packed, and used by a program outside the workspace.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { requirement } from "../requirement.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const NAMES = ["protocol", "client", "ai-sdk", "react"] as const;
const room = mkdtempSync(join(tmpdir(), "farhand-packages-"));
const run = (command: string, ...words: string[]): string => execFileSync(command, words, { cwd: room, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });

beforeAll(() => {
  execFileSync(join(ROOT, "node_modules/.bin/tsdown"), ["--logLevel", "error"], { cwd: ROOT, stdio: "ignore" });
  mkdirSync(join(room, "node_modules/@farhand"), { recursive: true });
  for (const name of NAMES) {
    const [packed] = JSON.parse(run("npm", "pack", "--json", "--loglevel=error", join(ROOT, "packages", name))) as [{ filename: string }];
    const place = join(room, "node_modules/@farhand", name);
    mkdirSync(place);
    run("tar", "-xzf", packed.filename, "-C", place, "--strip-components=1");
  }
  // what they depend on is installed already, beside the workspace
  for (const name of ["eventsource-parser", "lucide-react", "react", "react-dom", "ai", "@types"]) {
    symlinkSync(join(ROOT, "node_modules", name), join(room, "node_modules", name));
  }
  writeFileSync(join(room, "package.json"), '{"type":"module"}');
}, 600_000);

afterAll(() => rmSync(room, { recursive: true, force: true }));

it("each package is there as plain modules with types, and without its sources", () => {
  requirement("packages:published");
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
  requirement("packages:published");
  const program = `
    const names = await Promise.all(["protocol", "client", "client/awaiting", "client/websocket", "ai-sdk", "react"].map((name) => import("@farhand/" + name)));
    console.log(names.map((each) => Object.keys(each).length > 0).join());`;
  writeFileSync(join(room, "program.mjs"), program);
  expect(run("node", "program.mjs").trim()).toBe("true,true,true,true,true,true");
});

it("their types are found and hold", () => {
  requirement("packages:published");
  writeFileSync(join(room, "page.tsx"), `
    import { LiveThread } from "@farhand/client";
    import { LiveTransport } from "@farhand/ai-sdk";
    import { useThread, type CardHost } from "@farhand/react";
    export const thread: LiveThread = new LiveThread({ threadId: "t" });
    export const line: LiveTransport = new LiveTransport();
    export function usePage(): CardHost { return useThread({ threadId: "t" }); }
    // @ts-expect-error: a thread has a name
    export const nameless = new LiveThread({});
  `);
  const options = ["--noEmit", "--strict", "--skipLibCheck", "--jsx", "react-jsx", "--module", "esnext", "--moduleResolution", "bundler", "--target", "es2023", "--types", "node"];
  expect(run(join(ROOT, "node_modules/.bin/tsc"), ...options, "page.tsx")).toBe("");
});
