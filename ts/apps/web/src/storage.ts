// What the browser keeps for this site. A browser may forbid it, and then even a look at it throws: what would be kept lives as
// long as the page instead.
import type { AnswerStorage } from "@farhand/client";

/** Undefined in a browser that forbids it. */
export function storageOf(name: "localStorage" | "sessionStorage"): Storage | undefined {
  try {
    return globalThis[name];
  } catch {
    return undefined;
  }
}

export function keysIn(storage: AnswerStorage | undefined, prefix: string): string[] {
  const keys = Array.from({ length: storage?.length ?? 0 }, (_, index) => storage?.key(index) ?? "");
  return keys.filter((key) => key.startsWith(prefix));
}

/** Without a value the key is removed. False if the storage is full or forbidden. */
export function keep(storage: AnswerStorage | undefined, key: string, value: string | undefined): boolean {
  try {
    value === undefined ? storage?.removeItem(key) : storage?.setItem(key, value);
    return storage !== undefined;
  } catch {
    return false;
  }
}

/** What was kept as JSON under this key; undefined if there is nothing that can be read. */
export function readKept(storage: AnswerStorage | undefined, key: string): unknown {
  try {
    return JSON.parse(storage?.getItem(key) ?? "null") ?? undefined;
  } catch {
    return undefined;
  }
}

/** For a browser that keeps nothing. */
const CHOICES = new Map<string, string>();

/** What the person chose for this browser. */
export function choiceOf(key: string): string | undefined {
  const storage = storageOf("localStorage");
  return storage === undefined ? CHOICES.get(key) : (storage.getItem(key) ?? undefined);
}

export function choose(key: string, value: string | undefined): void {
  value === undefined ? CHOICES.delete(key) : CHOICES.set(key, value);
  keep(storageOf("localStorage"), key, value);
}
