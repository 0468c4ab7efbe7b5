// What the server keeps of a chat, beside what `useChat` shows of it. Owns when it is asked for, and that an older record
// takes no one's words away; must not know how a chat looks.
import type { useChat } from "@ai-sdk/react";
import type { Thread } from "@farhand/client";
import type { UIMessage } from "ai";
import { useCallback, useEffect, useRef, useState } from "react";
import { askThread } from "../server.ts";
import { useSite } from "./site.ts";

export type Chat = ReturnType<typeof useChat>;

/** What this page posts. `useChat` shows it a moment later, and a record from before it must not take its place. */
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
  /** A stream has ended since the record was asked for. */
  readonly isBehind: boolean;
  readonly isLoaded: boolean;
  readonly isUnknown: boolean;
  readonly sync: () => void;
  readonly ended: () => void;
}

/** What the server keeps of this chat, asked for whenever something may have changed. */
export function useRecord(id: string, chat: Chat, posts: Posts, isDraft: boolean): Kept {
  const site = useSite();
  const [record, setRecord] = useState<Thread>();
  const [isBehind, setBehind] = useState(false);
  const [isLoaded, setLoaded] = useState(isDraft);
  const [isUnknown, setUnknown] = useState(false);
  const latest = useRef(chat);
  latest.current = chat;
  const [asking] = useState(() => ({ isOn: false, again: false, ends: 0 }));
  const sync = useCallback(() => {
    if (site.stops.has(id)) {
      return; // nothing is read on; the end is looked at once the server has heard the wish
    }
    if (asking.isOn) {
      asking.again = true;
      return;
    }
    asking.isOn = true;
    const { ends } = asking;
    const learn = (thread: Thread): void => (setRecord(thread), setBehind(asking.ends !== ends));
    void follow(id, latest, posts, learn).then((found) => {
      const isStale = found === "stale";
      setUnknown(found === "gone" && latest.current.messages.length === 0);
      setLoaded(true);
      asking.isOn = false;
      if (asking.again || isStale) {
        asking.again = false;
        setTimeout(sync, isStale ? STALE_MS : 0);
      }
    });
  }, [id, asking, posts, site]);
  const ended = useCallback(() => {
    asking.ends += 1;
    setBehind(true);
    sync();
  }, [asking, sync]);
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
  return { record, isBehind, isLoaded, isUnknown, sync, ended };
}

const STALE_MS = 400;

/** Brings the chat to where the server is. `stale`: that has to be looked at again soon. */
async function follow(id: string, latest: { readonly current: Chat }, posts: Posts, onRecord: (record: Thread) => void): Promise<"stale" | "gone" | "away" | "there"> {
  const { begun } = posts;
  const thread = await askThread(id);
  if (typeof thread === "string") {
    return thread;
  }
  if (posts.begun !== begun) {
    return "there"; // older than what was said meanwhile; its end is looked at again
  }
  onRecord(thread);
  const { status, setMessages, resumeStream, clearError } = latest.current;
  if (posts.open > 0 || status === "submitted" || status === "streaming") {
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

export function textOf(message: UIMessage | undefined): string {
  return message?.parts.map((part) => (part.type === "text" ? part.text : "")).join("") ?? "";
}
