// The Inspector's requests to the server, and the hook that repeats a request when something has happened.
import type { InspectedReceipt, InspectedRerun } from "@farhand/protocol";
import { useCallback, useEffect, useRef, useState } from "react";
import { Feed } from "../feed.ts";
import { HTTP, SIGN_IN } from "../server.ts";

export const feed = new Feed(HTTP);

/** `off`: not signed in, or the Inspector is turned off. */
export type Answer<T> = { readonly state: "loading" | "gone" | "off" | "away" } | { readonly state: "here"; readonly value: T };

const TOGETHER_MS = 200;

/** The response for this path, loaded again after each event and, if given, every so many milliseconds. */
export function useAsked<T>(path: string | undefined, everyMs?: number): { answer: Answer<T>; again: () => void } {
  const [kept, setKept] = useState<{ readonly path: string | undefined; readonly answer: Answer<T> }>({ path, answer: LOADING });
  const asked = useRef(0);
  const again = useCallback(() => {
    if (path === undefined) {
      return;
    }
    const number = (asked.current += 1);
    void ask<T>(path).then((answer) => {
      // ignore a slow response to an older request
      if (number === asked.current) {
        setKept((before) => ((answer.state === "away" || SIGN_IN.isOut) && before.path === path && before.answer.state === "here" ? before : { path, answer }));
      }
    });
  }, [path]);
  useEffect(again, [again]);
  useEffect(() => whenever(again), [again]);
  // requests that were refused while signed out are repeated after the sign-in
  useEffect(() => SIGN_IN.subscribe(() => SIGN_IN.isOut || again()), [again]);
  useEffect(() => {
    const timer = everyMs === undefined ? undefined : setInterval(again, everyMs);
    return () => clearInterval(timer);
  }, [again, everyMs]);
  return { answer: kept.path === path ? kept.answer : LOADING, again };
}

const LOADING = { state: "loading" } as const;

/** Calls `look` after events. Several that arrive together cause one call. */
export function whenever(look: () => void): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const stop = feed.listen(() => {
    timer ??= setTimeout(() => {
      timer = undefined;
      look();
    }, TOGETHER_MS);
  });
  return () => {
    clearTimeout(timer);
    stop();
  };
}

async function ask<T>(path: string): Promise<Answer<T>> {
  try {
    const response = await HTTP.fetch(`${HTTP.url}/api/inspect${path}`);
    if (response.ok) {
      return { state: "here", value: (await response.json()) as T };
    }
    return { state: response.status === 404 ? "gone" : response.status < 500 ? "off" : "away" };
  } catch {
    return { state: "away" };
  }
}

export async function askOnce<T>(path: string): Promise<T | undefined> {
  const answer = await ask<T>(path);
  return answer.state === "here" ? answer.value : undefined;
}

/** The server's receipt, as a sentence, for the same answer sent once more. */
export async function sendAgain(callId: string): Promise<string> {
  const { body } = await post(`/api/inspect/calls/${callId}/again`, {});
  return (body as Partial<InspectedReceipt>).told ?? sentenceOf(body);
}

/** The new run, or the tools that may be repeated; a string is the reason for a failure. */
export async function beginRerun(runId: string, body: object): Promise<InspectedRerun | string> {
  const answer = await post(`/api/inspect/runs/${runId}/rerun`, body);
  const begun = answer.body as InspectedRerun | undefined;
  return begun?.runId !== undefined || begun?.repeats !== undefined ? begun : sentenceOf(answer.body);
}

async function post(path: string, value: object): Promise<{ body: unknown }> {
  try {
    const response = await HTTP.fetch(HTTP.url + path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(value) });
    return { body: await response.json() };
  } catch {
    return { body: undefined };
  }
}

function sentenceOf(body: unknown): string {
  const { error, reason, detail } = (body ?? {}) as { error?: { message?: string }; reason?: string; detail?: string };
  return error?.message ?? detail ?? (reason === undefined ? "The server did not answer. Try again." : `Refused: ${reason}.`);
}
