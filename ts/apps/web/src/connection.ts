// What this page knows of its way to the server, beside the feed, which has a connection of its own: whether the plug is pulled,
// and whether the stream of the open chat is lost.

/** Long enough to be seen. */
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

  /** Fails as on a broken line while the plug is pulled. */
  fetch: typeof fetch = (input, init) => {
    const { signal } = this.#line;
    return fetch(input, { ...init, signal: init?.signal == null ? signal : AbortSignal.any([init.signal, signal]) });
  };

  /** Drops every request of the page and lets no other one through for a moment. */
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
      // as the browser says it when its own connection is back: whoever waits for the next attempt tries at once
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
