// The paths of the server that a page asks beside the stream. Knows no state and no look.
import { httpOf, type OpenCall, type Thread, type ThreadPage } from "@farhand/client";
import { type About, isAbout, isThread, isThreadPage, isTool, type Tool, isOpenCall } from "@farhand/protocol";
import { BASE } from "./base.ts";

export const HTTP = httpOf({ url: BASE });

/** `gone`: there is no such chat. `away`: the server did not answer; ask again. */
export type Asked<T> = T | "gone" | "away";

export function askThread(id: string): Promise<Asked<Thread>> {
  return ask(`/api/chat/${encodeURIComponent(id)}`, isThread);
}

export function askThreads(after?: string): Promise<Asked<ThreadPage>> {
  return ask(`/api/chat?limit=50${after === undefined ? "" : `&after=${encodeURIComponent(after)}`}`, isThreadPage);
}

export async function askInbox(): Promise<Asked<readonly OpenCall[]>> {
  const answer = await ask("/api/inbox", (value): value is { calls: unknown[] } => Array.isArray((value as { calls?: unknown }).calls));
  return typeof answer === "string" ? answer : answer.calls.filter(isOpenCall);
}

export async function askTools(): Promise<Asked<readonly Tool[]>> {
  const answer = await ask("/api/tools", (value): value is { tools: unknown[] } => Array.isArray((value as { tools?: unknown }).tools));
  return typeof answer === "string" ? answer : answer.tools.filter(isTool);
}

export function askAbout(): Promise<Asked<About>> {
  return ask("/api/about", isAbout);
}

/** True once the server has heard it; a chat that it does not know has nothing to stop. */
export async function stopRun(id: string): Promise<boolean> {
  const status = await send("POST", `/api/chat/${encodeURIComponent(id)}/stop`);
  return status === 200 || status === 404;
}

export async function deleteThread(id: string): Promise<boolean> {
  return (await send("DELETE", `/api/chat/${encodeURIComponent(id)}`)) === 200;
}

async function ask<T>(path: string, is: (value: unknown) => value is T): Promise<Asked<T>> {
  try {
    const response = await HTTP.fetch(HTTP.url + path);
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

async function send(method: "POST" | "DELETE", path: string): Promise<number> {
  try {
    const body = method === "POST" ? { body: "{}", headers: { "content-type": "application/json" } } : {};
    return (await HTTP.fetch(HTTP.url + path, { method, ...body, signal: AbortSignal.timeout(PATIENCE_MS) })).status;
  } catch {
    return 0;
  }
}
