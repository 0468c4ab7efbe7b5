// The public Client: its handlers, and a run that offers them. `Program`, which pages use as well, speaks the protocol.
import { httpOf, Program, type ProgramEnd, type ProgramTool, type ToolOptions } from "@farhand/client";
import { Rejected, Superseded } from "./errors.ts";
import { type CallContext, fitShown, type Shown } from "./call-context.ts";
import { inputFor, type InputOf, type JsonSchema, jsonSchemaOf, type StandardSchema } from "./tool-schema.ts";

export interface ClientOptions {
  /** The address of the farhand server. */
  readonly url: string;
  /** A name for this program, chosen by you and the same after a restart: 1 to 64 letters, digits, `_` or `-`. */
  readonly clientID: string;
  /** The credential that the server requires. */
  readonly token?: string;
  /** How long the server keeps the tools while the connection is lost, 0 to 86 400; its default is 5. */
  readonly graceSec?: number;
  /** The maximum number of concurrent handlers; 16 by default. */
  readonly atOnce?: number;
  /** Seconds that handlers get to finish when the client stops; 5 by default. */
  readonly finishWithinSec?: number;
  /** The `fetch` to use, for example behind a proxy. */
  readonly fetch?: typeof fetch;
}

export interface RunOptions {
  /** Stops the client, as `stop()` does. */
  readonly signal?: AbortSignal;
}

const NAME = /^[A-Za-z0-9_-]{1,64}$/;
const LONGEST_SEC = 86_400;

/**
 * A program that offers tools to an assistant on a farhand server.
 *
 * @example
 * const client = new Client({ url: "http://127.0.0.1:8787", clientID: "my-notes", token: "…" });
 * client.tool("read_note", { description: "Read a note.", parameters: z.object({ name: z.string() }) }, ({ name }) => read(name));
 * await client.run();
 */
export class Client {
  readonly #tools = new Map<string, ProgramTool>();
  /** What people see next to the results of running calls, by call id. */
  readonly #shown = new Map<string, Shown>();
  readonly #waiting = new Set<() => void>();
  #program: Program | undefined;

  constructor(private readonly options: ClientOptions) {
    const { url, clientID, token, graceSec = 0, atOnce = 1, finishWithinSec = 0 } = options;
    check(NAME.test(clientID), `"${clientID}" is not a valid client id. Choose 1 to 64 letters, digits, _ or -.`);
    check(URL.canParse(url) && /^https?:$/.test(new URL(url).protocol), `"${url}" is not the address of a server. Use one such as http://127.0.0.1:8787.`);
    check(token === undefined || /^[!-~]+( [!-~]+)*$/.test(token), "The token contains characters that are not allowed in a header. Check for a line break, or a space at its end.");
    check(graceSec >= 0 && graceSec <= LONGEST_SEC, `graceSec must be a number from 0 to ${LONGEST_SEC}, not ${graceSec}.`);
    check(Number.isInteger(atOnce) && atOnce >= 1, `atOnce must be a whole number of at least 1, not ${atOnce}.`);
    check(finishWithinSec >= 0, `finishWithinSec must be a number of seconds, not ${finishWithinSec}.`);
  }

  /**
   * Offers a function as a tool, from the next step of each run on. If it throws, the model gets the error message. Declare tools before
   * `run()`.
   */
  tool<const S extends StandardSchema | JsonSchema>(name: string, options: ToolOptions<S>, run: (input: InputOf<S>, context: CallContext) => unknown): this {
    const { timeoutSec = 1, title } = options;
    check(NAME.test(name), `"${name}" is not a valid name for a tool. Choose 1 to 64 letters, digits, _ or -.`);
    check(!this.#tools.has(name), `A tool "${name}" already exists. Rename one of the two.`);
    check(this.#program === undefined, "Declare tools before run().");
    check(timeoutSec >= 1 && timeoutSec <= LONGEST_SEC, `timeoutSec of tool "${name}" must be a number of seconds from 1 to ${LONGEST_SEC}.`);
    check(title === undefined || title.trim() !== "", `title of tool "${name}" must not be empty.`);
    const handler = async (input: unknown, context: Omit<CallContext, "show">): Promise<unknown> => {
      const show = (shown: Shown): void => void this.#shown.set(context.callId, { ...this.#shown.get(context.callId), ...shown });
      return run((await inputFor(options.parameters, input)) as InputOf<S>, { ...context, show });
    };
    this.#tools.set(name, { ...options, parameters: jsonSchemaOf(options.parameters), run: handler });
    return this;
  }

  /** Whether the server can reach this client now. */
  get isConnected(): boolean {
    return this.#program?.isConnected === true;
  }

  /** Resolves when the server can reach this client. */
  connected(): Promise<void> {
    return this.isConnected ? Promise.resolve() : new Promise((wake) => this.#waiting.add(wake));
  }

  /**
   * Serves calls until the client is stopped, then unregisters the tools. Reconnects as often as needed. Throws `Rejected` if the server
   * refuses the client, and `Superseded` if another program connects as this client.
   */
  async run({ signal }: RunOptions = {}): Promise<void> {
    check(this.#program === undefined, "This client is already running.");
    const { url, token, clientID, graceSec, atOnce, finishWithinSec, fetch } = this.options;
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const http = httpOf({ url, headers, ...(fetch === undefined ? {} : { fetch }) });
    const finishWithinMs = finishWithinSec === undefined ? undefined : finishWithinSec * 1_000;
    const onChange = (): void => this.#changed();
    const shownBeside = (callId: string): Shown => this.#takeShown(callId);
    const program = new Program({ http, clientID, tools: this.#tools, graceSec, atOnce, finishWithinMs, shownBeside, onChange });
    this.#program = program;
    signal?.addEventListener("abort", program.stop, { once: true });
    if (signal?.aborted === true) {
      program.stop();
    }
    try {
      conclude(await program.run());
    } finally {
      signal?.removeEventListener("abort", program.stop);
      this.#program = undefined;
    }
  }

  /** Ends `run()`; running handlers may finish first. */
  stop(): void {
    this.#program?.stop();
  }

  #takeShown(callId: string): Shown {
    const shown = this.#shown.get(callId) ?? {};
    this.#shown.delete(callId);
    return fitShown(shown);
  }

  #changed(): void {
    if (this.isConnected) {
      this.#waiting.forEach((wake) => wake());
      this.#waiting.clear();
    }
  }
}

function conclude(end: ProgramEnd): void {
  switch (end.kind) {
    case "stopped":
      return;
    case "superseded":
      throw new Superseded();
    case "refused":
      throw new Rejected(end.status, end.reason);
  }
}

function check(isSound: boolean, words: string): asserts isSound {
  if (!isSound) {
    throw new TypeError(words);
  }
}
