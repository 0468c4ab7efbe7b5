// A program, or a page, that runs tools for an assistant elsewhere: registers them, listens for calls, runs each call once, and sends
// every result until it has a receipt. Shared by `offer()` and `@farhand/node`; must not know which of them uses it.
import type { ClientToolProgress, ClientToolResult, OfferedTool, RegisterTools, ToolRequest, UnregisterTools } from "@farhand/protocol";
import { Executor, type Handler, type HandlerContext } from "./executor.ts";
import { type Answer, ask, type Http, refusalOf } from "./http.ts";
import { parsed } from "./json.ts";
import { Outbox, type PendingAnswer } from "./outbox.ts";
import { randomId } from "./random-id.ts";
import { accepted, answered, events } from "./sse.ts";
import { Cut, Refused } from "./transport.ts";
import { Timers } from "./wait.ts";

export type JsonSchema = Readonly<Record<string, unknown>>;

export interface ToolContext extends HandlerContext {
  readonly threadId: string;
  /** Reports progress to the people who watch the call, and restarts its time limit. Of several reports in quick succession, only the
   * last one is sent. */
  readonly progress: (text: string) => void;
}

export interface ToolOptions<S = JsonSchema> {
  readonly description: string;
  readonly parameters: S;
  /** A JSON Schema of the result. */
  readonly output?: JsonSchema;
  readonly title?: string;
  /** How long a call may take, 1 to 86 400; each progress report restarts this time, up to ten times. The server's default is 30. */
  readonly timeoutSec?: number;
  /** A person must approve each call, whatever the server's policy. */
  readonly needsApproval?: boolean;
}

/** A tool with its handler, which takes the input that the server has checked. */
export interface ProgramTool extends ToolOptions {
  readonly run: (input: never, context: ToolContext) => unknown;
}

export interface ProgramOptions {
  readonly http: Http;
  readonly clientID: string;
  readonly tools: ReadonlyMap<string, ProgramTool>;
  readonly graceSec?: number | undefined;
  /** The maximum number of concurrent handlers; 16 by default. */
  readonly atOnce?: number | undefined;
  /** How long handlers may take to finish when the program stops; 5 s by default. */
  readonly finishWithinMs?: number | undefined;
  /** The title and metadata that people see next to the result of this call; the model does not get them. */
  readonly shownBeside?: (callId: string) => Pick<ClientToolResult, "title" | "metadata">;
  readonly onChange: () => void;
}

/** Why the program has ended. */
export type ProgramEnd = { readonly kind: "stopped" | "superseded" } | { readonly kind: "refused"; readonly status: number; readonly reason: string };

interface Ongoing {
  readonly threadId: string;
  /** The latest progress text that was not reported yet. */
  said?: string | undefined;
  isReporting?: boolean;
}

const INTERRUPTED = "The client program was restarted while it had this call. Whether it took effect is unknown; it was not run again.";
const STOPPED = "The client program was stopped before the call was finished.";
export const TEXT_BYTES = 256;
const ERROR_BYTES = 4_096;
/** A handler may report a thousand times a second; two reports are enough for people. */
const SAID_EVERY_MS = 500;
/** The server sends a ping every 30 s. */
const STREAM_SILENCE_MS = 90_000;
const MAX_SEEN_CALLS = 10_000;
const BRIEF_MS = 1_000;
const A_DAY_MS = 86_400_000;
const LAST_WORD_MS = 3_000;
const LEAVE_WITHIN_MS = 5_000;
const TAKEN: Answer = { kind: "answered", status: 200, body: true, retryAfterMs: 0 };

export class Program {
  /** Identifies this process or page: another one may have been the same client before it. */
  readonly #who: { readonly clientID: string; readonly holder: string };
  readonly #offered: readonly OfferedTool[];
  readonly #executor: Executor;
  readonly #outbox: Outbox;
  readonly #seen = new Remembered();
  /** Calls that have no outcome here yet. */
  readonly #ongoing = new Map<string, Ongoing>();
  /** Results that were too large or malformed: a failure was sent in their place. */
  readonly #replaced = new Set<string>();
  readonly #waiters = new Set<() => void>();
  readonly #timers = new Timers();
  readonly #end = new AbortController();
  /** Ends `run()`; running handlers may finish first. */
  stop: () => void = () => undefined;
  readonly #stopped = new Promise<ProgramEnd>((resolve) => (this.stop = () => resolve({ kind: "stopped" })));
  /** The number of handlers that run now. */
  #busy = 0;
  #isConnected = false;
  #isClosing = false;
  #isLeft = false;

