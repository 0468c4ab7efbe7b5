// What the server says about itself: whose agent this is, what it can be asked, what the page may offer. What was said last
// time counts until it is said again, so that a page does not change its name while it loads.
import type { About } from "@farhand/protocol";
import { createContext, useContext, useEffect, useState } from "react";
import { BASE } from "../base.ts";
import { askAbout } from "../server.ts";
import { useSite } from "./site.ts";
import type { Starter } from "./starters.ts";

/** What an agent says of itself may all be left out. `words` replaces words of the page. */
export interface AboutPage extends About {
  readonly title?: string | null;
  readonly welcome?: string | null;
  readonly starters?: readonly Starter[];
  /** A path of this server, or an address. */
  readonly logo?: string | null;
  /** Whether the page shows what only a demonstration has. */
  readonly demo?: boolean;
  readonly inspector?: boolean;
  readonly words?: Readonly<Record<string, string>> | null;
}

const KEPT = `farhand:about:${BASE}`;

const AboutContext = createContext<AboutPage | undefined>(undefined);

export const AboutProvider = AboutContext.Provider;

/** Undefined until the server has said something. */
export function useAbout(): AboutPage | undefined {
  return useContext(AboutContext);
}

export function useAskedAbout(): AboutPage | undefined {
  const { feed } = useSite();
  const [about, setAbout] = useState<AboutPage | undefined>(kept);
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
export function logoOf({ logo }: Pick<AboutPage, "logo">): string | undefined {
  return typeof logo === "string" && /^(?:https?:\/\/|\/(?![/\\]))/.test(logo) ? logo : undefined;
}

function kept(): AboutPage | undefined {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(KEPT) ?? "null");
    return typeof found === "object" && found !== null ? (found as AboutPage) : undefined;
  } catch {
    return undefined;
  }
}

function keep(about: AboutPage): void {
  try {
    localStorage.setItem(KEPT, JSON.stringify(about));
  } catch {
    // full or forbidden: it is asked for each time
  }
}
