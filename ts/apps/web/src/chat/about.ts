// What the server says about itself: whose agent this is, what it can be asked, what the page may offer. What was said last
// time counts until it is said again, so that a page does not change its name while it loads.
import type { About } from "@farhand/protocol";
import { createContext, useContext, useEffect, useState } from "react";
import { BASE } from "../base.ts";
import { askAbout, SIGN_IN } from "../server.ts";
import { useSite } from "./site.ts";

const KEPT = `farhand:about:${BASE}`;
const READER = `farhand:reader:${BASE}`;

const AboutContext = createContext<About | undefined>(undefined);

export const AboutProvider = AboutContext.Provider;

/** Undefined until the server has said something. */
export function useAbout(): About | undefined {
  return useContext(AboutContext);
}

export function useAskedAbout(): About | undefined {
  const { feed } = useSite();
  const [about, setAbout] = useState<About | undefined>(kept);
  useEffect(() => {
    const load = async (): Promise<void> => {
      const found = await askAbout();
      if (typeof found !== "string") {
        if (isAnotherReader(found.reader)) {
          // the open chat is not theirs, either
          history.replaceState(null, "", location.pathname + location.search);
          location.reload();
          return;
        }
        setAbout(found);
        keep(found);
      }
    };
    void load();
    const leaveSignIn = SIGN_IN.subscribe(() => !SIGN_IN.isOut && void load());
    // the server may be another one after a restart
    const leaveFeed = feed.listen(({ type, isResumed }) => type === "again" && isResumed !== true && void load());
    return () => {
      leaveSignIn();
      leaveFeed();
    };
  }, [feed]);
  return about;
}

/** Whether somebody else is signed in than before in this tab. What was kept for that person is removed. */
export function isAnotherReader(reader: string | undefined): boolean {
  try {
    const last = sessionStorage.getItem(READER);
    sessionStorage.setItem(READER, reader ?? "");
    if (!reader || !last || last === reader) {
      return false;
    }
    const keys = Array.from({ length: sessionStorage.length }, (_, index) => sessionStorage.key(index) ?? "");
    keys.filter((key) => key.startsWith("farhand:") && key !== READER).forEach((key) => sessionStorage.removeItem(key));
    return true;
  } catch {
    // forbidden: then nothing was kept
    return false;
  }
}

/** A path of this server or an address, and nothing that a script could hide in. */
export function logoOf({ logo }: Pick<About, "logo">): string | undefined {
  return typeof logo === "string" && /^(?:https?:\/\/|\/(?![/\\]))/.test(logo) ? logo : undefined;
}

function kept(): About | undefined {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(KEPT) ?? "null");
    return typeof found === "object" && found !== null ? (found as About) : undefined;
  } catch {
    return undefined;
  }
}

function keep(about: About): void {
  try {
    localStorage.setItem(KEPT, JSON.stringify(about));
  } catch {
    // full or forbidden: it is asked for each time
  }
}
