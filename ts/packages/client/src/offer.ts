// Lets a page offer tools of its own, as a program does, for as long as it is open.
import { httpOf, type HttpOptions } from "./http.ts";
import { Program, type ProgramEnd, type ProgramTool } from "./program.ts";

export interface OfferOptions extends HttpOptions {
  /** The name of this page: 1 to 64 letters, digits, `_` or `-`. If two pages have the same name, the newer one gets the calls. */
  readonly clientID: string;
  readonly tools: Readonly<Record<string, ProgramTool>>;
  /** How long the server keeps the tools while the connection is lost; its default is 5 s. */
  readonly graceSec?: number;
  /** The maximum number of concurrent handlers; 16 by default. */
  readonly atOnce?: number;
}

/** `offered`: the server can reach this page. `away`: disconnected, and reconnecting. Otherwise it has ended, with the reason. */
export type OfferState = { readonly state: "offered" | "away" } | { readonly state: "ended"; readonly end: ProgramEnd };

export function offer(options: OfferOptions): Offer {
  return new Offer(options);
}

export class Offer {
  readonly #listeners = new Set<() => void>();
  readonly #page = new AbortController();
  #program: Program | undefined;
  #ended: Promise<ProgramEnd> | undefined;
  #state: OfferState = { state: "away" };

  constructor(private readonly options: OfferOptions) {
    const { signal } = this.#page;
    globalThis.addEventListener?.("pagehide", () => this.#program?.leave(), { signal });
    // restored from the browser's back/forward cache: start again
    globalThis.addEventListener?.("pageshow", (event) => (event as PageTransitionEvent).persisted && this.#begin(), { signal });
    this.#begin();
  }

  /** The same object until something changes. */
  get state(): OfferState {
    return this.#state;
  }

  /** The ids of the calls that run in this page now. */
  get running(): ReadonlySet<string> {
    return this.#program?.running ?? new Set();
  }

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  /** Running handlers may finish; then the tools are unregistered. */
  async stop(): Promise<void> {
    this.#page.abort();
    this.#program?.stop();
    await this.#ended;
  }

  #begin(): void {
    const { tools, ...options } = this.options;
    const onChange = (): void => this.#become(program, { state: program.isConnected ? "offered" : "away" });
    const program: Program = new Program({ ...options, http: httpOf(options), tools: new Map(Object.entries(tools)), onChange });
    this.#program = program;
    this.#ended = program.run();
    void this.#ended.then((end) => this.#become(program, { state: "ended", end }));
  }

  #become(program: Program, state: OfferState): void {
    if (this.#program !== program) {
      return;
    }
    this.#state = this.#state.state === state.state ? this.#state : state;
    this.#listeners.forEach((listener) => listener());
  }
}
