// Answers on their way. Owns each one until the server has given a receipt for it, also over a reload; must not know
// what an answer means.
import { isAckReply } from "@farhand/protocol";
import { type Answer, ask, type Http, reasonOf } from "./http.ts";
import { parsed } from "./json.ts";
import { backOff, Timers } from "./wait.ts";

/** An answer as it is sent: the same payload each time. `id` is the call's or the approval's. */
export interface Letter {
  readonly id: string;
  readonly path: string;
  readonly body: string;
}

/** When, for which server and under which sign-in it was given, and what the server said to it, if that was a refusal. */
interface Kept extends Letter {
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

export type Keep = Pick<Storage, "getItem" | "setItem" | "removeItem" | "key" | "length">;

export interface OutboxOptions {
  readonly http: Http;
  /** Where answers outlive a reload; without it they live as long as the page. */
  readonly storage?: Keep | undefined;
  readonly backOff?: ((attempt: number) => number) | undefined;
  readonly onChange: (id: string) => void;
  /** How a letter is sent and its answer read; on the ack wire, unless told otherwise. */
  readonly send?: (letter: Letter) => Promise<Answer>;
}

/** Answers that were taken back, as they were sent. Every outbox of the page may have found them in the storage. */
const RETRACTED = new Set<string>();

export class Outbox {
  readonly #letters = new Map<string, Kept>();
  readonly #deliveries = new Map<string, Delivery>();
  readonly #timers = new Timers();

  constructor(private readonly options: OutboxOptions) {}

  get deliveries(): ReadonlyMap<string, Delivery> {
    return this.#deliveries;
  }

  /** What has no receipt yet, oldest first: somebody may want to see what it says. */
  get letters(): Iterable<Letter> {
    return this.#letters.values();
  }

  /** Sends what a former life of the page could not deliver; not what was refused, and no approval of another sign-in. */
  recover(): void {
    for (const letter of kept(this.options.storage)) {
      // a page may have threads of several servers: an answer is for the one that asked
      if (letter.url === this.options.http.url && this.#isFree(letter)) {
        this.#letters.set(letter.id, letter);
        letter.refused ? this.#refuse(letter, letter.refused) : void this.#send(letter, 0);
      }
    }
  }

  /** The first answer to a call is the one that goes out: false if there is one already. */
  put(letter: Letter): boolean {
    if (!this.#isFree(letter)) {
      return false;
    }
    const { url, signIn } = this.options.http;
    const given = { ...letter, url, at: Date.now(), signIn: signIn() };
    this.#letters.set(letter.id, given);
    keep(this.options.storage, letter.id, given);
    RETRACTED.delete(letter.body);
    void this.#send(given, 0);
    return true;
  }

  #isFree({ id }: Letter): boolean {
    return !this.#letters.has(id) && this.#deliveries.get(id)?.state !== "settled";
  }

  /** Sends at once what waits for its next attempt, or what was refused. */
  retry(id: string): void {
    const letter = this.#letters.get(id);
    // one that is on its way is not sent twice; of one that has its receipt there is none
    if (letter !== undefined && this.#deliveries.get(id)?.state !== "sending") {
      this.#timers.clear(id);
      void this.#send(letter, 0);
    }
  }

  retryAll(): void {
    this.#letters.forEach((_, id) => this.#deliveries.get(id)?.state === "undelivered" && this.retry(id));
  }

  /** Takes an answer back that is not on its way at this moment; it may have arrived all the same. */
  discard(id: string): boolean {
    if (this.#deliveries.get(id)?.state === "sending") {
      return false;
    }
    this.#timers.clear(id);
    RETRACTED.add(this.#letters.get(id)?.body ?? "");
    keep(this.options.storage, id);
    this.#drop(id);
    return true;
  }

  /** Ends all attempts; what is kept stays kept. */
  close(): void {
    this.#timers.close();
    this.#letters.clear();
  }

  async #send(letter: Kept, attempt: number): Promise<void> {
    if (RETRACTED.has(letter.body)) {
      this.#drop(letter.id);
      return;
    }
    if (!this.#holds(letter)) {
      this.#refuse(letter, TOO_OLD);
      return;
    }
    this.#tell(letter.id, { state: "sending" });
    const { http, send } = this.options;
    const answer = await (send?.(letter) ?? ask(http, letter.path, letter.body));
    if (this.#letters.get(letter.id) !== letter) {
      return;
    }
    if (answer.kind === "unreachable" || answer.status >= 500) {
      this.#later(letter, attempt, answer);
      return;
    }
    const delivery = deliveryOf(answer.status, answer.body);
    if (delivery.state === "refused") {
      this.#refuse(letter, delivery);
      return;
    }
    this.#forget(letter.id);
    this.#tell(letter.id, delivery);
  }

  #drop(id: string): void {
    this.#letters.delete(id);
    this.#deliveries.delete(id);
    this.options.onChange(id);
  }

  /** Whether it may still be sent without another press. */
  #holds(letter: Kept): boolean {
    const age = Date.now() - letter.at;
    return !isApproval(letter) || (age >= 0 && age < APPROVAL_HOLDS_MS && letter.signIn === this.options.http.signIn());
  }

  /** An approval that was not taken is forgotten, and asked for again; another answer is kept for whoever wants to try it again. */
  #refuse(letter: Kept, refused: Refusal): void {
    isApproval(letter) ? this.#forget(letter.id) : keep(this.options.storage, letter.id, { ...letter, refused });
    this.#tell(letter.id, refused);
  }

  #later(letter: Kept, attempt: number, answer: Answer): void {
    const asked = answer.kind === "answered" ? answer.retryAfterMs : 0;
    const delay = Math.max((this.options.backOff ?? backOff)(attempt), asked);
    this.#timers.set(letter.id, delay, () => void this.#send(letter, attempt + 1));
    this.#tell(letter.id, { state: "undelivered", retryAt: Date.now() + delay });
  }

  #forget(id: string): void {
    this.#letters.delete(id);
    keep(this.options.storage, id);
  }

  #tell(id: string, delivery: Delivery): void {
    this.#deliveries.set(id, delivery);
    this.options.onChange(id);
  }
}

const TOO_OLD: Refusal = { state: "refused", status: 0, reason: "Your answer did not reach the server." };

function isApproval({ path }: Letter): boolean {
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

function kept(storage: Keep | undefined): Kept[] {
  const keys = Array.from({ length: storage?.length ?? 0 }, (_, index) => storage?.key(index) ?? "");
  return keys.flatMap((key) => {
    const letter = letterOf(storage?.getItem(key) ?? "");
    return letter !== undefined && PREFIX + letter.id === key ? [letter] : [];
  });
}

function letterOf(text: string): Kept | undefined {
  const letter = (parsed(text) ?? {}) as Kept;
  // only where answers go: whoever can write to the storage must not choose an address. A page that cannot tell one sign-in
  // from another does not know whose yes it would repeat
  return typeof letter.body === "string" && PATHS.includes(letter.path) ? { ...letter, signIn: letter.signIn || "unknown" } : undefined;
}

/** Without a letter the one of this id is forgotten. */
function keep(storage: Keep | undefined, id: string, letter?: Kept): void {
  try {
    letter ? storage?.setItem(PREFIX + id, JSON.stringify(letter)) : storage?.removeItem(PREFIX + id);
  } catch {
    // full or forbidden: the answer still lives as long as the page
  }
}
