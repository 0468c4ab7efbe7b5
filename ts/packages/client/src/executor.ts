// Runs the calls that have a handler in this page, each once per page load, and only after the server has confirmed the take. Must not
// know how answers are sent.
import type { Outcome } from "@farhand/protocol";
import { type Answer, ask, type Http } from "./http.ts";
import type { Call } from "./call.ts";
import { backOff, Timers } from "./wait.ts";

export interface HandlerContext {
  readonly callId: string;
  /** Aborted when nobody waits for the output any more. */
  readonly signal: AbortSignal;
}

/** Takes the input of its own tool, which the server has checked: `farhand types` generates the types. */
export type Handler = (input: never, context: HandlerContext) => unknown;

export type HandlerMap = Readonly<Record<string, Handler>>;

/** What to do with a frontend call without a handler: answer it with a failure, leave it to a card, or leave it to somebody else. */
export type OnUnknown = "fail" | "card" | "leave";

export interface ExecutorOptions {
  readonly http: Http;
  readonly handlers: HandlerMap;
  readonly onUnknown: OnUnknown;
  /** The page's name at the server, a new one for each page load. */
  readonly clientId: string;
  readonly settle: (call: Call, outcome: Extract<Outcome, { kind: "success" | "failure" }>) => void;
  readonly onChange: () => void;
  /** When to try again after "taken": the page that took the call may be gone. */
  readonly askAgainMs?: number | undefined;
  /** The calls that were run here, or are about to be; by default, all of them are remembered. */
  readonly seen?: Pick<Set<string>, "has" | "add">;
  /** How a call is taken, and kept while it runs; by default, on the ack protocol. */
  readonly take?: ((callId: string, isRenewal: boolean) => Promise<Answer>) | undefined;
}

type ReadyCall = Extract<Call, { phase: "ready" | "taken" }>;

const RENEW_MS = 10_000;

export class Executor {
  readonly #seen: Pick<Set<string>, "has" | "add">;
  readonly #open = new Map<string, AbortController>();
  readonly #running = new Set<string>();
  readonly #timers = new Timers();

  constructor(private readonly options: ExecutorOptions) {
    this.#seen = options.seen ?? new Set();
  }

  /** The ids of the calls that run in this page now. */
  get running(): ReadonlySet<string> {
    return this.#running;
  }

  handles(tool: string): boolean {
    return handlerOf(this.options.handlers, tool) !== undefined;
  }

  /** Pass it every state of every call, as often as you like. `frontend`: only a page can run it. */
  see(call: Call, { frontend }: { frontend: boolean }): void {
    if (call.phase === "settled") {
      this.end(call.id);
      return;
    }
    if (call.phase !== "ready" || call.id === "" || this.#seen.has(call.id)) {
      return;
    }
    const handler = handlerOf(this.options.handlers, call.tool) ?? (frontend ? this.#forUnknown(call) : undefined);
    if (handler !== undefined) {
      this.#seen.add(call.id);
      this.#open.set(call.id, new AbortController());
      void this.#execute(call, handler, 0);
    }
  }

  /** Nobody waits for this call any more: aborts its handler. */
  end(id: string): void {
    this.#timers.clear(id);
    this.#open.get(id)?.abort();
    this.#open.delete(id);
    if (this.#running.delete(id)) {
      this.options.onChange();
    }
  }

  close(): void {
    this.#timers.close();
    [...this.#open.keys()].forEach((id) => this.end(id));
  }

  #forUnknown(call: Call): Handler | undefined {
    const refuse: Handler = () => {
      throw new Error(`This page has no handler for "${call.tool}".`);
    };
    return this.options.onUnknown === "fail" ? refuse : undefined;
  }

  async #execute(call: ReadyCall, handler: Handler, attempt: number): Promise<void> {
    const abort = this.#open.get(call.id);
    if (abort === undefined) {
      return;
    }
    const answer = await this.#take(call.id);
    const delay = this.#whenAgain(answer, attempt);
    if (delay !== undefined) {
      this.#timers.set(call.id, delay, () => void this.#execute(call, handler, attempt + 1));
    } else if (answer.kind === "answered" && answer.status === 200) {
      await this.#run(call, handler, abort.signal);
    } else {
      this.end(call.id);
    }
  }

  async #run(call: ReadyCall, handler: Handler, signal: AbortSignal): Promise<void> {
    this.#running.add(call.id);
    this.options.onChange();
    this.#renew(call.id);
    const outcome = await outcomeOf(() => handler(call.input as never, { callId: call.id, signal }));
    // if it was aborted, the call has its outcome already, or the page is closed
    if (!signal.aborted) {
      this.options.settle(call, outcome);
      // first, so that `end` does not abort the signal of a handler that has finished
      this.#open.delete(call.id);
      this.end(call.id);
    }
  }

  /** Milliseconds until the next attempt; undefined if the answer is final. Somebody else's take may lapse, and the server may come back. */
  #whenAgain(answer: Answer, attempt: number): number | undefined {
    if (answer.kind === "unreachable" || answer.status >= 500) {
      return backOff(attempt);
    }
    const taken = answer.status === 409 && (answer.body as { reason?: unknown } | undefined)?.reason === "taken";
    return taken ? (this.options.askAgainMs ?? RENEW_MS) : undefined;
  }

  #renew(id: string): void {
    this.#timers.set(id, RENEW_MS, () => {
      void this.#take(id, true);
      this.#renew(id);
    });
  }

  #take(toolCallId: string, isRenewal = false): Promise<Answer> {
    const { http, clientId, take } = this.options;
    return take?.(toolCallId, isRenewal) ?? ask(http, "/api/tools/take", JSON.stringify({ toolCallId, clientId }));
  }
}

/** The page's handler for this tool. Own properties only: a tool called `constructor` has no handler unless the page wrote one. */
function handlerOf(handlers: HandlerMap, tool: string): Handler | undefined {
  const found = Object.hasOwn(handlers, tool) ? handlers[tool] : undefined;
  return typeof found === "function" ? found : undefined;
}

async function outcomeOf(run: () => unknown): Promise<{ kind: "success"; output: unknown } | { kind: "failure"; error: string }> {
  try {
    const output = (await run()) ?? null;
    // encoded here, so that a value that JSON cannot represent becomes a failure with its reason
    if (JSON.stringify(output) === undefined) {
      return { kind: "failure", error: `The handler returned a ${typeof output}, which is not JSON.` };
    }
    return { kind: "success", output };
  } catch (error) {
    return { kind: "failure", error: error instanceof Error ? error.message : String(error) };
  }
}
