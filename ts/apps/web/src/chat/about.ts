// What the server says about itself: whose agent this is, what it can be asked, what the page may offer. What was said last
// time counts until it is said again, so that a page does not change its name while it loads.
import type { About } from "@farhand/protocol";
import { createContext, useContext, useEffect, useState } from "react";
import { BASE } from "../base.ts";
import { askAbout } from "../server.ts";
import { useSite } from "./site.ts";

const KEPT = `farhand:about:${BASE}`;

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
        setAbout(found);
        keep(found);
      }
    };
    void load();
    // the server may be another one after a restart
    return feed.listen(({ type, isResumed }) => type === "again" && isResumed !== true && void load());
  }, [feed]);
  return about;
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
