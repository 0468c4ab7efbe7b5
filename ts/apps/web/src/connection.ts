// The page's own connection to the server, apart from the feed's: whether the plug is pulled, and whether the stream of the open chat is
// lost.

/** Long enough to be noticed. */
const PULLED_MS = 2_500;

export class PageConnection {
  #line = new AbortController();
  #pulledUntil: number | undefined;
  #isStreamLost = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #listeners = new Set<() => void>();

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  get isUp(): boolean {
    return this.#pulledUntil === undefined && !this.#isStreamLost;
  }

  get pulledUntil(): number | undefined {
    return this.#pulledUntil;
  }

  /** Fails as on a lost connection while the plug is pulled. */
  fetch: typeof fetch = (input, init) => {
    const { signal } = this.#line;
    return fetch(input, { ...init, signal: init?.signal == null ? signal : AbortSignal.any([init.signal, signal]) });
  };

  /** Aborts all requests of the page and fails new ones for a moment. */
  pullThePlug(): void {
    this.#pulledUntil = Date.now() + PULLED_MS;
    this.#line.abort(new TypeError("The plug is pulled."));
    this.#timer = setTimeout(() => this.plugIn(), PULLED_MS);
    this.#changed();
  }

  plugIn(): void {
    if (this.#pulledUntil !== undefined) {
      clearTimeout(this.#timer);
      this.#pulledUntil = undefined;
      this.#line = new AbortController();
      this.#changed();
      // the event of a browser that is online again: everything that waits for its next attempt retries now
      dispatchEvent(new Event("online"));
    }
  }

  noteStream(isLost: boolean): void {
    if (this.#isStreamLost !== isLost) {
      this.#isStreamLost = isLost;
      this.#changed();
    }
  }

  #changed(): void {
    this.#listeners.forEach((listener) => listener());
  }
}

export const CONNECTION = new PageConnection();
