// The public Client: its handlers, and a run that offers them. What happens on the wire is the Program's, which pages use as well.
import { httpOf, Program, type ProgramEnd, type ProgramTool, type ToolOptions } from "@farhand/client";
import { Rejected, Superseded } from "./errors.ts";
import { type CallContext, fitShown, type Shown } from "./call-context.ts";
import { inputFor, type InputOf, type JsonSchema, jsonSchemaOf, type StandardSchema } from "./tool-schema.ts";

export interface ClientOptions {
  /** Address of the farhand server. */
  readonly url: string;
  /** The name of this party, chosen by you, the same one after a restart: 1 to 64 letters, digits, `_` or `-`. */
  readonly clientID: string;
  /** What lets it in. */
  readonly token?: string;
  /** How long the server keeps the tools while the connection is lost, 0 to 86 400; its default is 5. */
  readonly graceSec?: number;
  /** How many handlers run at a time; 16, unless told otherwise. */
  readonly atOnce?: number;
  /** Seconds that handlers get to finish when the client stops; 5, unless told otherwise. */
  readonly finishWithinSec?: number;
  /** The `fetch` to use, for programs behind a proxy. */
  readonly fetch?: typeof fetch;
}

export interface RunOptions {
  /** Ends the run as `stop()` does. */
  readonly signal?: AbortSignal;
}

const NAME = /^[A-Za-z0-9_-]{1,64}$/;
const LONGEST_SEC = 86_400;

/**
 * An outside party that runs tools.
 *
 * @example
 * const client = new Client({ url: "http://127.0.0.1:8787", clientID: "my-notes", token: "…" });
 * client.tool("read_note", { description: "Read a note.", parameters: z.object({ name: z.string() }) }, ({ name }) => read(name));
 * await client.run();
 */
export class Client {
  readonly #tools = new Map<string, ProgramTool>();
  /** By the calls that run. */
  readonly #shown = new Map<string, Shown>();
  readonly #waiting = new Set<() => void>();
  #program: Program | undefined;

  constructor(private readonly options: ClientOptions) {
    const { url, clientID, token, graceSec = 0, atOnce = 1, finishWithinSec = 0 } = options;
    check(NAME.test(clientID), `A client can't be called "${clientID}". Choose 1 to 64 letters, digits, _ or -.`);
    check(URL.canParse(url) && /^https?:$/.test(new URL(url).protocol), `"${url}" is not the address of a server. Write http://127.0.0.1:8787.`);
    check(token === undefined || /^[!-~]+( [!-~]+)*$/.test(token), "The token has characters that no token has. Is there a line break in it?");
    check(graceSec >= 0 && graceSec <= LONGEST_SEC, `graceSec is a number from 0 to ${LONGEST_SEC}, not ${graceSec}.`);
    check(Number.isInteger(atOnce) && atOnce >= 1, `atOnce is a whole number from 1 on, not ${atOnce}.`);
    check(finishWithinSec >= 0, `finishWithinSec is a number from 0 on, not ${finishWithinSec}.`);
  }

  /**
   * Offers a function as a tool, to the runs that begin a step from then on. What it throws is told to the model.
   * Tools are declared before `run()`.
   */
  tool<const S extends StandardSchema | JsonSchema>(name: string, options: ToolOptions<S>, run: (input: InputOf<S>, context: CallContext) => unknown): this {
    const { timeoutSec = 1, title } = options;
    check(NAME.test(name), `A tool can't be called "${name}". Choose 1 to 64 letters, digits, _ or -.`);
    check(!this.#tools.has(name), `There is a tool called "${name}" already.`);
    check(this.#program === undefined, "Declare tools before run().");
    check(timeoutSec >= 1 && timeoutSec <= LONGEST_SEC, `timeoutSec of tool "${name}" must be a number of seconds from 1 to ${LONGEST_SEC}.`);
    check(title === undefined || title.trim() !== "", `title of tool "${name}" must be a name for people.`);
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

  /** Comes back when the server can reach this client. */
  connected(): Promise<void> {
    return this.isConnected ? Promise.resolve() : new Promise((wake) => this.#waiting.add(wake));
  }

  /**
   * Until it is stopped; then the tools are withdrawn. However often the connection is lost, it comes back. Throws `Rejected` if the
   * server says no, `Superseded` if another program took over as this client.
   */
  async run({ signal }: RunOptions = {}): Promise<void> {
    check(this.#program === undefined, "This client runs already.");
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

  /** Ends `run()`, cleanly: what is under way may finish. */
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
