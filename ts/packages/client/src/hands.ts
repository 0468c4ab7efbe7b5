// What a page does with calls, however it learns of them: runs those that it has handlers for, and sends answers and approvals. Must not
// know where calls come from.
import type { Ack, ApproveRequest, Outcome } from "@farhand/protocol";
import { Executor, type HandlerMap, type OnUnknown } from "./executor.ts";
import type { Http } from "./http.ts";
import { type AnswerStorage, Outbox } from "./outbox.ts";
import { randomId } from "./random-id.ts";
import { backOff, Timers } from "./wait.ts";

export interface Decision {
  readonly approved: boolean;
  readonly reason?: string;
  readonly input?: Readonly<Record<string, unknown>>;
  readonly scope?: "once" | "thread";
}

/** How a page or a person can answer a call. */
export type AnswerOutcome = Extract<Outcome, { kind: "success" | "failure" }>;

export interface HandsOptions {
  readonly handlers?: HandlerMap;
  /** What to do with a frontend call without a handler; by default, it fails. */
  readonly onUnknown?: OnUnknown;
  /** Where answers are kept across a reload; by default, `sessionStorage`. Null: they are not kept. */
  readonly storage?: AnswerStorage | null;
  readonly backOff?: (attempt: number) => number;
  /** When to try again after "taken": the page that took the call may be gone. */
  readonly askAgainMs?: number;
}

export class Hands {
  protected readonly executor: Executor;
  protected readonly outbox: Outbox;
  protected readonly backOff: (attempt: number) => number;
  protected readonly timers = new Timers();
  /** Aborted when the page closes this object. */
  protected readonly end = new AbortController();
  readonly #listeners = new Set<() => void>();

  constructor(
    readonly http: Http,
    options: HandsOptions,
  ) {
    this.backOff = options.backOff ?? backOff;
    globalThis.addEventListener?.("online", () => this.retryNow(), { signal: this.end.signal });
    this.outbox = new Outbox({ ...options, http, storage: storageOf(options.storage), onChange: (id) => this.changed(id) });
    this.executor = new Executor({
      handlers: {},
      onUnknown: "fail",
      ...options,
      http,
      clientId: `page_${randomId()}`,
      settle: ({ id }, outcome) => void this.answer(id, outcome, {}),
      onChange: () => this.changed(),
    });
  }

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  /** Answers a call as a person does: an output that does not match the tool's schema is refused and can be changed. Only the first
   * answer is sent; returns false if there is one already. */
  answer(callId: string, outcome: AnswerOutcome, how: Pick<Ack, "onlyIfFits"> = { onlyIfFits: true }): boolean {
    const told = outcome.kind === "success" ? ({ status: "success", output: outcome.output ?? null } as const) : ({ status: "failed", errorText: outcome.error } as const);
    return this.#put(callId, "ack", { toolCallId: callId, ...told, ...how } satisfies Ack);
  }

  /** Answers an approval. Call it only for a person who has decided. */
  approve(approvalId: string, decision: Decision): boolean {
    return this.#put(approvalId, "approve", { approvalId, ...decision } satisfies ApproveRequest);
  }

  /** Sends an undelivered answer now, by the id of its call or approval; `discard` takes it back so that it can be changed. */
  retry(id: string): void {
    this.outbox.retry(id);
  }

  discard(id: string): boolean {
    return this.outbox.discard(id);
  }

  retryNow(): void {
    this.outbox.retryAll();
  }

  /** Aborts what runs here, and stops sending answers; those in storage stay there. */
  close(): void {
    this.end.abort();
    this.executor.close();
    this.outbox.close();
    this.timers.close();
  }

  #put(id: string, verb: "ack" | "approve", answer: object): boolean {
    return this.outbox.put({ id, path: `/api/tools/${verb}`, body: JSON.stringify(answer) });
  }

  /** With an id: the delivery of the answer to this call or approval has changed. */
  protected changed(_id?: string): void {
    this.#listeners.forEach((listener) => listener());
  }
}

export function storageOf(storage: AnswerStorage | null | undefined): AnswerStorage | undefined {
  try {
    return storage === null ? undefined : (storage ?? globalThis.sessionStorage);
  } catch {
    // a page with an opaque origin must not even read the property
    return undefined;
  }
}
