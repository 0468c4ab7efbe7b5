// A thread that is open in this page: reads its stream, runs its calls and sends its answers. Connects the parts and decides when the
// server is asked; the rules of each part are in its own file.
import type { OpenCall, Thread } from "@farhand/protocol";
import { isOpenCall, isThread } from "@farhand/protocol";
import { type Conversation, EMPTY_CONVERSATION, isOpen, reduce, say } from "./call.ts";
import { readFeed } from "./feed.ts";
import { Hands, type HandsOptions } from "./hands.ts";
import { ask, httpOf, type HttpOptions } from "./http.ts";
import type { Delivery } from "./outbox.ts";
import { randomId } from "./random-id.ts";
import { sseTransport } from "./sse.ts";
import { conversationOf, joined } from "./stored.ts";
import { Cut, type Frames, type Refused, START, type Transport } from "./transport.ts";
import { pause } from "./wait.ts";

export interface ThreadOptions extends HttpOptions, HandsOptions {
  readonly threadId: string;
  /** The transport; by default, server-sent events. */
  readonly transport?: Transport;
}

/** `closed`: nothing is read and nothing is missing. `lost`: the server cannot be reached, and is tried again. */
export type Connection =
  | { readonly state: "closed" | "open" }
  | { readonly state: "lost"; readonly retryAt: number }
  | { readonly state: "refused"; readonly status: number; readonly reason: string };

export interface ThreadState extends Conversation {
  /** What the server says about open calls: card, deadline, executor. */
  readonly facts: ReadonlyMap<string, OpenCall>;
  /** The ids of the calls that run in this page now. */
  readonly running: ReadonlySet<string>;
  /** Answers by the id of their call or approval. */
  readonly deliveries: ReadonlyMap<string, Delivery>;
  readonly connection: Connection;
}

const DEADLINE_GRACE_MS = 1_000;
const A_DAY_MS = 86_400_000;

type Opening = (signal: AbortSignal) => Promise<Frames | undefined>;

type Ending = "ended" | "nothing" | "refused" | Cut;

export class LiveThread extends Hands {
  readonly id: string;
  readonly #transport: Transport;
  #conversation: Conversation = EMPTY_CONVERSATION;
  #facts: ReadonlyMap<string, OpenCall> = new Map();
  #connection: Connection = { state: "closed" };
  #state: ThreadState | undefined;
  #position = START;
  /** Stops the current reading; a new message replaces it. */
  #reading: AbortController | undefined;
  #again = false;
  #wake: (() => void) | undefined;
  /** Set while no stream is open and the run is parked: waits for answers that others give. */
  #watching: AbortController | undefined;
  #learning = false;
  readonly #learned = new Set<string>();

  constructor(options: ThreadOptions) {
    super(httpOf(options), options);
    this.id = options.threadId;
    this.#transport = options.transport ?? sseTransport(this.http);
    // the feed may have missed events while the page was suspended
    globalThis.addEventListener?.("focus", () => this.#isParked && this.resume(), { signal: this.end.signal });
  }

  /** The same object until something changes. */
  get state(): ThreadState {
    this.#state ??= {
      ...this.#conversation,
      facts: this.#facts,
      running: new Set(this.executor.running),
      deliveries: new Map(this.outbox.deliveries),
      connection: this.#connection,
    };
    return this.#state;
  }

  /** Loads the stored messages, sends answers that were not delivered before a reload, and resumes the stream if there is one. */
  async open(): Promise<void> {
    this.outbox.recover();
    await this.#load();
    this.resume();
  }

  send(text: string): void {
    const id = randomId();
    this.#conversation = say(this.#conversation, id, text);
    this.#position = START;
    this.changed();
    const message = { id, role: "user", parts: [{ type: "text", text }] } as const;
    const request = { id: this.id, messages: [message], trigger: "submit-message" } as const;
    this.#reading?.abort();
    void this.#follow(async (signal) => this.#transport.send(request, signal));
  }

  /** Continues the current answer from the page's position; also on request, after a cut. */
  resume(): void {
    if (this.#reading !== undefined) {
      this.#again = true;
      this.#wake?.();
      return;
    }
    void this.#follow(this.#rest);
  }

  override retryNow(): void {
    super.retryNow();
    this.#wake?.();
  }

  /** Stops the run; the server cancels its open calls. Returns false if the server did not confirm it. */
  async stop(): Promise<boolean> {
    const answer = await ask(this.http, `/api/chat/${encodeURIComponent(this.id)}/stop`, "{}");
    this.resume();
    return answer.kind === "answered" && answer.status === 200;
  }

  /** Closes the connection and aborts what runs here. The run continues without this page. */
  override close(): void {
    super.close();
    this.#reading?.abort();
    this.#watching?.abort();
  }

  async #follow(first: Opening): Promise<void> {
    const reading = new AbortController();
    this.#reading = reading;
    this.#watching?.abort();
    let doubted = false;
    let attempt = 0;
    for (let opening: Opening | undefined = first; opening !== undefined && !reading.signal.aborted; ) {
      const before = this.#position;
      const how: Ending = await this.#read(opening, reading.signal);
      if (how instanceof Cut) {
        attempt = before === this.#position ? attempt + 1 : 0;
        await this.#pause(Math.max(this.backOff(attempt), how.retryAfterMs), reading.signal);
        // a post without a response is sent again under the same id; once it was answered, the stream is continued
        opening = this.#conversation.messages.at(-1)?.role === "user" ? opening : this.#rest;
        continue;
      }
      // a server that restarts ends the stream with an error, and the run continues elsewhere: check once before reporting a failure
      const doubtful: boolean = how === "ended" && this.#conversation.run.state === "failed" && !doubted;
      doubted ||= doubtful;
      opening = doubtful || (this.#again && how !== "refused") ? this.#rest : undefined;
      this.#again = false;
    }
    if (this.#reading === reading) {
      this.#reading = undefined;
      void this.#watch();
    }
  }

