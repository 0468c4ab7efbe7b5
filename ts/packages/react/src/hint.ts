// For the developer of a page: a script is not told why a request failed, but what it usually is can be said.
import type { Connection, Http } from "@farhand/client";
import { useEffect, useRef } from "react";

/** Once, if a server of another origin has never answered. */
export function useHint({ url }: Http, connection: Connection): void {
  const first = useRef(connection);
  const wasAnswered = useRef(false);
  const isLost = connection.state === "lost";
  wasAnswered.current ||= !isLost && connection !== first.current;
  useEffect(() => {
    if (isLost && url !== "" && !wasAnswered.current) {
      console.warn(`farhand: no answer from ${url}. Is the server running, and does it allow this page? Start it with --allow-origin ${location.origin}`);
    }
  }, [isLost, url]);
}
