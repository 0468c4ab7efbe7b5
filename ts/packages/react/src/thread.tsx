// A thread as a hook, and what its cards share.
import { type Decision, LiveThread, type ThreadOptions, type ThreadState } from "@farhand/client";
import { createContext, type ReactNode, useContext, useEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import { type CardView, type Memory, viewOf } from "./view.ts";

export interface CardHost {
  readonly thread: LiveThread;
  readonly state: ThreadState;
  readonly cards: readonly CardView[];
  readonly approve: (callId: string, approvalId: string, decision: Decision) => void;
  /** Shows a page beside the chat and names the view; without it a page opens in a tab of its own. */
  readonly openPage?: ((url: URL) => string) | undefined;
}

export interface HostOptions {
  readonly openPage?: (url: URL) => string;
}

/** Opens the thread for as long as the component is there. Handlers and transport are those of its first render. */
export function useThread(options: ThreadOptions, { openPage }: HostOptions = {}): CardHost {
  const thread = useMemo(() => new LiveThread({ onUnknown: "card", ...options }), [options.threadId, options.url]);
  const state = useSyncExternalStore(thread.subscribe, () => thread.state);
  const memory = useMemory(state);
  const lives = useRef(0);
  useEffect(() => {
    lives.current += 1;
    const life = lives.current;
    if (life === 1) {
      void thread.open();
    }
    // React mounts twice in development: a thread is closed only when nobody has come back for it
    return () => void setTimeout(() => lives.current === life && (thread.close(), (lives.current = 0)));
  }, [thread]);
  return useMemo(() => {
    const cards = [...state.calls.values()].map((call) => viewOf(state, call, memory));
    const approve: CardHost["approve"] = (callId, approvalId, decision) => {
      memory.reasons.set(callId, decision.reason ?? "");
      thread.approve(approvalId, decision);
    };
    return { thread, state, cards, approve, openPage };
  }, [thread, state, memory, openPage]);
}

const HostContext = createContext<CardHost | undefined>(undefined);

export function CardHostProvider({ host, children }: { host: CardHost; children: ReactNode }): ReactNode {
  return <HostContext value={host}>{children}</HostContext>;
}

export function useCardHost(): CardHost {
  const host = useContext(HostContext);
  if (host === undefined) {
    throw new Error("A card stands inside <CardHostProvider>.");
  }
  return host;
}

/** The time, every second, while somebody looks. */
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

interface WritableMemory extends Memory {
  readonly seenOpen: Set<string>;
  readonly reasons: Map<string, string>;
}

function useMemory({ calls, facts }: ThreadState): WritableMemory {
  const memory = useRef<WritableMemory>({ seenOpen: new Set(), reasons: new Map() }).current;
  for (const call of calls.values()) {
    if (call.phase === "ready" && facts.get(call.id)?.executor === "frontend") {
      memory.seenOpen.add(call.id);
    }
  }
  return memory;
}
