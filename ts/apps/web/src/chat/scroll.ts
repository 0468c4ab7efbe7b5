// Where somebody is in a talk: at its end, which is followed, or further up, where they are left alone.
import { cardsMoved } from "@farhand/react";
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";
import type { Conversation } from "./conversation.ts";

const NEAR_PX = 160;
/** What people scroll with, and for how long it goes on moving. */
const MOVES = ["wheel", "touchmove", "keydown", "pointerdown"] as const;
const MOVED_MS = 1_000;
/** What has come then takes more room, though nothing is drawn anew. */
const PICTURES = ["load", "loadedmetadata"] as const;

export interface End {
  readonly end: { current: HTMLDivElement | null };
  /** The end is out of sight, and is not followed. */
  readonly isAway: boolean;
  readonly jump: () => void;
}

/** Stays at the end while somebody is there; anyone who scrolled up is left alone. */
export function useStickyEnd({ id, messages }: Conversation): End {
  const end = useRef<HTMLDivElement>(null);
  const isNear = useRef(true);
  const [isAway, setAway] = useState(false);
  useEffect(() => {
    const room = end.current?.closest("[data-scrolls]");
    let before = 0;
    let movedAt = Number.NEGATIVE_INFINITY;
    const move = ({ type, target }: Event): void => {
      // a press or a key that answers a card moves what is shown, too, but nobody scrolled
      const isAnswer = (type === "pointerdown" || type === "keydown") && (target as Element).closest?.(".fh-card") != null;
      movedAt = isAnswer ? movedAt : performance.now();
    };
    const look = (): void => {
      const { scrollHeight, scrollTop, clientHeight } = room ?? { scrollHeight: 0, scrollTop: 0, clientHeight: 0 };
      // the event comes late, and also when what is shown grew or shrank: only a person who scrolls up leaves the end
      const isScrolledUp = scrollTop < before && performance.now() - movedAt < MOVED_MS;
      isNear.current = scrollHeight - scrollTop - clientHeight < NEAR_PX || (isNear.current && !isScrolledUp);
      before = scrollTop;
      setAway(!isNear.current);
    };
    MOVES.forEach((kind) => addEventListener(kind, move, { passive: true }));
    room?.addEventListener("scroll", look, { passive: true });
    return () => {
      MOVES.forEach((kind) => removeEventListener(kind, move));
      room?.removeEventListener("scroll", look);
    };
  }, []);
  const jump = useCallback(() => {
    isNear.current = true;
    setAway(false);
    end.current?.scrollIntoView({ block: "end" });
  }, []);
  const count = messages.length;
  useLayoutEffect(() => {
    isNear.current = true;
    setAway(false);
  }, [count, id]);
  // before it is painted: what is under a pointer must not change without the cards being told
  useLayoutEffect(() => void (isNear.current && follow(end.current)));
  useEffect(() => {
    const room = end.current?.closest("[data-scrolls]");
    const grown = (): void => void (isNear.current && follow(end.current));
    PICTURES.forEach((kind) => room?.addEventListener(kind, grown, true));
    // a phone that is turned, or whose keyboard opens
    addEventListener("resize", grown);
    return () => {
      PICTURES.forEach((kind) => room?.removeEventListener(kind, grown, true));
      removeEventListener("resize", grown);
    };
  }, []);
  return { end, isAway, jump };
}

function follow(end: HTMLElement | null): void {
  const room = end?.closest("[data-scrolls]");
  const before = room?.scrollTop;
  end?.scrollIntoView({ block: "end" });
  if (room?.scrollTop !== before) {
    cardsMoved();
  }
}
