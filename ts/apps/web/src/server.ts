// The requests of the pages, apart from the streams. Knows no state and no layout.
import { httpOf, type OpenCall, type Thread, type ThreadPage } from "@farhand/client";
import { type About, isAbout, isThread, isThreadPage, isTool, type Tool, isOpenCall } from "@farhand/protocol";
import { BASE } from "./base.ts";
import { CONNECTION } from "./connection.ts";

/** Whether this browser is signed in, according to the server's latest response. */
export class SignIn {
  #isOut = false;
  /** `true`: the person can enter the server's token; otherwise the host app has its own sign-in. */
  #takesToken = true;
  readonly #listeners = new Set<() => void>();

  get isOut(): boolean {
    return this.#isOut;
  }

  get takesToken(): boolean {
    return this.#takesToken;
  }

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  fetch: typeof fetch = async (input, init) => {
    const response = await CONNECTION.fetch(input, init);
    if (response.status === 401) {
      this.#takesToken = OWN_TOKEN.test(response.headers.get("www-authenticate") ?? "");
    }
    if (response.status === 401 || response.ok) {
      this.#set(response.status === 401);
    }
    return response;
  };

  /** With the token, or without one after a sign-in elsewhere. */
  async enter(token: string): Promise<"in" | "refused" | "too-many" | "away"> {
    try {
      // the response is a redirect with a cookie; the page is open already
      const address = token === "" ? `${BASE}/api/about` : `${BASE}/?token=${encodeURIComponent(token)}`;
      const response = await fetch(address, { redirect: "manual", signal: AbortSignal.timeout(PATIENCE_MS) });
      if (response.status === 429) {
        return "too-many";
      }
      const isIn = response.type === "opaqueredirect" || (token === "" && response.ok);
      isIn && this.#set(false);
      return isIn ? "in" : "refused";
    } catch {
      return "away";
    }
  }

  #set(isOut: boolean): void {
    if (this.#isOut !== isOut) {
      this.#isOut = isOut;
      this.#listeners.forEach((listener) => listener());
    }
  }
}

/** The header with which a server asks for its development token; a host's own sign-in sends another one. */
const OWN_TOKEN = /^Bearer realm="farhand development token"$/;

export const SIGN_IN = new SignIn();
export const HTTP = httpOf({ url: BASE, fetch: SIGN_IN.fetch });

/** `gone`: there is no such chat. `away`: the server did not respond; try again. */
export type Reply<T> = T | "gone" | "away";

export function askThread(id: string, signal?: AbortSignal): Promise<Reply<Thread>> {
  return ask(`/api/chat/${encodeURIComponent(id)}`, isThread, signal);
}

/** `words`: only chats with these words in their title or in the person's messages. */
export function askThreads({ after, words }: { readonly after?: string | undefined; readonly words?: string } = {}): Promise<Reply<ThreadPage>> {
  const query = new URLSearchParams({ limit: "50", ...(after === undefined ? {} : { after }), ...(words === undefined ? {} : { q: words }) });
  return ask(`/api/chat?${query.toString()}`, isThreadPage);
}

export async function askInbox(): Promise<Reply<readonly OpenCall[]>> {
  const answer = await ask("/api/inbox", (value): value is { calls: unknown[] } => Array.isArray((value as { calls?: unknown }).calls));
  return typeof answer === "string" ? answer : answer.calls.filter(isOpenCall);
}

export async function askTools(): Promise<Reply<readonly Tool[]>> {
  const answer = await ask("/api/tools", (value): value is { tools: unknown[] } => Array.isArray((value as { tools?: unknown }).tools));
  return typeof answer === "string" ? answer : answer.tools.filter(isTool);
}

export function askAbout(): Promise<Reply<About>> {
  return ask("/api/about", isAbout);
}

/** Returns true once the server has confirmed it. An unknown chat has nothing to stop. */
export async function stopRun(id: string): Promise<boolean> {
  const status = await send("POST", `/api/chat/${encodeURIComponent(id)}/stop`);
  return status === 200 || status === 404;
}

/** The result of a change. `refused`: trying again immediately will not help. */
export type Change = "done" | "gone" | "away" | "signed-out" | "refused";

export async function renameThread(id: string, title: string): Promise<Change> {
  return changeOf(await send("PATCH", `/api/chat/${encodeURIComponent(id)}`, { title }));
}

export async function deleteThread(id: string): Promise<Change> {
  return changeOf(await send("DELETE", `/api/chat/${encodeURIComponent(id)}`));
}

function changeOf(status: number): Change {
  const known: Readonly<Record<number, Change>> = { 200: "done", 401: "signed-out", 404: "gone" };
  return known[status] ?? (status === 0 || status >= 500 ? "away" : "refused");
}

async function ask<T>(path: string, is: (value: unknown) => value is T, signal: AbortSignal | null = null): Promise<Reply<T>> {
  try {
    const response = await HTTP.fetch(HTTP.url + path, { signal });
    if (response.status === 404) {
      return "gone";
    }
    const body: unknown = await response.json();
    return response.ok && is(body) ? body : "away";
  } catch {
    return "away";
  }
}

const PATIENCE_MS = 10_000;

async function send(method: "POST" | "PATCH" | "DELETE", path: string, json: object = {}): Promise<number> {
  try {
    const body = method === "DELETE" ? {} : { body: JSON.stringify(json), headers: { "content-type": "application/json" } };
    return (await HTTP.fetch(HTTP.url + path, { method, ...body, signal: AbortSignal.timeout(PATIENCE_MS) })).status;
  } catch {
    return 0;
  }
}
