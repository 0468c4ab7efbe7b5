// A page as a program that offers tools of its own: for as long as the page is there, and no longer.
import { httpOf, type HttpOptions } from "./http.ts";
import { Program, type ProgramEnd, type ProgramTool } from "./program.ts";

export interface OfferOptions extends HttpOptions {
  /** The name of this page, 1 to 64 letters, digits, `_` or `-`. Of two pages with one name the newer one is asked. */
  readonly clientID: string;
  readonly tools: Readonly<Record<string, ProgramTool>>;
  /** How long the server keeps the tools while the connection is lost; its default is 5 s. */
  readonly graceSec?: number;
  /** How many handlers run at a time; 16, unless told otherwise. */
  readonly atOnce?: number;
}

/** `offered`: the server can reach this page. `away`: it is tried again. Else it has ended, and why. */
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
    // the browser kept the page, and somebody went back to it: that is another life
    globalThis.addEventListener?.("pageshow", (event) => (event as PageTransitionEvent).persisted && this.#begin(), { signal });
    this.#begin();
  }

  /** The same object until something changes. */
  get state(): OfferState {
    return this.#state;
  }

  /** The calls that run in this page now. */
  get running(): ReadonlySet<string> {
    return this.#program?.running ?? new Set();
  }

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  /** What is under way may finish; then the tools are withdrawn. */
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
