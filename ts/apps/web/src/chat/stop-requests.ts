// Requests to stop. Owns each one until the server has confirmed it, even across a reload, so that nobody has to press Stop twice.
import { type AnswerStorage, backOff, Timers } from "@farhand/client";
import { stopRun } from "../server.ts";
import { keep, keysIn } from "../storage.ts";

const PREFIX = "farhand:stop:";

export class Stops {
  /** `isLate`: an attempt has failed. */
  readonly #wishes = new Map<string, { readonly isLate: boolean }>();
  readonly #listeners = new Set<() => void>();
  readonly #timers = new Timers();

  constructor(private readonly storage: AnswerStorage | undefined, private readonly tell: (id: string) => Promise<boolean> = stopRun) {
    keysIn(storage, PREFIX).forEach((key) => this.wish(key.slice(PREFIX.length)));
  }

  wish(id: string): void {
    if (!this.#wishes.has(id)) {
      keep(this.storage, PREFIX + id, "");
      this.#wishes.set(id, { isLate: false });
      void this.#send(id, 0);
      this.#changed();
    }
  }

  has(id: string): boolean {
    return this.#wishes.has(id);
  }

  /** The server did not respond; the request is retried. */
  isLate(id: string): boolean {
    return this.#wishes.get(id)?.isLate === true;
  }

  /** Retries now: the server may be back. */
  retryNow(): void {
    [...this.#wishes].forEach(([id, { isLate }]) => isLate && this.#timers.set(id, 0, () => void this.#send(id, 0)));
  }

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  async #send(id: string, attempt: number): Promise<void> {
    if (await this.tell(id)) {
      this.#wishes.delete(id);
      keep(this.storage, PREFIX + id, undefined);
    } else {
      this.#wishes.set(id, { isLate: true });
      this.#timers.set(id, backOff(attempt), () => void this.#send(id, attempt + 1));
    }
    this.#changed();
  }

  #changed(): void {
    this.#listeners.forEach((listener) => listener());
  }
}
