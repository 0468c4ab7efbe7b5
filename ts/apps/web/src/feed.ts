// What happens anywhere in the person's threads. One tab reads it for all of them: a browser has six connections to a server
// and no more, and a chat needs one of its own. Read over fetch: an `EventSource` does not notice a line that has gone silent.
import { type Http, news } from "@farhand/client";
import { BASE } from "./base.ts";
import { HTTP } from "./server.ts";

export interface News {
  readonly type: string;
  readonly threadId?: string;
}

/** `again`: something may have been missed; look at everything anew. */
const AGAIN: News = { type: "again" };

/** A tab that is new here. */
const HELLO = "hello";

const TYPES: ReadonlySet<string> = new Set([
  "run-started", "run-parked", "run-resumed", "run-finished", "run-failed", "call-opened", "call-taken", "call-released", "call-settled",
  "approval-answered", "gap", "client-tool.registered", "client-tool.unregistered",
]);

const AGAIN_AFTER_MS = 3_000;

export class Feed {
  readonly #listeners = new Set<(news: News) => void>();
  readonly #watchers = new Set<() => void>();
  readonly #channel = new BroadcastChannel(`farhand-feed${BASE}`);
  readonly #end = new AbortController();
  #isLive = false;
  #reads = false;
  #position: string | undefined;

  constructor(private readonly http: Http = HTTP) {
    this.#channel.onmessage = ({ data }: MessageEvent<News | boolean | typeof HELLO>) => this.#hear(data);
    // the tab that reads says how things stand; otherwise a new one knew only at the next news
    this.#channel.postMessage(HELLO);
    // held for as long as the tab lives; the next tab in line reads on
    void navigator.locks.request(`farhand-feed${BASE}`, () => this.#read());
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

  close(): void {
    this.#end.abort();
    this.#channel.close();
  }

  #hear(said: News | boolean | typeof HELLO): void {
    if (said === HELLO) {
      this.#reads && this.#channel.postMessage(this.#isLive);
      return;
    }
    typeof said === "boolean" ? this.#live(said) : this.#tell(said);
  }

  /** For as long as the page is there, or until it is closed. */
  async #read(): Promise<void> {
    const { signal } = this.#end;
    this.#reads = true;
    while (!signal.aborted) {
      // whether it broke, was refused or ended: it is asked for again
      await this.#follow(signal).catch(() => undefined);
      this.#share(false);
      await pause(AGAIN_AFTER_MS, signal);
    }
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const onOpen = (): void => {
      this.#share(true);
      this.#share(AGAIN);
    };
    for await (const { event = "", data, id } of news(this.http, { after: this.#position, signal, onOpen })) {
      this.#position = id ?? this.#position;
      TYPES.has(event) && this.#share(event === "gap" ? AGAIN : newsOf(data));
    }
  }

  #share(said: News | boolean): void {
    if (this.#end.signal.aborted) {
      return;
    }
    this.#channel.postMessage(said);
    typeof said === "boolean" ? this.#live(said) : this.#tell(said);
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

/** Ends earlier when the browser has its network back, or nobody waits any more. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((wake) => {
    const done = (): void => {
      clearTimeout(timer);
      removeEventListener("online", done);
      wake();
    };
    const timer = setTimeout(done, ms);
    addEventListener("online", done);
    signal.addEventListener("abort", done, { once: true });
  });
}
