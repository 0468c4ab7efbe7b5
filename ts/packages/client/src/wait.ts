// Waiting between attempts.

const FIRST_MS = 500;
const LONGEST_MS = 15_000;

/** The server sends something every 15 s: one keep-alive may be lost or late, but not two. */
export const SILENCE_MS = 35_000;

/** The result of the attempt; calls `giveUp` if it takes longer than this. */
export function within<T>(ms: number, attempt: Promise<T>, giveUp: () => void): Promise<T> {
  const timer = setTimeout(giveUp, ms);
  return attempt.finally(() => clearTimeout(timer));
}

/** The delay before this attempt: doubled each time, with some jitter. */
export function backOff(attempt: number): number {
  const whole = Math.min(FIRST_MS * 2 ** attempt, LONGEST_MS);
  return whole * (0.75 + Math.random() / 4);
}

/** Ends early if the signal is aborted or somebody calls `wake`. */
export function pause(ms: number, signal: AbortSignal, onBegin?: (wake: () => void) => void): Promise<void> {
  return new Promise((resolve) => {
    const wake = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", wake);
      resolve();
    };
    const timer = setTimeout(wake, ms);
    signal.addEventListener("abort", wake);
    onBegin?.(wake);
  });
}

/** Named timers that can all be cancelled together. */
export class Timers {
  readonly #running = new Map<string, ReturnType<typeof setTimeout>>();
  #closed = false;

  set(name: string, delayMs: number, then: () => void): void {
    this.clear(name);
    if (!this.#closed) {
      this.#running.set(name, setTimeout(() => (this.#running.delete(name), then()), delayMs));
    }
  }

  clear(name: string): void {
    clearTimeout(this.#running.get(name));
    this.#running.delete(name);
  }

  close(): void {
    this.#closed = true;
    for (const name of [...this.#running.keys()]) {
      this.clear(name);
    }
  }
}
