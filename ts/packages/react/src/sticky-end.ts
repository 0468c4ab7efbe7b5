// The end of a list that scrolls: followed while somebody is there; anyone who has scrolled up is left alone.
import { type RefObject, useEffect, useRef, useState } from "react";
import { cardsMoved, useBeforePaint } from "./cards/deliberate.tsx";

const NEAR_PX = 40;

export interface StickyEnd {
  readonly room: RefObject<HTMLDivElement | null>;
  /** The end is out of sight, and is not followed. */
  readonly isAway: boolean;
  readonly jump: () => void;
  /** For the element: somebody scrolled, or what is shown takes another size. */
  readonly onScroll: () => void;
  readonly onLoadCapture: () => void;
}

/** Whatever has another `own` was written by this person, who wants to see it. */
export function useStickyEnd(own: string | undefined): StickyEnd {
  const room = useRef<HTMLDivElement>(null);
  const before = useRef(0);
  const [isAway, setAway] = useState(false);
  const follows = useRef(true);
  const follow = (): void => {
    const { current } = room;
    if (current !== null && follows.current) {
      current.scrollTop = current.scrollHeight;
      // what is under a pointer has changed
      current.scrollTop === before.current || cardsMoved();
      before.current = current.scrollTop;
    }
  };
  const jump = (): void => {
    follows.current = true;
    setAway(false);
    follow();
  };
  const onScroll = (): void => {
    const { scrollTop, scrollHeight, clientHeight } = room.current!;
    const isNear = scrollHeight - scrollTop - clientHeight < NEAR_PX;
    // further from the end because there is more to show: only scrolling up leaves it
    follows.current = isNear || (follows.current && scrollTop >= before.current);
    before.current = scrollTop;
    setAway(!follows.current);
  };
  useBeforePaint(jump, [own]);
  useBeforePaint(follow);
  useEffect(() => {
    const watcher = new ResizeObserver(follow);
    [room.current!, room.current!.lastElementChild!].forEach((each) => watcher.observe(each));
    return () => watcher.disconnect();
  }, []);
  return { room, isAway, jump, onScroll, onLoadCapture: follow };
}
