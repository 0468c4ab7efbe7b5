// The browser's storage for this site. If the browser forbids it, even reading the property throws: values then live as long as the
// page.
import type { AnswerStorage } from "@farhand/client";

/** Undefined if the browser forbids it. */
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

/** The JSON value that is stored under this key; undefined if there is none or it cannot be read. */
export function readKept(storage: AnswerStorage | undefined, key: string): unknown {
  try {
    return JSON.parse(storage?.getItem(key) ?? "null") ?? undefined;
  } catch {
    return undefined;
  }
}

/** For browsers that forbid storage. */
const CHOICES = new Map<string, string>();

/** A setting of the person for this browser. */
export function choiceOf(key: string): string | undefined {
  const storage = storageOf("localStorage");
  return storage === undefined ? CHOICES.get(key) : (storage.getItem(key) ?? undefined);
}

export function choose(key: string, value: string | undefined): void {
  value === undefined ? CHOICES.delete(key) : CHOICES.set(key, value);
  keep(storageOf("localStorage"), key, value);
}
