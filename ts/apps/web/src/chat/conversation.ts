// One chat: AI SDK's `useChat` for what is said, the server's record for what is true. Owns when which of them is asked.
import { useChat } from "@ai-sdk/react";
import { type Call, type Course, openable, type Thread } from "@farhand/client";
import { LiveTransport } from "@farhand/ai-sdk";
import { type CardHost, type CardView, isWaiting, useMemory, viewOf } from "@farhand/react";
import type { UIMessage } from "ai";
import { useCallback, useEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import { BASE } from "../base.ts";
import { askThread, HTTP } from "../server.ts";
import { callsOf, endsOf, factsOf } from "./calls.ts";
import { useHands, useSite } from "./site.ts";
import type { Tools } from "./tools.ts";

export type RunState = "New" | "Thinking" | "Running" | "Waiting for you" | "Parked" | "Done" | "Stopped" | "Failed";

export interface Conversation {
  readonly id: string;
  readonly title: string;
  readonly messages: readonly UIMessage[];
  readonly views: ReadonlyMap<string, CardView>;
  readonly host: CardHost;
  readonly state: RunState;
  readonly error: Failure | undefined;
  /** Stop was said, and the server has yet to hear it; late: it does not answer. */
  readonly isStopping: boolean;
  readonly stopIsLate: boolean;
  readonly runId: string | undefined;
  /** The address names a chat that the server does not have. */
  readonly isUnknown: boolean;
  /** Until when the first open question can be answered; only if the run is stored. */
  readonly until: number | undefined;
  readonly isLoaded: boolean;
  readonly send: (text: string) => void;
  readonly stop: () => void;
  readonly tryAgain: () => void;
  /** Drops the connection on purpose; only while there is one. */
  readonly pullThePlug: (() => void) | undefined;
}

export interface Failure {
  readonly message: string;
  readonly code?: string;
}

/** `isDraft`: nothing was said in it yet, so the server cannot know it. */
export function useConversation(id: string, tools: Tools, isDraft: boolean): Conversation {
  const site = useSite();
  const { deliveries, running } = useHands();
  const [line] = useState(() => new LiveTransport({ url: BASE }));
  const connection = useSyncExternalStore(line.subscribe, () => line.connection);
  const known = useRef<{ shown: ReadonlySet<string> }>({ shown: new Set() });
  const onToolCall = useCallback(({ toolCall }: { toolCall: { toolCallId: string; toolName: string; input?: unknown } }) => {
    if (toolCall.toolName !== "open_url" || mayOpen(toolCall.input, known.current.shown)) {
      site.hands.onToolCall({ toolCall });
    }
  }, [site]);
  const chat = useChat({ id, transport: line, onToolCall, onFinish: () => sync(), onError: () => sync(), throttle: 30 });
  const { record, isLoaded, isUnknown, sync } = useRecord(id, chat, isDraft);

  const isOpen = chat.status === "submitted" || chat.status === "streaming";
  const facts = useMemo(() => factsOf(record), [record]);
  const ends = useMemo(() => endsOf(record), [record]);
  const calls = useMemo(() => callsOf(chat.messages, facts), [chat.messages, facts]);
  known.current.shown = useMemo(() => hostsShown(chat.messages), [chat.messages]);
  useEffect(() => site.hands.watch(chat.messages), [site, chat.messages]);
  const memory = useMemory({ calls, facts });
  const course: Course = { state: isParked(record, isOpen) ? "parked" : isOpen ? "running" : "idle" };
  const views = new Map([...calls].map(([callId, call]) => [callId, viewOf({ facts, running, deliveries, course, tools, ends }, call, memory)]));

  const { isStopping, wasStopped, setStopped, ...wish } = useStop(id, sync);
  const isLate = wish.isLate || (isStopping && connection.state === "lost");
  useLettingGo(isLate, chat, calls);
  const send = (text: string): void => {
    setStopped(false);
    void chat.sendMessage({ text });
  };
  const host: CardHost = {
    http: HTTP,
    // whoever has said stop is not asked any more
    cards: isStopping ? [] : [...views.values()],
    connection,
    answer: (callId, outcome) => void site.hands.answer(callId, outcome),
    approve: (callId, approvalId, decision) => {
      memory.reasons.set(callId, decision.reason ?? "");
      site.hands.approve(approvalId, decision);
    },
    retry: (answerId) => site.hands.retry(answerId),
    discard: (answerId) => void site.hands.discard(answerId),
    retryNow: () => (line.retryNow(), site.hands.retryNow()),
    say: isOpen ? undefined : send,
    openPage: site.openPage,
  };
  const waiting = host.cards.filter(isWaiting);
  return {
    id,
    title: record?.title ?? titleOf(chat.messages),
    messages: chat.messages,
    views,
    host,
    isStopping,
    stopIsLate: isLate,
    runId: record?.runId ?? chat.messages.findLast(({ role }) => role === "assistant")?.id,
    isUnknown,
    state: isStopping ? "Stopped" : stateOf(record, { isOpen, isEmpty: chat.messages.length === 0, isWaiting: waiting.length > 0, isParked: course.state === "parked", hasError: chat.error !== undefined, wasStopped, isRunning: host.cards.some(({ state }) => state.name === "running") }),
    error: isOpen ? undefined : errorOf(record, chat.error),
    until: waiting.length > 0 && record?.state === "waiting" ? firstDeadline(record) : undefined,
    isLoaded,
    send,
    stop: () => {
      setStopped(true);
      site.stops.wish(id);
    },
    tryAgain: () => again(chat),
    pullThePlug: connection.state === "open" ? () => line.pullThePlug() : undefined,
  };
}

type Chat = ReturnType<typeof useChat>;

function errorOf(record: Thread | undefined, error: Error | undefined): Failure | undefined {
  // the record has the code, too
  return record?.failure ?? (error === undefined ? undefined : { message: error.message });
}

/** The wish to stop, and that it was said here: a message that never reached the server leaves no record of it. */
function useStop(id: string, sync: () => void): { isStopping: boolean; isLate: boolean; wasStopped: boolean; setStopped: (was: boolean) => void } {
  const { stops } = useSite();
  const isStopping = useSyncExternalStore(stops.subscribe, () => stops.has(id));
  const isLate = useSyncExternalStore(stops.subscribe, () => stops.isLate(id));
  const [wasStopped, setStopped] = useState(isStopping);
  const before = useRef(isStopping);
  useEffect(() => {
    if (before.current && !isStopping) {
      sync();
    }
    before.current = isStopping;
  }, [isStopping, sync]);
  return { isStopping, isLate, wasStopped, setStopped };
}

/** With the server away, nothing of a stopped answer is sent any more: not the message, and not the answers to its cards. */
function useLettingGo(isLate: boolean, { stop, status }: Chat, calls: ReadonlyMap<string, Call>): void {
  const { hands } = useSite();
  const { deliveries } = useHands();
  useEffect(() => {
    if (!isLate) {
      return;
    }
    if (status === "submitted" || status === "streaming") {
      void stop();
    }
    const ids = [...calls.values()].map((call) => (call.phase === "asking" ? call.approvalId : call.id));
    ids.filter((each) => deliveries.get(each)?.state === "undelivered").forEach((each) => hands.discard(each));
  }, [isLate, status, stop, calls, deliveries, hands]);
}

/** What the server keeps of this chat, asked for whenever something may have changed. */
function useRecord(id: string, chat: Chat, isDraft: boolean): { record: Thread | undefined; isLoaded: boolean; isUnknown: boolean; sync: () => void } {
  const site = useSite();
  const [record, setRecord] = useState<Thread>();
  const [isLoaded, setLoaded] = useState(isDraft);
  const [isUnknown, setUnknown] = useState(false);
  const latest = useRef(chat);
  latest.current = chat;
  const [asking] = useState(() => ({ isOn: false, again: false }));
  const sync = useCallback(() => {
    if (site.stops.has(id)) {
      return; // nothing is read on; the end is looked at once the server has heard the wish
    }
    if (asking.isOn) {
      asking.again = true;
      return;
    }
    asking.isOn = true;
    void follow(id, latest, setRecord).then((found) => {
      const isStale = found === "stale";
      setUnknown(found === "gone" && latest.current.messages.length === 0);
      setLoaded(true);
      asking.isOn = false;
      if (asking.again || isStale) {
        asking.again = false;
        setTimeout(sync, isStale ? STALE_MS : 0);
      }
    });
  }, [id, asking, site]);
  const isUnsaid = isDraft && chat.messages.length === 0;
  useEffect(() => {
    if (isUnsaid) {
      return undefined;
    }
    if (!isDraft) {
      sync();
    }
    const ends = [
      site.onReceipt(sync),
      site.feed.listen(({ type, threadId }) => (threadId === id || type === "again") && sync()),
    ];
    return () => ends.forEach((end) => end());
  }, [id, sync, site, isDraft, isUnsaid]);
  return { record, isLoaded, isUnknown, sync };
}

const STALE_MS = 400;

/** Brings the chat to where the server is. `stale`: that has to be looked at again soon. */
async function follow(id: string, latest: { readonly current: Chat }, onRecord: (record: Thread) => void): Promise<"stale" | "gone" | "away" | "there"> {
  const thread = await askThread(id);
  if (typeof thread === "string") {
    return thread;
  }
  onRecord(thread);
  const { status, setMessages, resumeStream, clearError } = latest.current;
  if (status === "submitted" || status === "streaming") {
    return "there";
  }
  if (thread.state === "running" || thread.state === "waiting") {
    clearError();
  }
  if (thread.state !== "running") {
    setMessages((shown) => recorded(thread, shown));
    return "there";
  }
  await resumeStream();
  return latest.current.status === "ready" ? "stale" : "there";
}

/** What the server keeps, and behind it what was said of an answer that failed or was stopped before it was kept. */
export function recorded({ messages, state, runId }: Thread, shown: readonly UIMessage[]): UIMessage[] {
  const kept = messages as unknown as UIMessage[];
  const cut = shown.findLast(({ id, role }) => role === "assistant" && id === runId);
  const isLost = cut !== undefined && (state === "failed" || state === "stopped") && textOf(cut).length > textOf(kept.find(({ id }) => id === runId)).length;
  return isLost ? [...kept.filter(({ id }) => id !== runId), cut] : kept;
}

function textOf(message: UIMessage | undefined): string {
  return message?.parts.map((part) => (part.type === "text" ? part.text : "")).join("") ?? "";
}

/** A page of a host that this chat has shown before opens by itself; of others the person sees the host first. */
function mayOpen(input: unknown, shown: ReadonlySet<string>): boolean {
  const text = (input as { url?: unknown } | undefined)?.url;
  const url = typeof text === "string" ? openable(text) : undefined;
  return document.visibilityState === "visible" && url !== undefined && shown.has(url.host);
}

function hostsShown(messages: readonly UIMessage[]): ReadonlySet<string> {
  const parts = messages.flatMap((message) => message.parts).filter((part) => part.type === "tool-open_url");
  const urls = parts.flatMap((part) => ("state" in part && part.state === "output-available" ? [openable(String((part.input as { url?: unknown }).url))] : []));
  return new Set(urls.flatMap((url) => url?.host ?? []));
}

const SHORT_MS = 600_000;

/** Nobody reads its stream, and there is time: what is left of a held call's minute is no parking. */
function isParked(record: Thread | undefined, isOpen: boolean): boolean {
  return !isOpen && record?.state === "waiting" && (firstDeadline(record) ?? Number.POSITIVE_INFINITY) - Date.now() > SHORT_MS;
}

function firstDeadline({ openCalls }: Thread): number | undefined {
  const times = openCalls.flatMap(({ deadline }) => (deadline === null ? [] : [Date.parse(deadline)]));
  return times.length === 0 ? undefined : Math.min(...times);
}

interface Signs {
  readonly isOpen: boolean;
  readonly isEmpty: boolean;
  readonly isWaiting: boolean;
  readonly isParked: boolean;
  readonly isRunning: boolean;
  readonly hasError: boolean;
  readonly wasStopped: boolean;
}

const RECORDED: Readonly<Record<string, RunState>> = { running: "Thinking", waiting: "Waiting for you", done: "Done", stopped: "Stopped", failed: "Failed" };

function stateOf(record: Thread | undefined, signs: Signs): RunState {
  if (signs.isParked) {
    return "Parked";
  }
  if (signs.isWaiting) {
    return "Waiting for you";
  }
  if (signs.isOpen) {
    return signs.isRunning ? "Running" : "Thinking";
  }
  if (signs.hasError) {
    return "Failed";
  }
  if (record === undefined && signs.wasStopped) {
    return "Stopped";
  }
  return signs.isEmpty ? "New" : (RECORDED[record?.state ?? "done"] ?? "Done");
}

function titleOf(messages: readonly UIMessage[]): string {
  const text = messages[0]?.parts.find((part) => part.type === "text")?.text;
  return text ?? "New chat";
}

/** The last answer once more; a message that never got one is said once more. */
function again({ messages, setMessages, sendMessage, regenerate }: Chat): void {
  const last = messages.at(-1);
  if (last?.role !== "user") {
    void regenerate();
    return;
  }
  const text = last.parts.map((part) => (part.type === "text" ? part.text : "")).join("");
  setMessages(messages.slice(0, -1));
  void sendMessage({ text });
}
