// Decides which presses may allow something: only those that a person meant. Not in the first moment of a card, by a held key, as the
// second half of a double click, under a pointer when the button has just moved there, or from a script.
import { type ReactNode, type RefObject, useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";
import { Button, type ButtonProps } from "./frame.tsx";

/** How long a button must have been visible before a press counts. */
export const SETTLED_MS = 600;

/** The fields of React's events that are used here. */
interface Press {
  readonly nativeEvent: Event;
}

/** Whether a person pressed it, and could see what they pressed. */
export function isDeliberate({ nativeEvent }: Press): boolean {
  const { isTrusted, detail, repeat } = nativeEvent as UIEvent & { repeat?: boolean };
  const now = performance.now();
  const isDouble = detail !== 0 && isSoon && (isSame || detail > 1);
  return isTrusted === true && repeat !== true && !isDouble && now - seenAt >= SETTLED_MS;
}

const NEVER = Number.NEGATIVE_INFINITY;

/** When and where a pointer was last pressed, disabled elements included; whether that was soon after the previous press, and on the same
 * element; when somebody last scrolled; when the page last scrolled; and when the page last became visible or got the focus. */
let pressedAt = NEVER;
let pressedOn: EventTarget | null = null;
let isSoon = false;
let isSame = false;
let scrolledAt = NEVER;
let shiftedAt = NEVER;
let seenAt = NEVER;

function notePress({ target }: Event): void {
  const now = performance.now();
  // a button counts as one element, whatever is inside it
  const on = (target as Element).closest?.("button") ?? target;
  isSoon = now - pressedAt < SETTLED_MS;
  isSame = on === pressedOn;
  pressedAt = now;
  pressedOn = on;
}

/** Whether this button has the focus because a pointer pressed it: a key that is pressed next may be meant for something else. */
export function isPressed(button: EventTarget): boolean {
  return button === pressedOn;
}

function noteScroll(): void {
  scrolledAt = performance.now();
}

function noteSight(): void {
  seenAt = performance.now();
}

/** Call it after scrolling cards programmatically: for a moment, presses by a pointer allow nothing. */
export function cardsMoved(): void {
  shiftedAt = performance.now();
}

const HEARD = [["pointerdown", notePress], ["visibilitychange", noteSight], ["wheel", noteScroll], ["touchmove", noteScroll]] as const;

/** Never removed: adding the same listener again has no effect, however many buttons there are. */
function watch(): void {
  HEARD.forEach(([kind, note]) => document.addEventListener(kind, note, true));
}

/** The time from which it can be pressed; 0 while it is disabled or hidden, and for a moment after that. */
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
/** A smaller difference does not count as a move. */
const NEAR_PX = 4;

interface Stillness {
  readonly isStill: boolean;
  /** Measures again, for a press between two measurements: returns whether the button was still when the press began. */
  readonly stands: (since: number) => boolean;
}

/** False for a moment after the button has moved by itself, because a card disappeared or grew or the page scrolled: the pointer may have
 * been meant for something else. A person who scrolls sees where the button goes. Also false for a moment after the window got the
 * focus: the press that focuses it, or that closes a dialog of the browser, is not meant for the button. */
function useStill(button: RefObject<Element | null>): Stillness {
  const [isStill, setStill] = useState(true);
  const place = useRef<Place | undefined>(undefined);
  const movedAt = useRef(NEVER);
  const stands = useCallback((since: number): boolean => {
    // the timer may fire once after the button is unmounted
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
  // before it is painted at its new place
  useBeforePaint(() => void stands(0));
  useEffect(() => {
    const timer = setInterval(stands, LOOK_EVERY_MS, 0);
    return () => clearInterval(timer);
  }, [stands]);
  return { isStill, stands };
}

const useBeforePaint = typeof document === "undefined" ? useEffect : useLayoutEffect;

/** The position in the scrolled content, the vertical position in the window, and the scrollable height. */
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

/** Whether it has moved. A list below the button that gets shorter also moves it in the window. Scrolling alone does not count: it is the
 * person's, or reported by `cardsMoved`. */
function isElsewhere(before: Place, now: Place): boolean {
  const [left, top, inWindow, extent] = before.map((each, index) => Math.abs(each - now[index]!) >= NEAR_PX);
  return left || top || (inWindow && extent && performance.now() - scrolledAt >= SETTLED_MS) || false;
}

/** The visible part of a button that is enough to recognize it. */
const SEEN = 0.5;

/** Whether it is neither scrolled out of view nor inside a hidden element. */
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

/** For every button that lets a call run, or gives consent in the person's name. */
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
        // not `disabled`: it would lose the focus, and a key goes to the focused element however the cards move
        aria-disabled={isStill ? undefined : true}
        // a held key repeats its press
        onKeyDown={(event) => event.repeat && event.preventDefault()}
        // a press that began before the button was ready was meant for something else, however late it ends
        onClick={(event) => (event.detail === 0 || (pressedAt >= since && stands(pressedAt))) && isDeliberate(event) && onAllow()}
      />
    </span>
  );
}

/** Whether this part of a card contains such a button that can be pressed now. */
export function canAllow(part: Element): boolean {
  return part.querySelector(".fh-allow > button:not(:disabled)") !== null;
}
