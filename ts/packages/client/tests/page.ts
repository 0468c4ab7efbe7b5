// A page with one thread, on a real server: what it shows, what it requested, and what it keeps across a reload.
import { afterAll } from "vitest";
import { fresh, type Scene } from "../../../tests/server-fixture.ts";
import { until } from "../../../tests/until.ts";
import { type AnswerStorage, LiveThread, type ThreadOptions, type ThreadState } from "../src/index.ts";

export interface Page {
  readonly thread: LiveThread;
  readonly storage: AnswerStorage;
  /** Method and path of every request, in order. */
  readonly requests: readonly string[];
  readonly bodies: readonly string[];
  readonly sees: (text: string) => Promise<void>;
  readonly becomes: (fact: (state: ThreadState) => boolean, name: string) => Promise<void>;
}

export function pages(scene: Scene): (options?: Partial<ThreadOptions>) => Page {
  const open: LiveThread[] = [];
  afterAll(() => open.forEach((thread) => thread.close()));
  return (options = {}) => {
    const requests: string[] = [];
    const bodies: string[] = [];
    const storage = (options.storage ?? new Memory()) as AnswerStorage;
    const lookedOn: typeof fetch = (input, init) => {
      requests.push(`${init?.method ?? "GET"} ${new URL(String(input)).pathname}${new URL(String(input)).search}`);
      bodies.push(String(init?.body ?? ""));
      return fetch(input, init);
    };
    const thread = new LiveThread({
      url: scene.server.url,
      threadId: fresh("thread"),
      backOff: () => 50,
      ...options,
      storage,
      fetch: lookedOn,
    });
    open.push(thread);
    const becomes: Page["becomes"] = (fact, name) =>
      until(() => fact(thread.state), () => `${name}; it is:\n${lines(thread.state).join("\n")}\n${JSON.stringify(thread.state.connection)}\n${requests.join("\n")}`);
    const sees: Page["sees"] = (text) => becomes((state) => lines(state).join("\n").includes(text), `"${text}"`);
    return { thread, storage, requests, bodies, sees, becomes };
  };
}

/** One line for each visible part. */
export function lines({ messages, calls }: ThreadState): string[] {
  return messages.flatMap(({ role, parts }) =>
    parts.map((part) => {
      if (part.type !== "call") {
        return `${role}: ${part.text}`;
      }
      const call = calls.get(part.callId);
      const how = call?.phase === "settled" ? JSON.stringify(call.outcome) : call?.phase;
      return `${role}: ${call?.tool} ${how}`;
    }),
  );
}

export function callOf({ calls }: ThreadState, tool: string): string {
  return [...calls.values()].find((call) => call.tool === tool)?.id ?? "";
}

export function approvalOf({ calls }: ThreadState, tool: string): string {
  const call = [...calls.values()].find((each) => each.tool === tool);
  return call?.phase === "asking" ? call.approvalId : "";
}

/** A page's storage without a page. */
export class Memory implements AnswerStorage {
  readonly #items = new Map<string, string>();

  get length(): number {
    return this.#items.size;
  }

  key = (index: number): string | null => [...this.#items.keys()][index] ?? null;
  getItem = (key: string): string | null => this.#items.get(key) ?? null;
  setItem = (key: string, value: string): void => void this.#items.set(key, value);
  removeItem = (key: string): void => void this.#items.delete(key);
}
