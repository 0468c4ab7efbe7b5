// Lets a page run calls without a chat: follows the open calls, runs those that it has handlers for, and sends the answers of its cards.
import type { OpenCall } from "@farhand/protocol";
import type { Call } from "./call.ts";
import type { HandlerMap } from "./executor.ts";
import { queryOf } from "./feed.ts";
import { Hands, type HandsOptions } from "./hands.ts";
import { ask, httpOf, type HttpOptions, refusalOf } from "./http.ts";
import { asksForMore, callOf, type Facts, factsIn, follow } from "./open-calls.ts";
import type { Delivery } from "./outbox.ts";
import { type FeedEvent, SharedFeed } from "./shared-feed.ts";
import type { Connection } from "./thread.ts";

export interface ConnectOptions extends HttpOptions, Omit<HandsOptions, "handlers" | "onUnknown"> {
  /** Only the calls of this thread; by default, those of all threads. */
  readonly thread?: string;
}

export interface HandState {
  /** Open calls, oldest first. A call is removed once it has its outcome. */
  readonly calls: ReadonlyMap<string, Call>;
  /** What the server says about them: thread, card, deadline, executor. */
  readonly facts: ReadonlyMap<string, OpenCall>;
  /** The ids of the calls that run in this page now. */
  readonly running: ReadonlySet<string>;
  /** Answers by the id of their call or approval. */
  readonly deliveries: ReadonlyMap<string, Delivery>;
  readonly connection: Connection;
}

/**
 * Starts following open calls. Calls with a handler are run as soon as they may be; the others are left to cards, or to somebody else.
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
  /** Events that arrived while the inbox was being loaded: the response may be older. */
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

  /** Adds handlers by tool name; they run the calls that are waiting for them. */
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
      connection: this.#refusal ?? this.#feed.connection,
    };
    return this.#state;
  }

  override retryNow(): void {
    super.retryNow();
    this.#feed.retryNow();
    if (this.#early !== undefined) {
      void this.#look(0);
    }
  }

  /** Closes the connection and aborts what runs here. The calls stay open on the server. */
  override close(): void {
    super.close();
    this.#feed.close();
    this.changed();
  }

  /** Loads the calls that wait now; events that arrive meanwhile are applied afterwards. */
  async #look(attempt: number): Promise<void> {
    this.#early ??= [];
    this.#looks += 1;
    const look = this.#looks;
    const answer = await ask(this.http, `/api/inbox${queryOf(this.#thread)}`);
    if (look !== this.#looks || this.end.signal.aborted) {
      // another request was started meanwhile
      return;
    }
    const facts = answer.kind === "answered" && answer.status === 200 ? factsIn(answer.body) : undefined;
    const isRefused = answer.kind === "answered" && answer.status >= 400 && answer.status < 500;
    this.#refusal = isRefused ? refusalOf(answer.status, answer.body) : undefined;
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
    // several tabs may share one stream
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
    // a call that is no longer open is over: its handler may stop
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
