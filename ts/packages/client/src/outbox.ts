// Answers that are being sent. Owns each one until the server has returned a receipt for it, even across a reload; must not know what an
// answer means.
import { isAckReply } from "@farhand/protocol";
import { type Answer, ask, type Http, type Refusal, refusalOf } from "./http.ts";
import { parsed } from "./json.ts";
import { backOff, Timers } from "./wait.ts";

/** An answer as it is sent: the payload never changes. `id` is that of the call or of the approval. */
export interface PendingAnswer {
  readonly id: string;
  readonly path: string;
  readonly body: string;
}

/** When the answer was given, for which server and under which sign-in, and the server's response if it was refused. */
interface StoredAnswer extends PendingAnswer {
  readonly url: string;
  readonly at: number;
  readonly signIn: string;
  readonly refused?: Refusal;
}

/** An approval or a denial is not sent again after this time: the person is asked again instead. */
const APPROVAL_HOLDS_MS = 60_000;

/**
 * `refused` waits for a person; with status 0, this page stopped sending it. `settled` is the outcome that the server has: with `mine` it
 * is this answer, otherwise somebody else was first or it was too late.
 */
export type Delivery =
  | { readonly state: "sending" }
  | { readonly state: "undelivered"; readonly retryAt: number }
  | Refusal
  | { readonly state: "settled"; readonly mine: true }
  | { readonly state: "settled"; readonly mine: false; readonly reason: string; readonly outcome?: string | undefined };

export type AnswerStorage = Pick<Storage, "getItem" | "setItem" | "removeItem" | "key" | "length">;

export interface OutboxOptions {
  readonly http: Http;
  /** Where answers are kept across a reload; without it they are kept in memory. */
  readonly storage?: AnswerStorage | undefined;
  readonly backOff?: ((attempt: number) => number) | undefined;
  readonly onChange: (id: string) => void;
  /** How an answer is sent and its receipt read; by default, on the ack protocol. */
  readonly send?: (answer: PendingAnswer) => Promise<Answer>;
}

/** Answers that were discarded, as they were sent. Every outbox of the page may have loaded them from storage. */
const RETRACTED = new Set<string>();

export class Outbox {
  readonly #pending = new Map<string, StoredAnswer>();
  readonly #deliveries = new Map<string, Delivery>();
  readonly #timers = new Timers();

  constructor(private readonly options: OutboxOptions) {}

  get deliveries(): ReadonlyMap<string, Delivery> {
    return this.#deliveries;
  }

  /** Answers without a receipt, oldest first, for a page that shows them. */
  get pending(): Iterable<PendingAnswer> {
    return this.#pending.values();
  }

  /** Sends what was not delivered before a reload, except for refused answers and approvals of another sign-in. */
  recover(): void {
    for (const answer of storedAnswers(this.options.storage)) {
      // a page may have threads of several servers: an answer goes to the one that asked
      if (answer.url === this.options.http.url && this.#isFree(answer)) {
        this.#pending.set(answer.id, answer);
        answer.refused ? this.#refuse(answer, answer.refused) : void this.#send(answer, 0);
      }
    }
  }

  /** Only the first answer to a call is sent: returns false if there is one already. */
  put(answer: PendingAnswer): boolean {
    if (!this.#isFree(answer)) {
      return false;
    }
    const { url, signIn } = this.options.http;
    const given = { ...answer, url, at: Date.now(), signIn: signIn() };
    this.#pending.set(answer.id, given);
    keep(this.options.storage, answer.id, given);
    RETRACTED.delete(answer.body);
    void this.#send(given, 0);
    return true;
  }

