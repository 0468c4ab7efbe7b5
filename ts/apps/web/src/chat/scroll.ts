// Scrolling in a chat: at its end, new content is followed; further up, the position is kept.
import { cardsMoved } from "@farhand/react";
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";
import type { Conversation } from "./conversation.ts";

const NEAR_PX = 160;
/** Events that scroll, and how long the page keeps moving afterwards. */
const MOVES = ["wheel", "touchmove", "keydown", "pointerdown"] as const;
const MOVED_MS = 1_000;
/** After these events content takes more room, although nothing is rendered again. */
const PICTURES = ["load", "loadedmetadata"] as const;

export interface End {
  readonly end: { current: HTMLDivElement | null };
  /** The end is out of view and not followed. */
  readonly isAway: boolean;
  readonly jump: () => void;
}

/** Follows the end unless the person has scrolled up. */
export function useStickyEnd({ id, messages }: Conversation): End {
  const end = useRef<HTMLDivElement>(null);
  const isNear = useRef(true);
  const [isAway, setAway] = useState(false);
  useEffect(() => {
    const room = end.current?.closest("[data-scrolls]");
    let before = 0;
    let movedAt = Number.NEGATIVE_INFINITY;
    const move = ({ type, target }: Event): void => {
      // a press or a key that answers a card moves the content too, but nobody scrolled
      const isAnswer = (type === "pointerdown" || type === "keydown") && (target as Element).closest?.(".fh-card") != null;
      movedAt = isAnswer ? movedAt : performance.now();
    };
    const look = (): void => {
      const { scrollHeight, scrollTop, clientHeight } = room ?? { scrollHeight: 0, scrollTop: 0, clientHeight: 0 };
      // the event arrives late, and also when the content grew or shrank: only a person who scrolls up leaves the end
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
  // before painting: cards must know when something moves under the pointer
  useLayoutEffect(() => void (isNear.current && follow(end.current)));
  useEffect(() => {
    const room = end.current?.closest("[data-scrolls]");
    const grown = (): void => void (isNear.current && follow(end.current));
    PICTURES.forEach((kind) => room?.addEventListener(kind, grown, true));
    // a rotated phone, or its on-screen keyboard
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
