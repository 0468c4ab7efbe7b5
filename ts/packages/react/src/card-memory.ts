// What a page keeps in memory: the time, and what it remembers of its calls. In a file of its own, because a page needs it before its
// first card.
import type { ThreadState } from "@farhand/client";
import { useEffect, useRef, useState } from "react";
import type { Memory } from "./view.ts";

/** The current time, updated every second while it is needed. */
export function useNow(isNeeded: boolean): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (!isNeeded) {
      return undefined;
    }
    const timer = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, [isNeeded]);
  return now;
}

export interface CardMemory extends Memory {
  readonly seenOpen: Set<string>;
  readonly reasons: Map<string, string>;
  readonly edited: Set<string>;
}

/** What a page remembers of its calls until it is closed. */
export function useMemory({ calls, facts }: Pick<ThreadState, "calls" | "facts">): CardMemory {
  const memory = useRef<CardMemory>({ seenOpen: new Set(), reasons: new Map(), edited: new Set() }).current;
  for (const call of calls.values()) {
    if (call.phase === "ready" && facts.get(call.id)?.executor === "frontend") {
      memory.seenOpen.add(call.id);
    }
  }
  return memory;
}