  get #isParked(): boolean {
    return this.#conversation.run.state === "parked";
  }

  async #watch(): Promise<void> {
    if (!this.#isParked || this.end.signal.aborted) {
      return;
    }
    const { signal } = (this.#watching = new AbortController());
    // something may have changed between the end of the stream and the first event
    const onOpen = (): void => void this.#load().then(() => !this.#isParked && this.resume());
    const heard = readFeed(this.http, { thread: this.id, signal, onOpen });
    // the first event is enough; after a lost connection, check a little later
    const delay = await heard.next().then(() => 0, () => this.backOff(3));
    void heard.return();
    if (!signal.aborted) {
      this.timers.set("watch", delay, () => this.#reading === undefined && this.resume());
    }
  }

  async #read(opening: Opening, signal: AbortSignal): Promise<Ending> {
    try {
      const frames = await opening(signal);
      if (frames === undefined) {
        await this.#load();
        return this.#closed("nothing");
      }
      this.#connect({ state: "open" });
      for await (const { chunk, position } of frames) {
        if (signal.aborted) {
          return "refused";
        }
        this.#conversation = reduce(this.#conversation, chunk);
        this.#position = position ?? this.#position;
        this.#look();
      }
      return this.#closed("ended");
    } catch (error) {
      return signal.aborted ? "refused" : this.#failed(error);
    }
  }

  #closed<T>(how: T): T {
    this.#connect({ state: "closed" });
    return how;
  }

  #failed(error: unknown): "refused" | Cut {
    if (error instanceof Cut) {
      return error;
    }
    const { message: reason, status = 0 } = error as Error & Partial<Refused>;
    this.#conversation = { ...this.#conversation, run: { state: "failed", error: reason } };
    this.#connect({ state: "refused", status, reason });
    return "refused";
  }

  readonly #rest: Opening = (signal) => this.#transport.resume(this.id, this.#position, signal);

  async #pause(delay: number, signal: AbortSignal): Promise<void> {
    this.#connect({ state: "lost", retryAt: Date.now() + delay });
    await pause(delay, signal, (wake) => (this.#wake = wake));
    this.#wake = undefined;
  }

  #connect(connection: Connection): void {
    this.#connection = connection;
    this.changed();
  }

  /** Passes the changed calls to the executor; asks the server who may run calls without a handler. */
  #look(): void {
    for (const call of this.#conversation.calls.values()) {
      if (!this.outbox.deliveries.has(call.id)) {
        this.executor.see(call, { frontend: this.#facts.get(call.id)?.executor === "frontend" });
      }
      if (call.phase === "settled") {
        this.executor.see(call, { frontend: false });
      }
    }
    this.changed();
    if (this.#unknown().length > 0) {
      void this.#learn();
    }
  }

  /** Open calls, with their phase, that the server has not been asked about yet. */
  #unknown(): string[] {
    const open = [...this.#conversation.calls.values()].filter((call) => isOpen(call) && (call.phase !== "ready" || !this.executor.handles(call.tool)));
    return open.map((call) => `${call.phase} ${call.id}`).filter((name) => !this.#learned.has(name));
  }

  async #learn(): Promise<void> {
    if (this.#learning) {
      return;
    }
    this.#learning = true;
    const asked = this.#unknown();
    const answer = await this.#stored();
    this.#learning = false;
    if (answer === undefined) {
      this.timers.set("learn", this.backOff(2), () => void this.#learn());
      return;
    }
    asked.forEach((name) => this.#learned.add(name));
    this.#know(answer);
    this.#look();
  }

  async #load(): Promise<void> {
    const before = this.#conversation;
    const thread = await this.#stored();
    if (thread === undefined) {
      return;
    }
    this.#know(thread);
    const now = this.#conversation;
    const conversation = conversationOf(thread, this.#facts);
    const isFailed = conversation.run.state === "failed" && now.run.state === "failed";
    // messages sent meanwhile follow the stored ones; the page may know the reason of a failure that the record lacks
    this.#conversation = now !== before ? joined(conversation, now) : isFailed ? { ...conversation, run: now.run } : conversation;
    this.changed();
  }

  async #stored(): Promise<Thread | undefined> {
    const answer = await ask(this.http, `/api/chat/${encodeURIComponent(this.id)}`);
    return answer.kind === "answered" && isThread(answer.body) ? answer.body : undefined;
  }

  #know(thread: Thread): void {
    const open = thread.openCalls.filter(isOpenCall);
    this.#facts = new Map(open.map((call) => [call.callId, call]));
    const first = Math.min(...open.map(({ deadline }) => Date.parse(deadline ?? "") || Number.POSITIVE_INFINITY));
    const delay = first - Date.now() + DEADLINE_GRACE_MS;
    // a longer delay exceeds the range of a timer, and no page stays open that long
    if (delay < A_DAY_MS) {
      this.timers.set("deadline", Math.max(delay, DEADLINE_GRACE_MS), () => this.#connection.state === "closed" && this.resume());
    }
  }

  /** A receipt resumes a parked run, so its stream is read again. */
  protected override changed(id?: string): void {
    this.#state = undefined;
    super.changed();
    const { state } = this.#conversation.run;
    const isOver = this.#connection.state === "open" || state === "done" || state === "stopped";
    if (id !== undefined && this.outbox.deliveries.get(id)?.state === "settled" && !isOver) {
      this.resume();
    }
  }
}