  constructor(private readonly options: ProgramOptions) {
    const { http, clientID, tools } = options;
    this.#who = { clientID, holder: `${clientID}.p${randomId()}` };
    this.#offered = [...tools].map(([id, { run: _, ...tool }]) => ({ id, ...tool }));
    this.#outbox = new Outbox({ http, backOff: soon, send: (answer) => this.#send(answer), onChange: (id) => this.#delivered(id) });
    this.#executor = new Executor({
      http,
      handlers: Object.fromEntries([...tools].map(([name, tool]) => [name, this.#handlerFor(tool)])),
      onUnknown: "fail",
      clientId: clientID,
      settle: ({ id }, outcome) => this.#settle(id, outcome),
      onChange: () => this.#changed(),
      // the server took it for this program before it sent it
      take: async (id, isRenewal) => (isRenewal ? this.#report(id, "") : TAKEN),
      seen: this.#seen,
    });
  }

  /** Whether the server can reach this program now. */
  get isConnected(): boolean {
    return this.#isConnected;
  }

  /** The ids of the calls that run here now. */
  get running(): ReadonlySet<string> {
    return this.#executor.running;
  }

  /** Serves calls until it is stopped, or the server refuses it permanently; then unregisters the tools. Returns the reason. */
  async run(): Promise<ProgramEnd> {
    const serving = this.#serve(this.#end.signal);
    const end = await Promise.race([serving, this.#stopped]);
    // while the stream is still open: without it, the server would fail the running calls
    await this.#finish();
    this.#end.abort();
    this.#changed();
    await serving;
    // a successor keeps its tools
    if (end.kind !== "superseded") {
      await this.#withdraw();
    }
    this.#close();
    return end;
  }

  /** Stops immediately, for a page that closes. While a result is still being sent, the tools stay registered for the grace period:
   * unregistering them could arrive first and fail the call. */
  leave(): void {
    if (this.#outbox.deliveries.size === 0) {
      void this.#unregister(undefined, true);
    }
    this.#isClosing = true;
    this.#end.abort();
    this.#close();
    this.stop();
  }

  async #serve(signal: AbortSignal): Promise<ProgramEnd> {
    for (let attempt = 0; !signal.aborted; attempt += 1) {
      let asked = 0;
      try {
        const how = await this.#attend(signal);
        if (how === "superseded") {
          return { kind: how };
        }
        attempt = how === "brief" ? attempt : -1;
      } catch (error) {
        if (error instanceof Refused && !isPassing(error.status)) {
          return { kind: "refused", status: error.status, reason: error.message };
        }
        if (!(error instanceof Cut || error instanceof Refused || signal.aborted)) {
          throw error;
        }
        asked = error instanceof Cut ? error.retryAfterMs : 0;
      }
      this.#connected(false);
      await this.#until(() => signal.aborted, attempt < 0 ? 0 : Math.max(soon(attempt), asked));
    }
    return { kind: "stopped" };
  }

  /** One connection, from registration until it is lost. `brief`: nothing arrived, so the next attempt waits a little. */
  async #attend(signal: AbortSignal): Promise<"lost" | "brief" | "superseded"> {
    const line = new AbortController();
    const cut = (): void => line.abort();
    signal.addEventListener("abort", cut, { once: true });
    try {
      await this.#register();
      const { clientID, holder } = this.#who;
      const path = `/client-tools/pending/${clientID}?holder=${holder}`;
      const body = await accepted(await answered(this.options.http, path, {}, line.signal));
      // a program that was this client before may have unregistered the tools since they were registered
      await this.#agree();
      this.#connected(true);
      return await this.#hear(body);
    } finally {
      signal.removeEventListener("abort", cut);
      cut();
    }
  }

  async #hear(body: ReadableStream<Uint8Array>): Promise<"lost" | "brief" | "superseded"> {
    const begun = Date.now();
    let isHeard = false;
    try {
      for await (const { event, data } of events(body, { silenceMs: STREAM_SILENCE_MS })) {
        isHeard = true;
        if (event === "superseded") {
          return event;
        }
        await this.#react(event, data);
      }
    } catch (error) {
      if (!(error instanceof Cut)) {
        throw error;
      }
    }
    return isHeard || Date.now() - begun > BRIEF_MS ? "lost" : "brief";
  }

  async #react(event: string | undefined, data: string): Promise<void> {
    const told = parsed(data) as ToolRequest | undefined;
    if (event === "tool-unregistered") {
      await this.#agree();
    } else if (typeof told?.requestID !== "string") {
      return;
    } else if (event === "tool-settled") {
      this.#drop(told.requestID);
    } else if (event === "tool-request") {
      this.#begin(told);
    }
  }

