// What happens anywhere in the person's threads. One tab reads it for all of them: a browser has six connections to a server
// and no more, and a chat needs one of its own.
import { BASE } from "./base.ts";

export interface News {
  readonly type: string;
  readonly threadId?: string;
}

/** `again`: something may have been missed; look at everything anew. */
const AGAIN: News = { type: "again" };

/** A tab that is new here. */
const HELLO = "hello";

const TYPES = [
  "run-started", "run-parked", "run-resumed", "run-finished", "run-failed", "call-opened", "call-taken", "call-released", "call-settled",
  "approval-answered", "gap", "client-tool.registered", "client-tool.unregistered",
] as const;

const AGAIN_AFTER_MS = 3_000;

export class Feed {
  readonly #listeners = new Set<(news: News) => void>();
  readonly #watchers = new Set<() => void>();
  readonly #channel = new BroadcastChannel(`farhand-feed${BASE}`);
  #isLive = false;
  #reads = false;

  constructor() {
    this.#channel.onmessage = ({ data }: MessageEvent<News | boolean | typeof HELLO>) => this.#hear(data);
    // the tab that reads says how things stand; otherwise a new one knew only at the next news
    this.#channel.postMessage(HELLO);
    // held for as long as the tab lives; the next tab in line reads on
    void navigator.locks.request(`farhand-feed${BASE}`, () => new Promise<never>(() => this.#open()));
  }

  /** Whether news would arrive now. */
  get isLive(): boolean {
    return this.#isLive;
  }

  watch = (watcher: () => void): (() => void) => {
    this.#watchers.add(watcher);
    return () => void this.#watchers.delete(watcher);
  };

  listen(listener: (news: News) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  #hear(said: News | boolean | typeof HELLO): void {
    if (said === HELLO) {
      this.#reads && this.#channel.postMessage(this.#isLive);
      return;
    }
    typeof said === "boolean" ? this.#live(said) : this.#tell(said);
  }

  #open(): void {
    this.#reads = true;
    const source = new EventSource(`${BASE}/api/events`);
    source.onopen = () => {
      this.#share(true);
      this.#share(AGAIN);
    };
    source.onerror = () => {
      this.#share(false);
      // the browser tries again by itself, unless the server refused
      if (source.readyState === EventSource.CLOSED) {
        setTimeout(() => this.#open(), AGAIN_AFTER_MS);
      }
    };
    for (const type of TYPES) {
      source.addEventListener(type, ({ data }: MessageEvent<string>) => this.#share(type === "gap" ? AGAIN : newsOf(data)));
    }
  }

  #share(news: News | boolean): void {
    this.#channel.postMessage(news);
    typeof news === "boolean" ? this.#live(news) : this.#tell(news);
  }

  #tell(news: News): void {
    this.#live(true);
    this.#listeners.forEach((listener) => listener(news));
  }

  #live(isLive: boolean): void {
    if (this.#isLive !== isLive) {
      this.#isLive = isLive;
      this.#watchers.forEach((watcher) => watcher());
    }
  }
}

function newsOf(text: string): News {
  try {
    const { type, threadId } = JSON.parse(text) as News;
    return { type, ...(threadId === undefined ? {} : { threadId }) };
  } catch {
    return AGAIN;
  }
}
