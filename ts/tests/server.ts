// A real farhand server for the tests: the program of tests/browser, on loopback, with SQLite in a room of its
// own. Knows nothing of chats.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { isAbsolute, join, resolve } from "node:path";
import { until } from "./until.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const VENV = process.env["VENV"] ?? ".venv";
const FARHAND = join(isAbsolute(VENV) ? VENV : join(ROOT, VENV), "bin/farhand");
const ENDS_WITHIN_MS = 12_000;

export interface Execution {
  readonly tool: string;
  readonly subject: string;
}

export class Server {
  readonly #room = mkdtempSync(join(tmpdir(), "farhand-"));
  #process: ChildProcess | undefined;
  #log = "";

  static async start(settings: Readonly<Record<string, string>> = {}, { asksForToken = false } = {}): Promise<Server> {
    const server = new Server(await freePort(), settings, asksForToken);
    mkdirSync(join(server.#room, "gates"));
    await server.start().catch(async (error: unknown) => {
      await server.close();
      throw error;
    });
    return server;
  }

  private constructor(
    readonly port: number,
    private readonly settings: Readonly<Record<string, string>>,
    private readonly asksForToken: boolean,
  ) {}

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** What it printed: for a test that failed. */
  get log(): string {
    return this.#log;
  }

  /** On the same port each time. */
  async start(): Promise<void> {
    this.#log = "";
    const started = spawn(FARHAND, this.#command(), {
      cwd: ROOT,
      env: this.#environment(),
      stdio: ["ignore", "pipe", "pipe"],
    });
    started.on("error", (error) => (this.#log += String(error)));
    started.stdout.on("data", (bytes) => (this.#log += String(bytes)));
    started.stderr.on("data", (bytes) => (this.#log += String(bytes)));
    this.#process = started;
    // tests that are given up in the middle leave no server behind
    const kill = () => started.kill("SIGKILL");
    process.once("exit", kill);
    started.once("exit", () => process.off("exit", kill));
    await until(() => this.#log.includes(this.url) || started.exitCode !== null, "the server's address", 45_000);
    if (started.exitCode !== null) {
      throw new Error(`farhand run did not start:\n${this.#log}`);
    }
    await until(async () => (await fetch(`${this.url}/healthz`)).status < 500, "an answer of the server");
  }

  /** As an operator stops it, or as a power cut does. */
  async end(signal: "SIGTERM" | "SIGKILL" = "SIGTERM"): Promise<void> {
    const running = this.#process;
    this.#process = undefined;
    if (running === undefined || running.exitCode !== null) {
      return;
    }
    const ended = once(running, "exit");
    running.kill(signal);
    const impatience = setTimeout(() => running.kill("SIGKILL"), ENDS_WITHIN_MS);
    await ended;
    clearTimeout(impatience);
  }

  async close(): Promise<void> {
    await this.end();
    rmSync(this.#room, { recursive: true, force: true });
  }

  /** Lets a play go on that waits at `<subject>.<stage>`. */
  openGate(subject: string, stage: "text" | "tool" | "end"): void {
    writeFileSync(join(this.#room, "gates", `${subject}.${stage}`), "");
  }

  /** How often a server tool ran, for this subject or one below it. */
  executions(tool: string, subject: string): number {
    const file = join(this.#room, "executions.jsonl");
    const lines = existsSync(file) ? readFileSync(file, "utf8").trim().split("\n") : [];
    const all = lines.map((line) => JSON.parse(line) as Execution);
    return all.filter((one) => one.tool === tool && `${one.subject}/`.startsWith(`${subject}/`)).length;
  }

  /** Without the settings of whoever runs the tests. */
  #environment(): NodeJS.ProcessEnv {
    const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("FARHAND_"));
    // all clients of a file are one sign-in, and some of them stay connected
    const many = {
      FARHAND_LIMITS__STREAMS_PER_PRINCIPAL: "1000",
      FARHAND_LIMITS__RUNNING_PER_PRINCIPAL: "1000",
      FARHAND_LIMITS__RUNS_PER_MIN: "100000",
    };
    const own = { ...many, HOME: this.#room, TEST_ROOM: this.#room, NO_COLOR: "1", ...this.settings };
    return { ...Object.fromEntries(inherited), ...own };
  }

  #command(): string[] {
    const agent = join(ROOT, "tests/browser/server_agent.py:agent");
    const store = `sqlite:///${join(this.#room, "farhand.db")}`;
    const credentials = this.asksForToken ? [] : ["--open"];
    return ["run", agent, "--port", String(this.port), "--store", store, ...credentials];
  }
}

/** None of those that the system gives away by itself: nobody else gets it while the server is restarted. */
async function freePort(): Promise<number> {
  const port = 10_000 + Math.floor(Math.random() * 20_000);
  const probe = createServer();
  const isFree = new Promise<boolean>((tell) => probe.once("listening", () => tell(true)).once("error", () => tell(false)));
  probe.listen(port, "127.0.0.1");
  if (!(await isFree)) {
    return freePort();
  }
  await new Promise((closed) => probe.close(closed));
  return port;
}
