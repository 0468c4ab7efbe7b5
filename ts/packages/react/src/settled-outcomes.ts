// What the server stores about finished calls, for a page that knows them from a stream: the kind of each outcome, durations, marks.
import type { Http, ThreadState } from "@farhand/client";
import { useEffect, useState } from "react";
import { received } from "./received.ts";
import type { Ended } from "./view.ts";

/** The fields of a stored part that are used here; servers may add more. */
interface StoredPart {
  readonly toolCallId?: string;
  readonly outcome?: string;
  readonly afterSec?: number;
  readonly tookMs?: number;
  readonly title?: string;
  readonly summary?: string;
  readonly edited?: boolean;
  readonly alwaysAllowed?: boolean;
  readonly answeredBy?: string;
  readonly approval?: { readonly reason?: string };
}

/** Loads the outcomes once an answer is at rest and has settled calls. */
export function useEnds(http: Http, threadId: string, { calls, run }: Pick<ThreadState, "calls" | "run">): ReadonlyMap<string, Ended> {
  const [ends, setEnds] = useState<ReadonlyMap<string, Ended>>(new Map());
  const isResting = run.state !== "running";
  const settled = isResting ? [...calls.values()].filter(({ phase }) => phase === "settled").map(({ id }) => id).join(" ") : "";
  useEffect(() => {
    let isLeft = false;
    if (settled !== "") {
      void storedEnds(http, threadId).then((found) => found !== undefined && !isLeft && setEnds(found));
    }
    return () => void (isLeft = true);
  }, [http, threadId, settled]);
  return ends;
}

async function storedEnds(http: Http, threadId: string): Promise<ReadonlyMap<string, Ended> | undefined> {
  const { messages } = await received<{ messages: readonly { readonly parts: readonly StoredPart[] }[] }>(http, `/api/chat/${encodeURIComponent(threadId)}`);
  return messages && new Map(messages.flatMap(({ parts }) => parts.flatMap(endOf)));
}

function endOf({ toolCallId, outcome, afterSec, tookMs, title, summary, edited, alwaysAllowed, answeredBy, approval }: StoredPart): [string, Ended][] {
  if (toolCallId === undefined || outcome === undefined) {
    return [];
  }
  return [[toolCallId, { outcome, afterSec, tookMs, title, summary, reason: approval?.reason, isEdited: edited, isAlwaysAllowed: alwaysAllowed, answeredBy }]];
}
