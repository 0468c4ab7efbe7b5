// A page as a hand, without a chat: hears which calls wait, runs those it has handlers for, and brings the answers of its cards.
import type { OpenCall } from "@farhand/protocol";
import type { Call } from "./call.ts";
import type { HandlerMap } from "./executor.ts";
import { queryOf } from "./feed.ts";
import { Hands, type HandsOptions } from "./hands.ts";
import { ask, httpOf, type HttpOptions, reasonOf } from "./http.ts";
import { asksForMore, callOf, type Facts, factsIn, follow } from "./open-calls.ts";
import type { Delivery } from "./outbox.ts";
import { type FeedEvent, SharedFeed } from "./shared-feed.ts";
import type { Connection } from "./thread.ts";

export interface ConnectOptions extends HttpOptions, Omit<HandsOptions, "handlers" | "onUnknown"> {
  /** The only thread whose calls count; those of all threads without it. */
  readonly thread?: string;
}

export interface HandState {
  /** Open calls, the oldest first. One is gone from here once it has its outcome. */
  readonly calls: ReadonlyMap<string, Call>;
  /** What the server says of them: thread, card, deadline, executor. */
  readonly facts: ReadonlyMap<string, OpenCall>;
  /** Calls that run in this page now. */
  readonly running: ReadonlySet<string>;
  /** Answers by the id of their call or approval. */
  readonly deliveries: ReadonlyMap<string, Delivery>;
  readonly connection: Connection;
}

/**
 * Listens from now on. Calls that have a handler are run as soon as they may be; the others are left to cards, or to somebody else.
 *
 * @example
 * const hand = connect({ url: "/farhand", thread: "t1" }).handle({ open_url: async ({ url }) => ({ url, viewKey: "v" }) });
 */
export function connect(options: ConnectOptions = {}): Hand {
  return new Hand(options);
}

export class Hand extends Hands {
  readonly #handlers: Record<string, HandlerMap[string]>;
  readonly #feed: SharedFeed;
  readonly #thread: string | undefined;
  #facts: Facts = new Map();
  #state: HandState | undefined;
  #refusal: Connection | undefined;
  /** Events that came while the inbox was asked for: it may be older than they are. */
  #early: FeedEvent[] | undefined;
  #looks = 0;

  constructor(options: ConnectOptions) {
    const handlers = {};
    super(httpOf(options), { ...options, handlers, onUnknown: "leave" });
    this.#handlers = handlers;
    this.#thread = options.thread;
    this.outbox.recover();
    this.#feed = new SharedFeed(this.http, options.thread);
    this.#feed.listen((event) => this.#hear(event));
    this.#feed.watch(() => this.changed());
    void this.#look(0);
  }

  /** Adds handlers by the names of their tools; they run at once what waits for them. */
  handle(handlers: HandlerMap): this {
    Object.assign(this.#handlers, handlers);
    this.#run();
    return this;
  }

  /** The same object until something changes. */
  get state(): HandState {
    this.#state ??= {
      calls: new Map([...this.#facts].map(([id, fact]) => [id, callOf(fact)])),
      facts: this.#facts,
      running: new Set(this.executor.running),
      deliveries: new Map(this.outbox.deliveries),
      connection: this.#refusal ?? { state: this.#feed.isLive ? "open" : "closed" },
    };
    return this.#state;
  }

  override retryNow(): void {
    super.retryNow();
    if (this.#early !== undefined) {
      void this.#look(0);
    }
  }

  /** Lets go of the connection and of what runs here. The calls go on without this page. */
  override close(): void {
    super.close();
    this.#feed.close();
  }

  /** What waits now; until it is known, events are kept for afterwards. */
  async #look(attempt: number): Promise<void> {
    this.#early ??= [];
    this.#looks += 1;
    const look = this.#looks;
    const answer = await ask(this.http, `/api/inbox${queryOf(this.#thread)}`);
    if (look !== this.#looks || this.end.signal.aborted) {
      // asked again meanwhile
      return;
    }
    const facts = answer.kind === "answered" && answer.status === 200 ? factsIn(answer.body) : undefined;
    const isRefused = answer.kind === "answered" && answer.status >= 400 && answer.status < 500;
    this.#refusal = isRefused ? { state: "refused", status: answer.status, reason: reasonOf(answer.body) } : undefined;
    if (facts === undefined) {
      this.timers.set("look", this.backOff(attempt), () => void this.#look(attempt + 1));
      this.changed();
      return;
    }
    const early = this.#early;
    this.#early = undefined;
    this.#become(early.reduce(follow, facts));
  }

  #hear(event: FeedEvent): void {
    if (event.type === "again") {
      if (event.isResumed !== true) {
        void this.#look(0);
      }
      return;
    }
    // one stream may be for several tabs
    if (this.#thread !== undefined && event.threadId !== this.#thread) {
      return;
    }
    if (asksForMore(event)) {
      void this.#look(0);
      return;
    }
    this.#early === undefined ? this.#become(follow(this.#facts, event)) : this.#early.push(event);
  }

  #become(facts: Facts): void {
    if (facts === this.#facts) {
      return;
    }
    // whatever has left is over: its handler may stop
    [...this.#facts.keys()].filter((id) => !facts.has(id)).forEach((id) => this.executor.end(id));
    this.#facts = facts;
    this.#run();
    this.changed();
  }

  #run(): void {
    for (const fact of this.#facts.values()) {
      if (fact.executor === "frontend" && !this.outbox.deliveries.has(fact.callId)) {
        this.executor.see(callOf(fact), { frontend: true });
      }
    }
  }

  protected override changed(): void {
    this.#state = undefined;
    super.changed();
  }
}
