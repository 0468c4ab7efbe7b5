// What cards share: the host that sends their answers, and a thread as such a host.
import { type AnswerOutcome, type Connection, type Decision, type Hand, type Hands, type HandState, type Http, httpOf, LiveThread, type ThreadOptions, type ThreadState } from "@farhand/client";
import { type ComponentType, createContext, type ReactNode, useContext, useEffect, useInsertionEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import { areDrafts, draftsOf, questionKey } from "./drafts.ts";
import { useHint } from "./hint.ts";
import { useEnds } from "./settled-outcomes.ts";
import { type CardMemory, useMemory, useNow } from "./card-memory.ts";
import { type CardView, isAskedElsewhere, viewOf } from "./view.ts";
import { type Words, WORDS } from "./words.ts";

/** Sends the answers of cards: a thread, an inbox over many threads, or a chat of another library. */
export interface CardHost {
  readonly http: Http;
  readonly cards: readonly CardView[];
  readonly connection: Connection;
  readonly answer: (callId: string, outcome: AnswerOutcome) => void;
  readonly approve: (callId: string, approvalId: string, decision: Decision) => void;
  /** For an undelivered answer, by the id of its call or approval: send it now, or discard it. */
  readonly retry: (id: string) => void;
  readonly discard: (id: string) => void;
  readonly retryNow: () => void;
  /** The chat that the cards belong to, if there is one: permissions for the whole chat can be revoked there. */
  readonly threadId?: string | undefined;
  /** Sends a message in the person's name; without it, no card can be asked again. */
  readonly say?: ((text: string) => void) | undefined;
  /** Shows a page beside the chat and returns the name of the view; without it, pages open in a new tab. */
  readonly openPage?: ((url: URL) => string) | undefined;
}

export interface ThreadHost extends CardHost {
  readonly thread: LiveThread;
  readonly state: ThreadState;
}

export interface HostOptions {
  readonly openPage?: (url: URL) => string;
}

/** Opens the thread while the component is mounted. `headers` and `signIn` are those of the last render, so that a token can be
 * refreshed; handlers and transport are those of the first one. */
export function useThread(options: ThreadOptions, { openPage }: HostOptions = {}): ThreadHost {
  const latest = useRef(options);
  const life = useMemo(() => {
    const signed = { headers: () => httpOf(latest.current).headers, signIn: () => httpOf(latest.current).signIn() };
    return { thread: new LiveThread({ onUnknown: "card", ...options, ...signed }), mounts: 0 };
  }, [options.threadId, options.url]);
  const { thread } = life;
  // before any effect of the page can make a request
  useInsertionEffect(() => void (latest.current = options));
  const state = useSyncExternalStore(thread.subscribe, () => thread.state, () => thread.state);
  const memory = useMemory(state);
  const ends = useEnds(thread.http, thread.id, state);
  useHint(thread.http, state.connection);
  useEffect(() => {
    const mount = (life.mounts += 1);
    if (mount === 1) {
      void thread.open();
    }
    // React mounts twice in development: the thread is closed only if it was not mounted again
    return () => void setTimeout(() => life.mounts === mount && (thread.close(), (life.mounts = 0)));
  }, [life, thread]);
  useEffect(() => {
    // the server does not have a message that it refused: reading the thread again would remove it from the screen
    if (thread.state.connection.state === "refused" && thread.state.messages.at(-1)?.role !== "user") {
      void thread.open();
    }
  }, [thread, JSON.stringify(httpOf(options).headers)]);
  // a program that does not take its call is shown as disconnected after a while, although no event arrives
  const now = useNow(isAskedElsewhere(state.facts));
  return useMemo(() => {
    const cards = [...state.calls.values()].map((call) => viewOf({ ...state, ends }, call, memory));
    const verbs = { ...verbsOf(thread, memory), say: (text: string) => thread.send(text) };
    return { ...verbs, thread, threadId: thread.id, state, cards, connection: state.connection, openPage };
  }, [thread, state, ends, memory, openPage, now]);
}

export interface HandHost extends CardHost {
  readonly state: HandState;
}

/** The open calls of a hand, created by `connect()`, as cards: an inbox beside any chat. The hand stays open when the component unmounts. */
export function useHand(hand: Hand, { openPage }: HostOptions = {}): HandHost {
  const state = useSyncExternalStore(hand.subscribe, () => hand.state, () => hand.state);
  const memory = useMemory(state);
  useHint(hand.http, state.connection);
  const now = useNow(isAskedElsewhere(state.facts));
  return useMemo(() => {
    const cards = [...state.calls.values()].map((call) => viewOf({ ...state, run: { state: "idle" } }, call, memory));
    return { ...verbsOf(hand, memory), state, cards, connection: state.connection, openPage };
  }, [hand, state, memory, openPage, now]);
}

function verbsOf(hands: Hands, memory: CardMemory): Omit<CardHost, "cards" | "connection" | "openPage" | "say" | "threadId"> {
  return {
    http: hands.http,
    answer: (callId, outcome) => void hands.answer(callId, outcome),
    approve: (callId, approvalId, decision) => {
      memory.reasons.set(callId, decision.reason ?? "");
      if (decision.approved && decision.input !== undefined) {
        memory.edited.add(callId);
      }
      hands.approve(approvalId, decision);
    },
    retry: (id) => hands.retry(id),
    discard: (id) => void hands.discard(id),
    retryNow: () => hands.retryNow(),
  };
}

const HostContext = createContext<CardHost | undefined>(undefined);

/** Calls whose input has been visible to its end. */
export interface ReadCalls {
  readonly has: (callId: string) => boolean;
  readonly add: (callId: string) => void;
}

const ReadContext = createContext<ReadCalls>({ has: () => false, add: () => undefined });

/** The props of a custom card: the call, and how it can be answered. */
export interface CardProps {
  readonly view: CardView;
  /** True while an answer is being sent. */
  readonly isOff: boolean;
  readonly answer: (output: unknown) => void;
  readonly skip: () => void;
}

/** Custom cards, by the names that tools use, or as replacements for built-in ones. The approval card cannot be replaced. */
export type OwnCards = Readonly<Record<string, ComponentType<CardProps>>>;

export interface Style {
  readonly cards?: OwnCards | undefined;
  readonly words?: Partial<Words> | undefined;
}

const StyleContext = createContext<{ readonly cards: OwnCards; readonly words: Words }>({ cards: {}, words: WORDS });

/** Inside another provider, its cards and words are added to the outer ones. */
export function CardHostProvider({ host, cards, words, children }: Style & { host: CardHost; children: ReactNode }): ReactNode {
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set());
  const read = useMemo(() => ({ has: (id: string) => ids.has(id), add: (id: string) => setIds((before) => (before.has(id) ? before : new Set([...before, id]))) }), [ids]);
  useDraftsOf(host);
  const around = useContext(StyleContext);
  const style = useMemo(() => ({ cards: { ...around.cards, ...cards }, words: { ...around.words, ...words } }), [around, cards, words]);
  return (
    <HostContext.Provider value={host}>
      <StyleContext.Provider value={style}>
        <ReadContext.Provider value={read}>{children}</ReadContext.Provider>
      </StyleContext.Provider>
    </HostContext.Provider>
  );
}

