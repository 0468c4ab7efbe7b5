// Presses that allow something. They count only when a person means them: not in the first moment of a card, not from a key
// that is held down, not as the second half of a double click, not with a pointer under which the button has just come, and never
// from a script.
import { type ReactNode, type RefObject, useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";
import { Button, type ButtonProps } from "./frame.tsx";

/** How long a button must have been in sight before a press counts. */
export const SETTLED_MS = 600;

/** The fields of React's events that count here. */
interface Press {
  readonly nativeEvent: Event;
}

/** Whether a person pressed it, and on what they could see. */
export function isDeliberate({ nativeEvent }: Press): boolean {
  const { isTrusted, detail, repeat } = nativeEvent as UIEvent & { repeat?: boolean };
  const now = performance.now();
  const isDouble = detail !== 0 && isSoon && (isSame || detail > 1);
  return isTrusted === true && repeat !== true && !isDouble && now - seenAt >= SETTLED_MS;
}

const NEVER = Number.NEGATIVE_INFINITY;

/** When and where a pointer was pressed last, also on what is off and hears no click; whether that was soon after the press before it,
 * and on the same thing; when somebody last scrolled, and when the page did; and when the page was last turned to. */
let pressedAt = NEVER;
let pressedOn: EventTarget | null = null;
let isSoon = false;
let isSame = false;
let scrolledAt = NEVER;
let shiftedAt = NEVER;
let seenAt = NEVER;

function notePress({ target }: Event): void {
  const now = performance.now();
  // a button is one thing, with all that is drawn in it
  const on = (target as Element).closest?.("button") ?? target;
  isSoon = now - pressedAt < SETTLED_MS;
  isSame = on === pressedOn;
  pressedAt = now;
  pressedOn = on;
}

/** Whether the focus is on this button because a pointer pressed it: what is typed next may be meant for something else. */
export function isPressed(button: EventTarget): boolean {
  return button === pressedOn;
}

function noteScroll(): void {
  scrolledAt = performance.now();
}

function noteSight(): void {
  seenAt = performance.now();
}

/** For a page that scrolls its cards by itself: for a moment no pointer allows what has come under it. */
export function cardsMoved(): void {
  shiftedAt = performance.now();
}

const HEARD = [["pointerdown", notePress], ["visibilitychange", noteSight], ["wheel", noteScroll], ["touchmove", noteScroll]] as const;

/** They stay: the same listener is added once only, however many buttons there are. */
function watch(): void {
  HEARD.forEach(([kind, note]) => document.addEventListener(kind, note, true));
}

/** Since when it can be pressed: 0 while it is off or out of sight, and for a moment after it came on. */
function useSettled(isOff: boolean, button: RefObject<Element | null>): number {
  const [since, setSince] = useState(0);
  const isUsable = useInSight(button) && !isOff;
  useEffect(watch, []);
  useEffect(() => {
    setSince(0);
    const timer = isUsable ? setTimeout(() => setSince(performance.now()), SETTLED_MS) : undefined;
    return () => clearTimeout(timer);
  }, [isUsable]);
  return isUsable ? since : 0;
}

const LOOK_EVERY_MS = 32;
/** Less than this is no other place. */
const NEAR_PX = 4;

interface Stillness {
  readonly isStill: boolean;
  /** Looks again, for a press that comes before the next look: whether it was still when that began. */
  readonly stands: (since: number) => boolean;
}

/** Not still for a moment after the button has come to another place by itself: a card has left or grown, or the page has scrolled.
 * The pointer may be there for something else. Whoever scrolls sees where it goes. Nor for a moment after the window got the focus:
 * the press that does so, or that closes a dialog of the browser, is not meant for the button. */
function useStill(button: RefObject<Element | null>): Stillness {
  const [isStill, setStill] = useState(true);
  const place = useRef<Place | undefined>(undefined);
  const movedAt = useRef(NEVER);
  const stands = useCallback((since: number): boolean => {
    // the timer outlives the button by a moment
    if (button.current === null) {
      return false;
    }
    const now = performance.now();
    const next = placeOf(button.current);
    if (isElsewhere(place.current ?? next, next)) {
      movedAt.current = now;
    }
    if (!document.hasFocus()) {
      noteSight();
    }
    place.current = next;
    const stoodSince = Math.max(movedAt.current, shiftedAt, seenAt);
    setStill(now - stoodSince >= SETTLED_MS);
    return since - stoodSince >= SETTLED_MS;
  }, [button]);
  // before anybody sees it there
  useBeforePaint(() => void stands(0));
  useEffect(() => {
    const timer = setInterval(stands, LOOK_EVERY_MS, 0);
    return () => clearInterval(timer);
  }, [stands]);
  return { isStill, stands };
}

const useBeforePaint = typeof document === "undefined" ? useEffect : useLayoutEffect;

/** In what is scrolled, however far that is; in the window; and how much there is to scroll. */
type Place = readonly [left: number, top: number, topInWindow: number, extent: number];

function placeOf(element: Element): Place {
  const { left, top } = element.getBoundingClientRect();
  const place: [number, number, number, number] = [left, top, top, 0];
  for (let around: Element | null = element; around !== null; around = around.parentElement) {
    place[0] += around.scrollLeft;
    place[1] += around.scrollTop;
    place[3] += around.scrollHeight;
  }
  return place;
}

/** A list that gets shorter below the button moves it in the window, too. A scroll alone is somebody's, or `cardsMoved` says so. */
function isElsewhere(before: Place, now: Place): boolean {
  const [left, top, inWindow, extent] = before.map((each, index) => Math.abs(each - now[index]!) >= NEAR_PX);
  return left || top || (inWindow && extent && performance.now() - scrolledAt >= SETTLED_MS) || false;
}

/** Half of a button is enough to see what it is. */
const SEEN = 0.5;

/** Neither scrolled away nor inside of something that is not shown. */
function useInSight(element: RefObject<Element | null>): boolean {
  const [isInSight, setInSight] = useState(typeof IntersectionObserver === "undefined");
  useEffect(() => {
    if (typeof IntersectionObserver === "undefined" || element.current === null) {
      return undefined;
    }
    const observer = new IntersectionObserver((entries) => setInSight((entries.at(-1)?.intersectionRatio ?? 0) >= SEEN), { threshold: SEEN });
    observer.observe(element.current);
    return () => observer.disconnect();
  }, [element]);
  return isInSight;
}

export interface AllowButtonProps extends Omit<ButtonProps, "onClick"> {
  readonly onAllow: () => void;
}

/** For whatever lets a call run, or says yes in the person's name. */
export function AllowButton({ onAllow, disabled = false, ...rest }: AllowButtonProps): ReactNode {
  const button = useRef<HTMLSpanElement>(null);
  const since = useSettled(disabled, button);
  const { isStill, stands } = useStill(button);
  return (
    <span ref={button} className="fh-allow">
      <Button
        look="main"
        {...rest}
        disabled={since === 0}
        // not off: it would lose the focus, and a key goes where the focus is, however the cards move
        aria-disabled={isStill ? undefined : true}
        // a key that is held down presses again and again
        onKeyDown={(event) => event.repeat && event.preventDefault()}
        // a press that began before it could be pressed was meant for something else, however late it ends
        onClick={(event) => (event.detail === 0 || (pressedAt >= since && stands(pressedAt))) && isDeliberate(event) && onAllow()}
      />
    </span>
  );
}

/** Whether this part of a card has such a button that could be pressed now. */
export function canAllow(part: Element): boolean {
  return part.querySelector(".fh-allow > button:not(:disabled)") !== null;
}