  #isFree({ id }: PendingAnswer): boolean {
    return !this.#pending.has(id) && this.#deliveries.get(id)?.state !== "settled";
  }

  /** Sends immediately what waits for its next attempt, or what was refused. */
  retry(id: string): void {
    const answer = this.#pending.get(id);
    // not if it is being sent at this moment; and if it has its receipt, there is no delivery
    if (answer !== undefined && this.#deliveries.get(id)?.state !== "sending") {
      this.#timers.clear(id);
      void this.#send(answer, 0);
    }
  }

  retryAll(): void {
    this.#pending.forEach((_, id) => this.#deliveries.get(id)?.state === "undelivered" && this.retry(id));
  }

  /** Discards an answer that is not being sent at this moment; it may still have arrived. */
  discard(id: string): boolean {
    if (this.#deliveries.get(id)?.state === "sending") {
      return false;
    }
    this.#timers.clear(id);
    RETRACTED.add(this.#pending.get(id)?.body ?? "");
    keep(this.options.storage, id);
    this.#drop(id);
    return true;
  }

  /** Ends all attempts; answers in storage stay there. */
  close(): void {
    this.#timers.close();
    this.#pending.clear();
  }

  async #send(answer: StoredAnswer, attempt: number): Promise<void> {
    if (RETRACTED.has(answer.body)) {
      this.#drop(answer.id);
      return;
    }
    if (!this.#holds(answer)) {
      this.#refuse(answer, TOO_OLD);
      return;
    }
    this.#tell(answer.id, { state: "sending" });
    const { http, send } = this.options;
    const reply = await (send?.(answer) ?? ask(http, answer.path, answer.body));
    if (this.#pending.get(answer.id) !== answer) {
      return;
    }
    if (reply.kind === "unreachable" || reply.status >= 500) {
      this.#later(answer, attempt, reply);
      return;
    }
    const delivery = deliveryOf(reply.status, reply.body);
    if (delivery.state === "refused") {
      this.#refuse(answer, delivery);
      return;
    }
    this.#forget(answer.id);
    this.#tell(answer.id, delivery);
  }

  #drop(id: string): void {
    this.#pending.delete(id);
    this.#deliveries.delete(id);
    this.options.onChange(id);
  }

  /** Whether it may be sent without asking the person again. */
  #holds(answer: StoredAnswer): boolean {
    const age = Date.now() - answer.at;
    return !isApproval(answer) || (age >= 0 && age < APPROVAL_HOLDS_MS && answer.signIn === this.options.http.signIn());
  }

  /** A refused approval is dropped, so that the person is asked again; any other answer is kept so that it can be retried. */
  #refuse(answer: StoredAnswer, refused: Refusal): void {
    isApproval(answer) ? this.#forget(answer.id) : keep(this.options.storage, answer.id, { ...answer, refused });
    this.#tell(answer.id, refused);
  }

  #later(answer: StoredAnswer, attempt: number, reply: Answer): void {
    const asked = reply.kind === "answered" ? reply.retryAfterMs : 0;
    const delay = Math.max((this.options.backOff ?? backOff)(attempt), asked);
    this.#timers.set(answer.id, delay, () => void this.#send(answer, attempt + 1));
    this.#tell(answer.id, { state: "undelivered", retryAt: Date.now() + delay });
  }

  #forget(id: string): void {
    this.#pending.delete(id);
    keep(this.options.storage, id);
  }

  #tell(id: string, delivery: Delivery): void {
    this.#deliveries.set(id, delivery);
    this.options.onChange(id);
  }
}

const TOO_OLD: Refusal = { state: "refused", status: 0, reason: "The answer did not arrive." };

function isApproval({ path }: PendingAnswer): boolean {
  return path === APPROVE;
}

const ENDS = [404, 409, 410];

function deliveryOf(status: number, body: unknown): Delivery {
  if (status < 300 && isAckReply(body) && body.ok) {
    return { state: "settled", mine: true };
  }
  // the server knows the call and has answered: sending again would change nothing
  if (ENDS.includes(status) && isAckReply(body) && body.reason !== "not_approved") {
    return { state: "settled", mine: false, reason: body.reason ?? "unknown", outcome: body.status };
  }
  return refusalOf(status, body);
}

const PREFIX = "farhand:answer:";
const APPROVE = "/api/tools/approve";
const PATHS = ["/api/tools/ack", APPROVE];

function storedAnswers(storage: AnswerStorage | undefined): StoredAnswer[] {
  const keys = Array.from({ length: storage?.length ?? 0 }, (_, index) => storage?.key(index) ?? "");
  return keys.flatMap((key) => {
    const answer = storedAnswerOf(storage?.getItem(key) ?? "");
    return answer !== undefined && PREFIX + answer.id === key ? [answer] : [];
  });
}

function storedAnswerOf(text: string): StoredAnswer | undefined {
  const answer = (parsed(text) ?? {}) as StoredAnswer;
  // only known paths: whoever can write to the storage must not choose an address. An answer without a sign-in belongs to an unknown one,
  // so an approval is never sent again under it
  return typeof answer.body === "string" && PATHS.includes(answer.path) ? { ...answer, signIn: answer.signIn || "unknown" } : undefined;
}

/** Stores the answer; without one, removes the answer with this id. */
function keep(storage: AnswerStorage | undefined, id: string, answer?: StoredAnswer): void {
  try {
    answer ? storage?.setItem(PREFIX + id, JSON.stringify(answer)) : storage?.removeItem(PREFIX + id);
  } catch {
    // full or forbidden: the answer is still kept in memory
  }
}
