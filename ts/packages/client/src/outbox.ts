// Answers on their way. Owns each one until the server has given a receipt for it, also over a reload; must not know
// what an answer means.
import { isAckReply } from "@farhand/protocol";
import { type Answer, ask, type Http, reasonOf } from "./http.ts";
import { parsed } from "./json.ts";
import { backOff, Timers } from "./wait.ts";

/** An answer as it is sent: the same payload each time. `id` is the call's or the approval's. */
export interface PendingAnswer {
  readonly id: string;
  readonly path: string;
  readonly body: string;
}

/** When, for which server and under which sign-in it was given, and what the server said to it, if that was a refusal. */
interface StoredAnswer extends PendingAnswer {
  readonly url: string;
  readonly at: number;
  readonly signIn: string;
  readonly refused?: Refusal;
}

/** A yes or no is not repeated for longer: what a person meant a minute ago, they are asked again. */
const APPROVAL_HOLDS_MS = 60_000;

/**
 * `refused` waits for a person; with status 0 this page itself did not send it any more. `settled` is what the server keeps:
 * with `mine` it is this very answer, else somebody was first or it is too late.
 */
export type Delivery =
  | { readonly state: "sending" }
  | { readonly state: "undelivered"; readonly retryAt: number }
  | Refusal
  | { readonly state: "settled"; readonly mine: true }
  | { readonly state: "settled"; readonly mine: false; readonly reason: string; readonly outcome?: string | undefined };

type Refusal = { readonly state: "refused"; readonly status: number; readonly reason: string };

export type AnswerStorage = Pick<Storage, "getItem" | "setItem" | "removeItem" | "key" | "length">;

export interface OutboxOptions {
  readonly http: Http;
  /** Where answers outlive a reload; without it they live as long as the page. */
  readonly storage?: AnswerStorage | undefined;
  readonly backOff?: ((attempt: number) => number) | undefined;
  readonly onChange: (id: string) => void;
  /** How an answer is sent and its receipt read; on the ack wire, unless told otherwise. */
  readonly send?: (answer: PendingAnswer) => Promise<Answer>;
}

/** Answers that were taken back, as they were sent. Every outbox of the page may have found them in the storage. */
const RETRACTED = new Set<string>();

export class Outbox {
  readonly #pending = new Map<string, StoredAnswer>();
  readonly #deliveries = new Map<string, Delivery>();
  readonly #timers = new Timers();

  constructor(private readonly options: OutboxOptions) {}

  get deliveries(): ReadonlyMap<string, Delivery> {
    return this.#deliveries;
  }

  /** What has no receipt yet, oldest first: somebody may want to see what it says. */
  get pending(): Iterable<PendingAnswer> {
    return this.#pending.values();
  }

  /** Sends what a former life of the page could not deliver; not what was refused, and no approval of another sign-in. */
  recover(): void {
    for (const answer of storedAnswers(this.options.storage)) {
      // a page may have threads of several servers: an answer is for the one that asked
      if (answer.url === this.options.http.url && this.#isFree(answer)) {
        this.#pending.set(answer.id, answer);
        answer.refused ? this.#refuse(answer, answer.refused) : void this.#send(answer, 0);
      }
    }
  }

  /** The first answer to a call is the one that goes out: false if there is one already. */
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

  /** Sends at once what waits for its next attempt, or what was refused. */
  retry(id: string): void {
    const answer = this.#pending.get(id);
    // one that is on its way is not sent twice; of one that has its receipt there is none
    if (answer !== undefined && this.#deliveries.get(id)?.state !== "sending") {
      this.#timers.clear(id);
      void this.#send(answer, 0);
    }
  }

  retryAll(): void {
    this.#pending.forEach((_, id) => this.#deliveries.get(id)?.state === "undelivered" && this.retry(id));
  }

  /** Takes an answer back that is not on its way at this moment; it may have arrived all the same. */
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

  /** Ends all attempts; what is kept stays kept. */
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

  /** Whether it may still be sent without another press. */
  #holds(answer: StoredAnswer): boolean {
    const age = Date.now() - answer.at;
    return !isApproval(answer) || (age >= 0 && age < APPROVAL_HOLDS_MS && answer.signIn === this.options.http.signIn());
  }

  /** An approval that was not taken is forgotten, and asked for again; another answer is kept for whoever wants to try it again. */
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

const TOO_OLD: Refusal = { state: "refused", status: 0, reason: "Your answer did not reach the server." };

function isApproval({ path }: PendingAnswer): boolean {
  return path === APPROVE;
}

const ENDS = [404, 409, 410];

function deliveryOf(status: number, body: unknown): Delivery {
  if (status < 300 && isAckReply(body) && body.ok) {
    return { state: "settled", mine: true };
  }
  // the server knows the call and says what became of it: nothing would change by sending again
  if (ENDS.includes(status) && isAckReply(body) && body.reason !== "not_approved") {
    return { state: "settled", mine: false, reason: body.reason ?? "unknown", outcome: body.status };
  }
  return { state: "refused", status, reason: reasonOf(body) };
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
  // only where answers go: whoever can write to the storage must not choose an address. A page that cannot tell one sign-in
  // from another does not know whose yes it would repeat
  return typeof answer.body === "string" && PATHS.includes(answer.path) ? { ...answer, signIn: answer.signIn || "unknown" } : undefined;
}

/** Without an answer the one of this id is forgotten. */
function keep(storage: AnswerStorage | undefined, id: string, answer?: StoredAnswer): void {
  try {
    answer ? storage?.setItem(PREFIX + id, JSON.stringify(answer)) : storage?.removeItem(PREFIX + id);
  } catch {
    // full or forbidden: the answer still lives as long as the page
  }
}
