// What a person has typed or chosen but not sent, by call: restored when the card is shown again, also after a reload. Owns nothing that
// was sent: those answers are in the outbox.
import type { Call, Http } from "@farhand/client";

/** One for each server, so that all lists of cards on a page share their drafts. */
const DRAFTS = new WeakMap<Http, Drafts>();

export function draftsOf(http: Http): Drafts {
  const drafts = DRAFTS.get(http) ?? new Drafts(`farhand:draft:${http.url} `);
  DRAFTS.set(http, drafts);
  return drafts;
}

type Fits = (value: unknown) => boolean;

export class Drafts {
  readonly #values = new Map<string, unknown>();
  readonly #listeners = new Set<() => void>();

  constructor(private readonly prefix: string) {}

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  /** The draft; undefined if there is none, or if the stored value is not valid for the card. */
  get(callId: string, field: string, fits: Fits): unknown {
    const key = keyOf(callId, field);
    if (!this.#values.has(key)) {
      this.#values.set(key, this.#read(key));
    }
    const value = this.#values.get(key);
    return fits(value) ? value : undefined;
  }

  set(callId: string, field: string, value: unknown): void {
    const key = keyOf(callId, field);
    this.#values.set(key, value);
    this.#write(key, value);
    this.#listeners.forEach((listener) => listener());
  }

  /** The person wants to be asked again: what was typed goes to the next call that asks for the same. */
  handOver(callId: string, question: string): void {
    const start = keyOf(callId, "");
    // what was pressed, such as a link, is not typed
    const typed = [...this.#values].flatMap(([key, value]) => (key.startsWith(start) && typeof value !== "boolean" ? [[key.slice(start.length), value]] : []));
    this.set(AGAIN, question, Object.fromEntries(typed));
  }

  /** Gives this call what was handed over, once. */
  takeOver(callId: string, question: string): void {
    const typed = this.get(AGAIN, question, Boolean);
    if (typed !== undefined) {
      this.set(AGAIN, question, undefined);
      Object.entries(typed as object).forEach(([field, value]) => this.set(callId, field, value));
    }
  }

  /** The call has ended: removes its stored drafts. Those in memory stay until the page is closed. */
  settle(callId: string): void {
    const start = `${this.prefix}${keyOf(callId, "")}`;
    withStorage((storage) => keysOf(storage).filter((key) => key.startsWith(start)).forEach((key) => storage.removeItem(key)));
  }

  #read(key: string): unknown {
    return withStorage((storage) => JSON.parse(storage.getItem(this.prefix + key) ?? "null") as unknown) ?? undefined;
  }

  #write(key: string, value: unknown): void {
    withStorage((storage) => (value === undefined ? storage.removeItem(this.prefix + key) : storage.setItem(this.prefix + key, JSON.stringify(value))));
  }
}

/** In the place of a call's id. */
const AGAIN = "again";

function keyOf(callId: string, field: string): string {
  return `${callId} ${field}`;
}

function keysOf(storage: Storage): string[] {
  return Array.from({ length: storage.length }, (_, index) => storage.key(index) ?? "");
}

/** Full, forbidden, or not JSON: the draft is still kept in memory. */
function withStorage<T>(use: (storage: Storage) => T): T | undefined {
  try {
    return use(globalThis.sessionStorage);
  } catch {
    return undefined;
  }
}

/** What a call asks for, whatever the words of its question: the same tool in the same chat, with the same fields or options. */
export function questionKey(call: Call, threadId: string | undefined): string {
  const { schema, options } = (call.phase === "writing" ? {} : Object(call.input)) as { schema?: unknown; options?: unknown };
  return JSON.stringify([threadId, call.tool, schema, options]);
}

/** Whether a stored value can be the fields of a form. In this file, because forms are loaded with the first card. */
export function areDrafts(value: unknown): boolean {
  const isText = (each: unknown): boolean => typeof each === "string";
  return typeof value === "object" && value !== null && !Array.isArray(value) && Object.values(value).every((each) => isText(each) || typeof each === "boolean" || (Array.isArray(each) && each.every(isText)));
}
