// The lists beside the chat: threads and inbox. Reloaded when events arrive.
import type { OpenCall, ThreadPage } from "@farhand/client";
import { useCallback, useEffect, useRef, useState } from "react";
import { askInbox, askThreads } from "../server.ts";
import { isQuestion } from "./question.ts";
import { useSite } from "./site.ts";

type Rows = ThreadPage["threads"];

export interface Lists {
  readonly threads: Rows;
  /** The calls that a person has to answer. */
  readonly inbox: readonly OpenCall[];
  readonly isLoaded: boolean;
  readonly refresh: () => void;
  /** Loads older chats; undefined if there are none. */
  readonly more: (() => Promise<void>) | undefined;
  readonly forget: (id: string) => void;
}

const SETTLE_MS = 120;

export function useLists(): Lists {
  const site = useSite();
  const [threads, setThreads] = useState<Rows>([]);
  const [next, setNext] = useState<string>();
  const [inbox, setInbox] = useState<readonly OpenCall[]>([]);
  const [isLoaded, setLoaded] = useState(false);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const isDeep = useRef(false);
  const load = useCallback(async () => {
    const [page, calls] = await Promise.all([askThreads(), askInbox()]);
    if (typeof page !== "string") {
      setThreads((before) => withOlder(page.threads, isDeep.current ? before : []));
      isDeep.current || setNext(page.next);
    }
    if (typeof calls !== "string") {
      setInbox(calls.filter(isQuestion));
      setLoaded(true);
    }
  }, []);
  const refresh = useCallback(() => {
    // events arrive in bursts: one reload is enough for all of them
    clearTimeout(timer.current);
    timer.current = setTimeout(() => void load(), SETTLE_MS);
  }, [load]);
  const more = useCallback(async () => {
    const page = await askThreads({ after: next });
    if (typeof page !== "string") {
      isDeep.current = true;
      setThreads((before) => withOlder(before, page.threads));
      setNext(page.next);
    }
  }, [next]);
  useEffect(() => {
    void load();
    const ends = [site.feed.listen(refresh), site.onReceipt(refresh)];
    return () => ends.forEach((end) => end());
  }, [site, load, refresh]);
  const forget = useCallback((id: string) => setThreads((before) => before.filter((row) => row.id !== id)), []);
  return { threads, inbox, isLoaded, refresh, more: next === undefined ? undefined : more, forget };
}

/** The newer rows, followed by older ones that are not among them. */
export function withOlder(newer: Rows, older: Rows): Rows {
  const known = new Set(newer.map(({ id }) => id));
  return [...newer, ...older.filter(({ id }) => !known.has(id))];
}
