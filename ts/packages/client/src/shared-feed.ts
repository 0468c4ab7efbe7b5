// The events of all of a person's threads. One tab reads them for all tabs: a browser opens at most six connections to a server, and each
// chat needs one. Uses fetch, since an `EventSource` does not notice a connection that has gone silent.
import { readFeed } from "./feed.ts";
import type { Http } from "./http.ts";
import { parsed } from "./json.ts";
import type { Connection } from "./thread.ts";
import { Refused } from "./transport.ts";
import { backOff, pause } from "./wait.ts";

/** An event of the feed, as the server sends it. `again` is our own: the reading tab has opened or reopened the feed. */
export interface FeedEvent {
  readonly type: string;
  readonly threadId?: string | null;
  /** For `again`: true if nothing was missed; otherwise reload everything. */
  readonly isResumed?: boolean;
}

/** Messages between tabs. `hello` names the thread whose events a tab wants; without one, it wants all. `away` is why no events
 * arrive, once the first attempt has failed. */
type Said =
  | { readonly kind: "hello"; readonly thread: string | undefined }
  | { readonly kind: "who" | "retry" }
  | { readonly kind: "live"; readonly isLive: boolean; readonly away?: Connection | undefined }
  | { readonly kind: "event"; readonly event: FeedEvent; readonly position: string | undefined };

export class SharedFeed {
  readonly #listeners = new Set<(event: FeedEvent) => void>();
  readonly #watchers = new Set<() => void>();
  readonly #end = new AbortController();
  readonly #wants: Set<string | undefined>;
  #channel: BroadcastChannel | undefined;
  #isLive = false;
  /** Attempts in a row that were not opened; the first one after an opened one is made soonest. */
  #failures = 0;
  #away: Connection | undefined;
  #position: string | undefined;
  #wake: (() => void) | undefined;
  /** Set while this tab reads: reconnects, to read the events of more threads. */
  #widen: (() => void) | undefined;

  constructor(
    private readonly http: Http,
    private readonly thread?: string,
  ) {
    this.#wants = new Set([thread]);
    globalThis.addEventListener?.("online", () => this.#wake?.(), { signal: this.#end.signal });
    void this.#readInTurn(`farhand-feed${http.url}${signOf(http)}`);
  }

  /** Without a secure origin there are no locks, and a browser that forbids the site to store anything refuses them, and perhaps the
   * channel too: then each page reads for itself. */
  async #readInTurn(name: string): Promise<void> {
    try {
      this.#channel = new BroadcastChannel(name);
      this.#channel.onmessage = ({ data }: MessageEvent<Said>) => this.#hear(data);
      this.#say({ kind: "hello", thread: this.thread });
      // held until the tab closes; then the next tab in line reads
      await navigator.locks.request(name, () => this.#read());
    } catch {
      this.#channel?.close();
      this.#channel = undefined;
      await this.#read();
    }
  }

  /** Whether events would arrive now. */
  get isLive(): boolean {
    return this.#isLive;
  }

  /** `closed` before it was first opened, and after `close()`; `lost` while it is tried again. */
  get connection(): Connection {
    return this.#end.signal.aborted ? CLOSED : this.#isLive ? { state: "open" } : (this.#away ?? CLOSED);
  }

  /** Tries at once, in whichever tab reads. */
  retryNow(): void {
    this.#share({ kind: "retry" });
  }

  watch = (watcher: () => void): (() => void) => {
    this.#watchers.add(watcher);
    return () => void this.#watchers.delete(watcher);
  };

  listen(listener: (event: FeedEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  close(): void {
    this.#end.abort();
    this.#channel?.close();
    this.#channel = undefined;
  }

  #hear(said: Said): void {
    switch (said.kind) {
      case "hello":
        this.#wants.add(said.thread);
        this.#widen?.();
        // otherwise a new tab would not know the state of the connection before the next event
        this.#widen !== undefined && this.#say({ kind: "live", isLive: this.#isLive, away: this.#away });
        return;
      case "who":
        return this.#say({ kind: "hello", thread: this.thread });
      case "live":
        return this.#live(said.isLive, said.away);
      case "retry":
        return this.#wake?.();
      case "event":
        return this.#tell(said.event, said.position);
    }
  }

  /** Reads until the page closes, or until `close()`. */
  async #read(): Promise<void> {
    const { signal } = this.#end;
    this.#widen = () => undefined;
    this.#say({ kind: "who" });
    while (!signal.aborted) {
      const thread = this.#wants.size === 1 ? this.thread : undefined;
      const line = new AbortController();
      const cut = (): void => line.abort();
      signal.addEventListener("abort", cut);
      this.#widen = () => thread !== undefined && this.#wants.size > 1 && cut();
      // lost, refused or ended: the feed is requested again
      const error = await this.#follow(thread, line.signal);
      signal.removeEventListener("abort", cut);
      if (line.signal.aborted) {
        // events of the other threads were not read so far
        this.#position = undefined;
      } else {
        const delay = backOff((this.#failures += 1));
        this.#share({ kind: "live", isLive: false, away: awayOf(error, delay) });
        await pause(delay, signal, (wake) => (this.#wake = wake));
      }
    }
  }

  /** Until it ends; why it was not opened, or broke. */
  async #follow(thread: string | undefined, signal: AbortSignal): Promise<unknown> {
    const after = this.#position;
    const onOpen = (): void => {
      this.#failures = -1;
      this.#share({ kind: "live", isLive: true });
      this.#share({ kind: "event", event: { type: "again", isResumed: after !== undefined }, position: after });
    };
    try {
      for await (const { event, data, id } of readFeed(this.http, { after, thread, signal, onOpen })) {
        const told = event === "gap" ? { type: "again" } : (parsed(data) as FeedEvent | undefined);
        told !== undefined && this.#share({ kind: "event", event: told, position: id ?? this.#position });
      }
    } catch (error) {
      return error;
    }
    return undefined;
  }

  #say(said: Said): void {
    this.#channel?.postMessage(said);
  }

  /** Sends it to the other tabs, and handles it in this one. */
  #share(said: Said): void {
    if (!this.#end.signal.aborted) {
      this.#say(said);
      this.#hear(said);
    }
  }

  #tell(event: FeedEvent, position: string | undefined): void {
    this.#position = position;
    this.#live(true);
    this.#listeners.forEach((listener) => listener(event));
  }

  #live(isLive: boolean, away?: Connection): void {
    if (this.#isLive !== isLive || this.#away !== away) {
      this.#isLive = isLive;
      this.#away = away;
      this.#watchers.forEach((watcher) => watcher());
    }
  }
}

const CLOSED: Connection = { state: "closed" };

const TOO_MANY = 429;

/** Too many open streams is not a refusal: the next attempt may succeed. */
function awayOf(error: unknown, delay: number): Connection {
  return error instanceof Refused && error.status !== TOO_MANY ? { state: "refused", status: error.status, reason: error.message } : { state: "lost", retryAt: Date.now() + delay };
}

/** Distinguishes tabs that sign in with different headers. A hash, since every script can read the names of locks. */
function signOf({ headers }: Http): string {
  const text = JSON.stringify(headers);
  return text === "{}" ? "" : `#${[...text].reduce((sum, letter) => (Math.imul(sum, 31) + (letter.codePointAt(0) ?? 0)) | 0, 7)}`;
}