  /** Starts a call that is new; a known one is running or answered. */
  #begin({ requestID: id, sessionID, tool, input, again }: ToolRequest): void {
    if (this.#isClosing || this.#seen.has(id) || this.#ongoing.has(id) || this.#outbox.deliveries.has(id)) {
      return;
    }
    this.#ongoing.set(id, { threadId: sessionID });
    if (again === true) {
      this.#seen.add(id);
      this.#settle(id, { kind: "failure", error: INTERRUPTED });
    } else {
      this.#executor.see({ id, tool, phase: "ready", input }, { frontend: true });
    }
  }

  /** The call has its outcome: aborts its handler. */
  #drop(id: string): void {
    this.#ongoing.delete(id);
    this.#executor.end(id);
    this.#changed();
  }

  #handlerFor({ run }: ProgramTool): Handler {
    return async (input, context) => {
      const ongoing = this.#ongoing.get(context.callId) ?? { threadId: "" };
      // the slot is taken inside the condition: other waiting handlers check at the same moment
      await this.#until(() => this.#busy < (this.options.atOnce ?? 16) && (this.#busy += 1) > 0);
      try {
        // the call may have ended while it waited for a slot
        context.signal.throwIfAborted();
        return await run(input, { ...context, threadId: ongoing.threadId, progress: (text) => this.#say(context.callId, ongoing, text) });
      } finally {
        this.#busy -= 1;
        this.#changed();
      }
    };
  }

  #settle(id: string, outcome: { kind: "success"; output?: unknown } | { kind: "failure"; error: string }): void {
    this.#ongoing.delete(id);
    const result: ClientToolResult =
      outcome.kind === "success"
        ? { requestID: id, status: "success", output: outcome.output, ...this.options.shownBeside?.(id) }
        : { requestID: id, status: "error", error: fitting(outcome.error, ERROR_BYTES) };
    this.#outbox.put({ id, path: "/client-tools/result", body: JSON.stringify(result) });
  }

  /** Sends a result, and returns the response in the terms of the ack protocol. */
  async #send({ path, body }: PendingAnswer): Promise<Answer> {
    const answer = await ask(this.options.http, path, body);
    if (answer.kind === "unreachable" || isPassing(answer.status)) {
      return { ...answer, status: 503 } as Answer;
    }
    const isKnown = answer.body === true || answer.status === 404 || answer.status === 409 || answer.status === 410;
    return isKnown ? { ...answer, body: { ok: answer.body === true } } : answer;
  }

  #delivered(id: string): void {
    const delivery = this.#outbox.deliveries.get(id);
    if (delivery?.state === "settled" || delivery?.state === "refused") {
      this.#outbox.discard(id);
      const isUnfit = delivery.state === "refused" && (delivery.status === 400 || delivery.status === 413);
      // the server must not wait for a result that it does not accept
      if (isUnfit && !this.#replaced.delete(id)) {
        this.#replaced.add(id);
        this.#settle(id, { kind: "failure", error: `The result could not be sent. ${delivery.reason}` });
      } else {
        this.#replaced.delete(id);
      }
    }
    this.#changed();
  }

  #say(id: string, ongoing: Ongoing, text: string): void {
    ongoing.said = fitting(text, TEXT_BYTES);
    if (ongoing.isReporting !== true) {
      ongoing.isReporting = true;
      this.#tell(id, ongoing);
    }
  }

  #tell(id: string, ongoing: Ongoing): void {
    const { said } = ongoing;
    if (said === undefined || this.#ongoing.get(id) !== ongoing) {
      ongoing.isReporting = false;
      return;
    }
    ongoing.said = undefined;
    this.#timers.set(id, SAID_EVERY_MS, () => this.#tell(id, ongoing));
    void this.#report(id, said);
  }

  /** Reports that the call is still being worked on. A text is shown to people and restarts the time limit. */
  async #report(requestID: string, text: string): Promise<Answer> {
    const progress: ClientToolProgress = { ...this.#who, requestID, text, keepAlive: text === "" };
    const answer = await ask(this.options.http, "/client-tools/progress", JSON.stringify(progress));
    // a take by another program does not end the call
    if (answer.kind === "answered" && (answer.status === 404 || answer.status === 410)) {
      this.#drop(requestID);
    }
    return answer;
  }

  async #register(): Promise<void> {
    const { graceSec } = this.options;
    const registration: RegisterTools = { ...this.#who, tools: this.#offered, ...(graceSec === undefined ? {} : { graceSec }) };
    await this.#demand("/client-tools/register", registration);
  }

  /** Registers tools again that somebody else unregistered, and unregisters tools that another program left behind as this client. */
  async #agree(): Promise<void> {
    const own = this.#offered.map(({ id }) => `client_${this.#who.clientID}_${id}`);
    const there = await this.#registered();
    if (own.some((name) => !there.includes(name)) && !this.#isClosing) {
      await this.#register();
    }
    const left = there.filter((name) => !own.includes(name));
    if (left.length > 0) {
      await this.#unregister(left);
    }
  }

  async #registered(): Promise<string[]> {
    const listed = await this.#demand(`/client-tools/tools/${this.#who.clientID}`);
    return Array.isArray(listed) ? listed.map(({ id }: { id: string }) => id) : [];
  }

  #unregister(toolIDs?: readonly string[], keepalive = false): Promise<Answer> {
    const gone: UnregisterTools = { ...this.#who, ...(toolIDs === undefined ? {} : { toolIDs }) };
    return ask(this.options.http, "/client-tools/unregister", JSON.stringify(gone), { method: "DELETE", keepalive });
  }

  async #demand(path: string, body?: object): Promise<unknown> {
    const answer = await ask(this.options.http, path, body && JSON.stringify(body));
    if (answer.kind === "unreachable" || isPassing(answer.status)) {
      throw new Cut(answer.kind === "unreachable" ? 0 : answer.retryAfterMs);
    }
    if (answer.status >= 300) {
      throw new Refused(answer.status, refusalOf(0, answer.body).reason);
    }
    return answer.body;
  }

  async #finish(): Promise<void> {
    this.#isClosing = true;
    await this.#until(() => this.#ongoing.size + this.#outbox.deliveries.size === 0, this.options.finishWithinMs ?? 5_000);
    this.#executor.close();
    [...this.#ongoing.keys()].forEach((id) => this.#settle(id, { kind: "failure", error: STOPPED }));
    this.#outbox.retryAll();
    await this.#until(() => this.#outbox.deliveries.size === 0, LAST_WORD_MS);
  }

  /** Tries for a while; if the server cannot be reached, it removes the tools itself after the grace period. */
  async #withdraw(): Promise<void> {
    const until = Date.now() + LEAVE_WITHIN_MS;
    for (let attempt = 0; Date.now() < until && !this.#isLeft; attempt += 1) {
      const answer = await this.#unregister();
      if (answer.kind === "answered" && !isPassing(answer.status)) {
        return;
      }
      await new Promise((wake) => setTimeout(wake, soon(attempt)));
    }
  }

  #close(): void {
    this.#isLeft = true;
    this.#isConnected = false;
    this.#ongoing.clear();
    this.#executor.close();
    this.#outbox.close();
    this.#timers.close();
    this.#changed();
  }

  /** Resolves when the condition holds, or after this time. */
  #until(fact: () => boolean, ms = A_DAY_MS): Promise<void> {
    return new Promise((wake) => {
      const done = (): void => {
        clearTimeout(timer);
        this.#waiters.delete(look);
        wake();
      };
      const look = (): void => void (fact() && done());
      const timer = setTimeout(done, ms);
      this.#waiters.add(look);
      look();
    });
  }

  #connected(isConnected: boolean): void {
    if (this.#isConnected !== isConnected) {
      this.#isConnected = isConnected;
      this.#changed();
    }
  }

  #changed(): void {
    this.#waiters.forEach((look) => look());
    this.options.onChange();
  }
}

/** Ids of calls. The server does not send answered calls again, so the oldest of many may be forgotten. */
class Remembered {
  readonly #ids = new Set<string>();

  has(id: string): boolean {
    return this.#ids.has(id);
  }

  add(id: string): Set<string> {
    if (this.#ids.size >= MAX_SEEN_CALLS) {
      const [oldest = ""] = this.#ids;
      this.#ids.delete(oldest);
    }
    return this.#ids.add(id);
  }
}

/** The server is busy or restarting, or there were too many requests: a retry may help. */
function isPassing(status: number): boolean {
  return status >= 500 || status === 408 || status === 429;
}

/** The delay before the next attempt, well within the server's grace period. */
function soon(attempt: number): number {
  return Math.min(100 * 2 ** attempt, 3_000) * (0.75 + Math.random() / 4);
}

/** The text, cut to the size that the server accepts; any other value is converted to text. */
export function fitting(text: unknown, bytes: number): string {
  return new TextDecoder().decode(new TextEncoder().encode(String(text)).subarray(0, bytes), { stream: true });
}
