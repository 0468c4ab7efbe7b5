// The server's record of a chat, next to what `useChat` shows. Owns when it is loaded, and that an older record never removes newer text;
// must not know how a chat looks.
import type { useChat } from "@ai-sdk/react";
import type { Thread } from "@farhand/client";
import type { UIMessage } from "ai";
import { useCallback, useEffect, useRef, useState } from "react";
import { askThread, SIGN_IN } from "../server.ts";
import { useSite } from "./site.ts";

export type Chat = ReturnType<typeof useChat>;

/** What this page is posting. `useChat` shows it a moment later, and an older record must not replace it. */
export interface Posts {
  begun: number;
  open: number;
}

export async function posting(posts: Posts, done: Promise<void>): Promise<void> {
  posts.begun += 1;
  posts.open += 1;
  await done.finally(() => void (posts.open -= 1));
}

interface Kept {
  readonly record: Thread | undefined;
  /** A stream has ended since the record was requested. */
  readonly isBehind: boolean;
  readonly isLoaded: boolean;
  readonly isUnknown: boolean;
  /** The server did not respond to the last request for the record, or does not yet. */
  readonly isAway: boolean;
  /** What the page showed of the answer that is being resumed. */
  readonly resumed: UIMessage | undefined;
  readonly sync: () => void;
  /** Loads it with a new request, also while another one has no response. */
  readonly reload: () => void;
  readonly ended: () => void;
}

/** The server's record of this chat, loaded whenever something may have changed. */
export function useRecord(id: string, chat: Chat, posts: Posts, isDraft: boolean): Kept {
  const site = useSite();
  const [record, setRecord] = useState<Thread>();
  const [isBehind, setBehind] = useState(false);
  const [isLoaded, setLoaded] = useState(isDraft);
  const [isUnknown, setUnknown] = useState(false);
  const [isAway, setAway] = useState(false);
  const [resumed, setResumed] = useState<UIMessage>();
  const latest = useRef(chat);
  latest.current = chat;
  const [asking] = useState(() => ({ isOn: false, again: false, ends: 0, isLeft: false, isResuming: false, request: new AbortController(), retry: 0 }));
  const sync = useCallback(() => {
    if (site.stops.has(id) || asking.isLeft) {
      return; // the page is gone; or the person has pressed Stop, and the record is loaded once the server has confirmed it
    }
    if (asking.isOn) {
      asking.again = true;
      return;
    }
    asking.isOn = true;
    clearTimeout(asking.retry);
    const { signal } = (asking.request = new AbortController());
    const late = setTimeout(() => setAway(true), LATE_MS);
    const { ends } = asking;
    const learn = (thread: Thread): void => (setRecord(thread), setBehind(asking.ends !== ends));
    void follow(id, latest, posts, { signal, learn, isLeft: () => asking.isLeft, isResuming: () => asking.isResuming }).then((found) => {
      clearTimeout(late);
      // a signed-out person has the banner above the chat, and the events that follow a sign-in
      const isLost = found === "away" && !SIGN_IN.isOut;
      setAway(isLost);
      found === "gone" && setRecord(undefined);
      setUnknown(found === "gone" && latest.current.messages.length === 0);
      setLoaded(true);
      asking.isOn = false;
      if (typeof found === "object") {
        // not awaited: records that are loaded meanwhile say who runs the calls of this stream
        asking.isResuming = true;
        setResumed(found.shown);
        void latest.current.resumeStream().then(() => {
          asking.isResuming = false;
          setResumed(undefined);
          latest.current.status === "ready" && setTimeout(sync, STALE_MS);
        });
      }
      if (asking.again) {
        asking.again = false;
        setTimeout(sync, 0);
      } else if (isLost && latest.current.messages.length === 0) {
        asking.retry = window.setTimeout(sync, LATE_MS);
      }
    });
  }, [id, asking, posts, site]);
  const reload = useCallback(() => {
    // with its connection: a browser opens only a few
    asking.request.abort();
    sync();
  }, [asking, sync]);
  const ended = useCallback(() => {
    asking.ends += 1;
    setBehind(true);
    sync();
  }, [asking, sync]);
  // before the first load below: React mounts twice in development
  useEffect(() => {
    asking.isLeft = false;
    return () => {
      asking.isLeft = true;
      asking.request.abort();
    };
  }, [asking]);
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
  return { record, isBehind, isLoaded, isUnknown, isAway, resumed, sync, reload, ended };
}

const STALE_MS = 400;
/** After this time without a response, the page says so; a request that failed is repeated after it. */
const LATE_MS = 4_000;

interface Follower {
  readonly signal: AbortSignal;
  readonly learn: (record: Thread) => void;
  readonly isLeft: () => boolean;
  readonly isResuming: () => boolean;
}

/** Loads the record and shows it. If the run is active, returns what is shown of its answer: then its stream has to be resumed. */
async function follow(id: string, latest: { readonly current: Chat }, posts: Posts, { signal, learn, isLeft, isResuming }: Follower): Promise<"gone" | "away" | "there" | { shown: UIMessage | undefined }> {
  const { begun } = posts;
  const thread = await askThread(id, signal);
  if (typeof thread === "string") {
    return thread;
  }
  if (posts.begun !== begun || isLeft()) {
    return "there"; // older than a message sent meanwhile, or the page is gone
  }
  learn(thread);
  const { status, setMessages, clearError } = latest.current;
  if (posts.open > 0 || isResuming() || status === "submitted" || status === "streaming") {
    return "there";
  }
  if (thread.state === "running" || thread.state === "waiting") {
    clearError();
  }
  let shown: UIMessage[] = [];
  setMessages((before) => (shown = recorded(thread, before)));
  if (thread.state !== "running") {
    return "there";
  }
  return { shown: shown.find((message) => message.id === thread.runId) };
}

/** The recorded messages. If the page shows more of the current answer than the record has, which happens after a failure, the shown
 * version is kept. */
export function recorded({ messages, state, runId }: Thread, shown: readonly UIMessage[]): UIMessage[] {
  const kept = messages as unknown as UIMessage[];
  const cut = shown.findLast(({ id, role }) => role === "assistant" && id === runId);
  const mayBeAhead = state === "failed" || state === "stopped" || state === "running";
  const isAhead = cut !== undefined && mayBeAhead && textOf(cut).length > textOf(kept.find(({ id }) => id === runId)).length;
  return isAhead ? [...kept.filter(({ id }) => id !== runId), cut] : kept;
}

/** A resumed answer is streamed from its start: the version that was shown before stays until the stream has repeated all of it. */
export function withoutRetelling(messages: readonly UIMessage[], before: UIMessage | undefined): readonly UIMessage[] {
  const at = before === undefined ? -1 : messages.findIndex(({ id }) => id === before.id);
  const now = messages[at];
  return before === undefined || now === undefined || hasAllOf(now, before) ? messages : messages.with(at, before);
}

function hasAllOf(now: UIMessage, before: UIMessage): boolean {
  return textOf(now).length >= textOf(before).length && now.parts.length >= before.parts.length && settledIn(now) >= settledIn(before);
}

function settledIn({ parts }: UIMessage): number {
  return parts.filter((part) => "state" in part && part.state?.startsWith("output-") === true).length;
}

export function textOf(message: UIMessage | undefined): string {
  return message?.parts.map((part) => (part.type === "text" ? part.text : "")).join("") ?? "";
}
