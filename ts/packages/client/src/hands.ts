// What a page does with calls, whichever way it hears of them: it runs those that it has handlers for, and brings answers and
// approvals. Must not know where calls come from.
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

/** What a page or a person can answer a call with. */
export type AnswerOutcome = Extract<Outcome, { kind: "success" | "failure" }>;

export interface HandsOptions {
  readonly handlers?: HandlerMap;
  /** A frontend call without a handler: it fails, unless told otherwise. */
  readonly onUnknown?: OnUnknown;
  /** Where answers outlive a reload: the page's session, unless told otherwise; null for nowhere. */
  readonly storage?: AnswerStorage | null;
  readonly backOff?: (attempt: number) => number;
  /** How long after "taken" to ask again: the page that took it may be gone. */
  readonly askAgainMs?: number;
}

export class Hands {
  protected readonly executor: Executor;
  protected readonly outbox: Outbox;
  protected readonly backOff: (attempt: number) => number;
  protected readonly timers = new Timers();
  /** Fires when the page lets go of it. */
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

  /** Answers a call as a person does: what does not fit its tool is refused and can be changed. The first answer to a call goes out; false if it has one. */
  answer(callId: string, outcome: AnswerOutcome, how: Pick<Ack, "onlyIfFits"> = { onlyIfFits: true }): boolean {
    const told = outcome.kind === "success" ? ({ status: "success", output: outcome.output ?? null } as const) : ({ status: "failed", errorText: outcome.error } as const);
    return this.#put(callId, "ack", { toolCallId: callId, ...told, ...how } satisfies Ack);
  }

  /** Answers an approval, only ever for a person who has decided. */
  approve(approvalId: string, decision: Decision): boolean {
    return this.#put(approvalId, "approve", { approvalId, ...decision } satisfies ApproveRequest);
  }

  /** For an answer that is not delivered, by the id of its call or approval: try at once, or take it back and change it. */
  retry(id: string): void {
    this.outbox.retry(id);
  }

  discard(id: string): boolean {
    return this.outbox.discard(id);
  }

  retryNow(): void {
    this.outbox.retryAll();
  }

  /** Lets go of what runs here, and of answers on their way; those that are kept stay kept. */
  close(): void {
    this.end.abort();
    this.executor.close();
    this.outbox.close();
    this.timers.close();
  }

  #put(id: string, verb: "ack" | "approve", answer: object): boolean {
    return this.outbox.put({ id, path: `/api/tools/${verb}`, body: JSON.stringify(answer) });
  }

  /** With an id: how the answer to this call or approval fares. */
  protected changed(_id?: string): void {
    this.#listeners.forEach((listener) => listener());
  }
}

export function storageOf(storage: AnswerStorage | null | undefined): AnswerStorage | undefined {
  try {
    return storage === null ? undefined : (storage ?? globalThis.sessionStorage);
  } catch {
    // pages without an origin of their own may not even look at it
    return undefined;
  }
}