export function useWords(): Words {
  return useContext(StyleContext).words;
}

/** The custom card of this view. Own properties only: a tool that names the card `constructor` gets none. */
export function useOwnCard({ card, kind }: CardView): ComponentType<CardProps> | undefined {
  const { cards } = useContext(StyleContext);
  const name = [card, kind].find((each) => each !== undefined && Object.hasOwn(cards, each));
  return kind === "approval" || name === undefined ? undefined : cards[name];
}

export function useReadCalls(): ReadCalls {
  return useContext(ReadContext);
}

/**
 * A draft: what a person has typed or chosen but not sent, as JSON. Restored after a reload, and when the same question is shown again,
 * even by another card. `fits` checks a stored value; by default, it must have the type of `first`.
 */
export function useDraft<T>({ call }: CardView, field: string, first: T, fits: (value: unknown) => boolean = (value) => typeof value === typeof first): [T, (value: T) => void] {
  const drafts = draftsOf(useCardHost().http);
  const look = (): unknown => drafts.get(call.id, field, fits);
  const value = useSyncExternalStore(drafts.subscribe, look, look);
  return [value === undefined ? first : (value as T), (next) => drafts.set(call.id, field, next)];
}

/** Whether one of these calls has an edited input that was not sent. */
export function useAnyEdited(callIds: readonly string[]): boolean {
  const drafts = draftsOf(useCardHost().http);
  const look = (): boolean => callIds.some((id) => drafts.get(id, EDIT, areDrafts) !== undefined);
  return useSyncExternalStore(drafts.subscribe, look, look);
}

/** The name of the draft for an approval's edited input. */
export const EDIT = "input";

/** Removes the stored drafts of finished calls. The draft of a call that timed out stays readable, and goes to the call that asks again. */
function useDraftsOf({ http, cards, threadId }: CardHost): void {
  const drafts = draftsOf(http);
  const ids = cards.map(({ call }) => call.id).join(" ");
  const over = cards.filter(({ call, state }) => call.phase === "settled" && state.name !== "timed-out").map(({ call }) => call.id).join(" ");
  const before = useRef("");
  const open = cards.filter(({ call, state }) => call.phase === "ready" && (state.name === "open" || state.name === "parked")).map(({ call }) => call);
  useEffect(() => open.forEach((call) => drafts.takeOver(call.id, questionKey(call, threadId))), [drafts, open.map(({ id }) => id).join(" "), threadId]);
  useEffect(() => over.split(" ").forEach((id) => id !== "" && drafts.settle(id)), [drafts, over]);
  useEffect(() => {
    // an inbox does not say how a call ended: it only disappears
    const gone = threadId === undefined ? before.current.split(" ").filter((id) => id !== "" && !ids.split(" ").includes(id)) : [];
    gone.forEach((id) => drafts.settle(id));
    before.current = ids;
  }, [drafts, ids, threadId]);
}

export function useCardHost(): CardHost {
  const host = useContext(HostContext);
  if (host === undefined) {
    throw new Error("Render cards inside <CardHostProvider>.");
  }
  return host;
}
