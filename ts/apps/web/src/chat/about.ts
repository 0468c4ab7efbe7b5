// The server's description of itself: its agent, what it can be asked, which features the page may offer. The last description is used
// until the new one arrives, so that the page does not change its name while it loads.
import type { About } from "@farhand/protocol";
import { createContext, useContext, useEffect, useState } from "react";
import { BASE } from "../base.ts";
import { askAbout, SIGN_IN } from "../server.ts";
import { useSite } from "./site.ts";

const KEPT = `farhand:about:${BASE}`;
const READER = `farhand:reader:${BASE}`;

const AboutContext = createContext<About | undefined>(undefined);

export const AboutProvider = AboutContext.Provider;

/** Undefined until the server has answered, unless an earlier description is stored. */
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
          // the open chat belongs to the other person, too
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
    // after a restart it may be another server
    const leaveFeed = feed.listen(({ type, isResumed }) => type === "again" && isResumed !== true && void load());
    return () => {
      leaveSignIn();
      leaveFeed();
    };
  }, [feed]);
  return about;
}

/** Whether the person who is signed in is not the one who was signed in before in this tab. If so, removes what was stored for that person. */
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
    // forbidden: nothing was stored
    return false;
  }
}

/** The logo as a path of this server or an http(s) URL; undefined for anything else. */
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
    // full or forbidden: it is requested each time
  }
}
