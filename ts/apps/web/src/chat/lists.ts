// What stands beside the chats: the list of threads, the inbox, the model's name. Asked for again when news say so.
import type { OpenCall, ThreadPage } from "@farhand/client";
import { useCallback, useEffect, useRef, useState } from "react";
import { askAbout, askInbox, askThreads } from "../server.ts";
import { useSite } from "./site.ts";

export interface Lists {
  readonly threads: ThreadPage["threads"];
  readonly inbox: readonly OpenCall[];
  readonly isLoaded: boolean;
  readonly model: string | undefined;
  readonly refresh: () => void;
}

const SETTLE_MS = 120;

export function useLists(): Lists {
  const site = useSite();
  const [threads, setThreads] = useState<ThreadPage["threads"]>([]);
  const [inbox, setInbox] = useState<readonly OpenCall[]>([]);
  const [isLoaded, setLoaded] = useState(false);
  const [model, setModel] = useState<string>();
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const load = useCallback(async () => {
    const [page, calls] = await Promise.all([askThreads(), askInbox()]);
    if (typeof page !== "string") {
      setThreads(page.threads);
    }
    if (typeof calls !== "string") {
      setInbox(calls);
      setLoaded(true);
    }
  }, []);
  const refresh = useCallback(() => {
    // news come in bunches: one look is enough for all of them
    clearTimeout(timer.current);
    timer.current = setTimeout(() => void load(), SETTLE_MS);
  }, [load]);
  useEffect(() => {
    void load();
    void askAbout().then((about) => typeof about !== "string" && setModel(about.model));
    const ends = [site.feed.listen(refresh), site.onReceipt(refresh)];
    return () => ends.forEach((end) => end());
  }, [site, load, refresh]);
  return { threads, inbox, isLoaded, model, refresh };
}
