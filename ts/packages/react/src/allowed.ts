// The tools that are always allowed in a chat. Every row of such a tool says so, with a button that revokes the permission. The server is
// asked once for all rows, and a revocation shows in all of them.
import { ask, type Http } from "@farhand/client";
import { useEffect, useSyncExternalStore } from "react";
import { received } from "./received.ts";
import { useCardHost } from "./thread.tsx";

export type Standing = "allowed" | "asking" | "undone";

/** The current permission of a tool that a call reports as always allowed; `undo` is missing outside a chat. */
export function useAllowed(callId: string, tool: string): { readonly standing: Standing; readonly undo: (() => void) | undefined } {
  const { http, threadId } = useCardHost();
  const list = listOf(http, threadId ?? "");
  const standing = useSyncExternalStore(list.subscribe, () => list.standing(tool), () => "allowed" as const);
  useEffect(() => void (threadId !== undefined && list.hear(callId, tool)), [list, threadId, callId, tool]);
  return { standing, undo: threadId === undefined ? undefined : () => void list.undo(tool) };
}

const LISTS = new WeakMap<Http, Map<string, AllowedTools>>();

function listOf(http: Http, threadId: string): AllowedTools {
  const lists = LISTS.get(http) ?? new Map<string, AllowedTools>();
  const list = lists.get(threadId) ?? new AllowedTools(http, `/api/chat/${encodeURIComponent(threadId)}/allowed`);
  LISTS.set(http, lists.set(threadId, list));
  return list;
}

class AllowedTools {
  readonly #standings = new Map<string, Standing>();
  readonly #heard = new Set<string>();
  readonly #listeners = new Set<() => void>();
  /** Counts requests and revocations: the response to an older request is ignored. */
  #turn = 0;

  constructor(private readonly http: Http, private readonly path: string) {}

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  /** Until the server has answered, what the call reports. */
  standing(tool: string): Standing {
    return this.#standings.get(tool) ?? "allowed";
  }

  /** Another call may mean that the tool was allowed again. */
  hear(callId: string, tool: string): void {
    if (this.#heard.has(callId)) {
      return;
    }
    this.#heard.add(callId);
    this.#standings.has(tool) || this.#standings.set(tool, "allowed");
    void this.#ask();
  }

  async undo(tool: string): Promise<void> {
    this.#turn += 1;
    this.#set([[tool, "asking"]]);
    // 404: the tool is no longer allowed, which is the wanted result
    const answer = await ask(this.http, `${this.path}/${encodeURIComponent(tool)}`, undefined, { method: "DELETE" });
    const isUndone = answer.kind === "answered" && (answer.status < 300 || answer.status === 404);
    this.#set([[tool, isUndone ? "undone" : "allowed"]]);
  }

  async #ask(): Promise<void> {
    const turn = (this.#turn += 1);
    // rows that are rendered together share one request
    await Promise.resolve();
    const { allowed } = turn === this.#turn ? await received<{ allowed: readonly { readonly tool?: unknown }[] }>(this.http, this.path) : {};
    if (Array.isArray(allowed) && turn === this.#turn) {
      this.#set([...this.#standings.keys()].map((tool) => [tool, allowed.some((each) => each.tool === tool) ? "allowed" : "undone"]));
    }
  }

  #set(standings: readonly (readonly [string, Standing])[]): void {
    standings.forEach(([tool, standing]) => this.#standings.set(tool, standing));
    this.#listeners.forEach((listener) => listener());
  }
}
