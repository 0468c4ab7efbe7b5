// What cards share: the host that brings their answers, and a thread as such a host.
import { type Connection, type Decision, type Http, LiveThread, type Outcome, type ThreadOptions, type ThreadState } from "@farhand/client";
import { createContext, type ReactNode, useContext, useEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import { type CardView, isAskedElsewhere, type Memory, viewOf } from "./view.ts";

/** Who brings the answers of cards: a thread, an inbox over many, or a chat of another library. */
export interface CardHost {
  readonly http: Http;
  readonly cards: readonly CardView[];
  readonly connection: Connection;
  readonly answer: (callId: string, outcome: Extract<Outcome, { kind: "success" | "failure" }>) => void;
  readonly approve: (callId: string, approvalId: string, decision: Decision) => void;
  /** For an answer that is not delivered, by the id of its call or approval: try at once, or take it back. */
  readonly retry: (id: string) => void;
  readonly discard: (id: string) => void;
  readonly retryNow: () => void;
  /** Says something in the person's name; without it nothing can be asked again. */
  readonly say?: ((text: string) => void) | undefined;
  /** Shows a page beside the chat and names the view; without it a page opens in a tab of its own. */
  readonly openPage?: ((url: URL) => string) | undefined;
}

export interface ThreadHost extends CardHost {
  readonly thread: LiveThread;
  readonly state: ThreadState;
}

export interface HostOptions {
  readonly openPage?: (url: URL) => string;
}

/** Opens the thread for as long as the component is there. Handlers and transport are those of its first render. */
export function useThread(options: ThreadOptions, { openPage }: HostOptions = {}): ThreadHost {
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
  // a program that does not begin is told as away after a while, though nothing is heard
  const now = useNow(isAskedElsewhere(state.facts));
  return useMemo(() => {
    const cards = [...state.calls.values()].map((call) => viewOf(state, call, memory));
    const verbs = verbsOf(thread, memory);
    return { ...verbs, thread, state, cards, connection: state.connection, openPage };
  }, [thread, state, memory, openPage, now]);
}

function verbsOf(thread: LiveThread, memory: CardMemory): Omit<CardHost, "cards" | "connection" | "openPage"> {
  return {
    http: thread.http,
    answer: (callId, outcome) => void thread.answer(callId, outcome),
    approve: (callId, approvalId, decision) => {
      memory.reasons.set(callId, decision.reason ?? "");
      thread.approve(approvalId, decision);
    },
    retry: (id) => thread.retry(id),
    discard: (id) => void thread.discard(id),
    retryNow: () => thread.retryNow(),
    say: (text) => thread.send(text),
  };
}

const HostContext = createContext<CardHost | undefined>(undefined);
const DraftsContext = createContext<Map<string, unknown>>(new Map());

/** Calls whose input has been in sight to its end. */
export interface ReadCalls {
  readonly has: (callId: string) => boolean;
  readonly add: (callId: string) => void;
}

const ReadContext = createContext<ReadCalls>({ has: () => false, add: () => undefined });

export function CardHostProvider({ host, children }: { host: CardHost; children: ReactNode }): ReactNode {
  const [drafts] = useState(() => new Map<string, unknown>());
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set());
  const read = useMemo(() => ({ has: (id: string) => ids.has(id), add: (id: string) => setIds((before) => (before.has(id) ? before : new Set([...before, id]))) }), [ids]);
  return <HostContext value={host}><DraftsContext value={drafts}><ReadContext value={read}>{children}</ReadContext></DraftsContext></HostContext>;
}

export function useReadCalls(): ReadCalls {
  return useContext(ReadContext);
}

/** What somebody has typed or chosen: there again when an answer comes back, though its card was another one meanwhile. */
export function useDraft<T>({ call }: CardView, field: string, first: T): [T, (value: T) => void] {
  const drafts = useContext(DraftsContext);
  const key = `${call.id} ${field}`;
  const [value, setValue] = useState<T>(() => (drafts.has(key) ? (drafts.get(key) as T) : first));
  return [value, (next) => (drafts.set(key, next), setValue(next))];
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

export interface CardMemory extends Memory {
  readonly seenOpen: Set<string>;
  readonly reasons: Map<string, string>;
}

/** What a page remembers of its calls for as long as it lives. */
export function useMemory({ calls, facts }: Pick<ThreadState, "calls" | "facts">): CardMemory {
  const memory = useRef<CardMemory>({ seenOpen: new Set(), reasons: new Map() }).current;
  for (const call of calls.values()) {
    if (call.phase === "ready" && facts.get(call.id)?.executor === "frontend") {
      memory.seenOpen.add(call.id);
    }
  }
  return memory;
}
