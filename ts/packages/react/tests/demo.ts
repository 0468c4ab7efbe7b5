// The demo on a real server, and a page with its cards, used as a person does.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { isAbsolute, join, resolve } from "node:path";
import { afterAll, beforeAll } from "vitest";
import { until } from "../../../tests/until.ts";

const ROOT = resolve(import.meta.dirname, "../../../..");
const VENV = process.env["VENV"] ?? ".venv";
const FARHAND = join(isAbsolute(VENV) ? VENV : join(ROOT, VENV), "bin/farhand");
const ADDRESS = /http:\/\/127\.0\.0\.1:\d+/;

/** Call it once at the top of a test file; returns the address once the demo runs. */
export function demo(): () => string {
  const room = mkdtempSync(join(tmpdir(), "farhand-demo-"));
  let running: ChildProcess | undefined;
  let log = "";
  beforeAll(async () => {
    const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("FARHAND_"));
    const env = { ...Object.fromEntries(inherited), HOME: room, TMPDIR: room, NO_COLOR: "1" };
    const started = spawn(FARHAND, ["demo", "--port", "0", "--store", "memory:", "--open"], { cwd: ROOT, env });
    started.stdout.on("data", (bytes) => (log += String(bytes)));
    started.stderr.on("data", (bytes) => (log += String(bytes)));
    running = started;
    await until(() => ADDRESS.test(log), () => `the demo's address; it said:\n${log}`, 45_000);
  });
  afterAll(async () => {
    if (running !== undefined && running.exitCode === null) {
      const ended = once(running, "exit");
      running.kill("SIGKILL");
      await ended;
    }
    rmSync(room, { recursive: true, force: true });
  });
  return () => ADDRESS.exec(log)?.[0] ?? "";
}
