// The server's description of itself: its agent, what it can be asked, which features the page may offer. The last description is used
// until the new one arrives, so that the page does not change its name while it loads.
import type { About } from "@farhand/protocol";
import { createContext, useContext, useEffect, useState, useSyncExternalStore } from "react";
import { BASE } from "../base.ts";
import { askAbout, SIGN_IN } from "../server.ts";
import { keep, keysIn, readKept, storageOf } from "../storage.ts";
import { useSite } from "./site.ts";

const KEPT = `farhand:about:${BASE}`;
const READER = `farhand:reader:${BASE}`;

const AboutContext = createContext<About | undefined>(undefined);

export const AboutProvider = AboutContext.Provider;

/** Undefined until the server has answered, unless an earlier description is stored. */
export function useAbout(): About | undefined {
  return useContext(AboutContext);
}

let isReaderKnown = false;
const readerListeners = new Set<() => void>();

function onReader(listener: () => void): () => void {
  readerListeners.add(listener);
  return () => void readerListeners.delete(listener);
}

/** Whether the server has confirmed who is signed in. Nothing that was stored before a reload is sent until then. */
export function useIsReaderKnown(): boolean {
  return useSyncExternalStore(onReader, () => isReaderKnown);
}

export function useAskedAbout(): About | undefined {
  const { feed } = useSite();
  const [about, setAbout] = useState<About | undefined>(kept);
  useEffect(() => {
    const load = async (): Promise<void> => {
      const found = await askAbout();
      if (typeof found !== "string") {
        if (isAnotherReader(found.reader)) {
          // the open chat belongs to the other person, too
          history.replaceState(null, "", location.pathname + location.search);
          location.reload();
          return;
        }
        isReaderKnown = true;
        readerListeners.forEach((listener) => listener());
        setAbout(found);
        keep(storageOf("localStorage"), KEPT, JSON.stringify(found));
      }
    };
    void load();
    const leaveSignIn = SIGN_IN.subscribe(() => !SIGN_IN.isOut && void load());
    // after a restart it may be another server
    const leaveFeed = feed.listen(({ type, isResumed }) => type === "again" && isResumed !== true && void load());
    return () => {
      leaveSignIn();
      leaveFeed();
    };
  }, [feed]);
  return about;
}

/** The last reader, for a browser that forbids storage. */
let readerBefore: string | undefined;

/** Whether the person who is signed in is not the one who was signed in before in this tab. If so, removes what was stored for that person. */
export function isAnotherReader(reader: string | undefined): boolean {
  const storage = storageOf("sessionStorage");
  const last = storage?.getItem(READER) ?? readerBefore;
  readerBefore = reader;
  keep(storage, READER, reader ?? "");
  if (!reader || !last || last === reader) {
    return false;
  }
  keysIn(storage, "farhand:").filter((key) => key !== READER).forEach((key) => keep(storage, key, undefined));
  return true;
}

/** The logo as a path of this server or an http(s) URL; undefined for anything else. */
export function logoOf({ logo }: Pick<About, "logo">): string | undefined {
  return typeof logo === "string" && /^(?:https?:\/\/|\/(?![/\\]))/.test(logo) ? logo : undefined;
}

function kept(): About | undefined {
  const found = readKept(storageOf("localStorage"), KEPT);
  return typeof found === "object" && found !== null ? (found as About) : undefined;
}
