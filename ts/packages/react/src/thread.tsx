// What cards share: the host that brings their answers, and a thread as such a host.
import { type AnswerOutcome, type Connection, type Decision, type Hand, type Hands, type HandState, type Http, LiveThread, type ThreadOptions, type ThreadState } from "@farhand/client";
import { type ComponentType, createContext, type ReactNode, useContext, useEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import { areDrafts, draftsOf } from "./drafts.ts";
import { useEnds } from "./settled-outcomes.ts";
import { type CardMemory, useMemory, useNow } from "./card-memory.ts";
import { type CardView, isAskedElsewhere, viewOf } from "./view.ts";
import { type Words, WORDS } from "./words.ts";

/** Who brings the answers of cards: a thread, an inbox over many, or a chat of another library. */
export interface CardHost {
  readonly http: Http;
  readonly cards: readonly CardView[];
  readonly connection: Connection;
  readonly answer: (callId: string, outcome: AnswerOutcome) => void;
  readonly approve: (callId: string, approvalId: string, decision: Decision) => void;
  /** For an answer that is not delivered, by the id of its call or approval: try at once, or take it back. */
  readonly retry: (id: string) => void;
  readonly discard: (id: string) => void;
  readonly retryNow: () => void;
  /** The chat that the cards belong to, if it is one: what is always allowed in it can be taken back there. */
  readonly threadId?: string | undefined;
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
  const life = useMemo(() => ({ thread: new LiveThread({ onUnknown: "card", ...options }), mounts: 0 }), [options.threadId, options.url]);
  const { thread } = life;
  const state = useSyncExternalStore(thread.subscribe, () => thread.state, () => thread.state);
  const memory = useMemory(state);
  const ends = useEnds(thread.http, thread.id, state);
  useEffect(() => {
    const mount = (life.mounts += 1);
    if (mount === 1) {
      void thread.open();
    }
    // React mounts twice in development: a thread is closed only when nobody has come back for it
    return () => void setTimeout(() => life.mounts === mount && (thread.close(), (life.mounts = 0)));
  }, [life, thread]);
  // a program that does not begin is told as away after a while, though nothing is heard
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

/** The open calls of a hand, made by `connect()`, as cards: an inbox beside any chat. The hand stays open when the component goes. */
export function useHand(hand: Hand, { openPage }: HostOptions = {}): HandHost {
  const state = useSyncExternalStore(hand.subscribe, () => hand.state, () => hand.state);
  const memory = useMemory(state);
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

/** Calls whose input has been in sight to its end. */
export interface ReadCalls {
  readonly has: (callId: string) => boolean;
  readonly add: (callId: string) => void;
}

const ReadContext = createContext<ReadCalls>({ has: () => false, add: () => undefined });

/** What a card of the page's own is given: the call as it stands, and what it can be answered with. */
export interface CardProps {
  readonly view: CardView;
  /** True while an answer is on its way. */
  readonly isOff: boolean;
  readonly answer: (output: unknown) => void;
  readonly skip: () => void;
}

/** Cards of the page's own by the names that tools give, or in the place of ours. The approval card is not replaced. */
export type OwnCards = Readonly<Record<string, ComponentType<CardProps>>>;

export interface Style {
  readonly cards?: OwnCards | undefined;
  readonly words?: Partial<Words> | undefined;
}

const StyleContext = createContext<{ readonly cards: OwnCards; readonly words: Words }>({ cards: {}, words: WORDS });

/** Inside of another one, its own cards and words are added to those outside. */
export function CardHostProvider({ host, cards, words, children }: Style & { host: CardHost; children: ReactNode }): ReactNode {
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set());
  const read = useMemo(() => ({ has: (id: string) => ids.has(id), add: (id: string) => setIds((before) => (before.has(id) ? before : new Set([...before, id]))) }), [ids]);
  useSettledDrafts(host);
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

/** Own properties only: a tool that asks for the card `constructor` gets none. */
export function useOwnCard({ card, kind }: CardView): ComponentType<CardProps> | undefined {
  const { cards } = useContext(StyleContext);
  const name = [card, kind].find((each) => each !== undefined && Object.hasOwn(cards, each));
  return kind === "approval" || name === undefined ? undefined : cards[name];
}

export function useReadCalls(): ReadCalls {
  return useContext(ReadContext);
}

/**
 * What somebody has typed or chosen, as JSON can hold it: there again after a reload, and when an answer comes back, though its
 * card was another one meanwhile. `fits` judges what was kept; of the same type as `first`, unless told otherwise.
 */
export function useDraft<T>({ call }: CardView, field: string, first: T, fits: (value: unknown) => boolean = (value) => typeof value === typeof first): [T, (value: T) => void] {
  const drafts = draftsOf(useCardHost().http);
  const look = (): unknown => drafts.get(call.id, field, fits);
  const value = useSyncExternalStore(drafts.subscribe, look, look);
  return [value === undefined ? first : (value as T), (next) => drafts.set(call.id, field, next)];
}

/** Whether somebody began to change the inputs of one of these calls and has not sent it. */
export function useAnyEdited(callIds: readonly string[]): boolean {
  const drafts = draftsOf(useCardHost().http);
  const look = (): boolean => callIds.some((id) => drafts.get(id, EDIT, areDrafts) !== undefined);
  return useSyncExternalStore(drafts.subscribe, look, look);
}

/** The name of the draft that holds an approval's changed input. */
export const EDIT = "input";

/** Lets go of the kept drafts of calls that are over. One that came too late stays readable. */
function useSettledDrafts({ http, cards, threadId }: CardHost): void {
  const drafts = draftsOf(http);
  const ids = cards.map(({ call }) => call.id).join(" ");
  const over = cards.filter(({ call, state }) => call.phase === "settled" && state.name !== "timed-out").map(({ call }) => call.id).join(" ");
  const before = useRef("");
  useEffect(() => over.split(" ").forEach((id) => id !== "" && drafts.settle(id)), [drafts, over]);
  useEffect(() => {
    // an inbox does not say how a call ended: it is not in it any more
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
