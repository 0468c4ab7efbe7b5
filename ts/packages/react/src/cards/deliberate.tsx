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
function useSettled(isUsable: boolean): number {
  const [since, setSince] = useState(0);
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

/** Reads the position of one button; returns the time since which it has not moved. */
type Look = (scrolled: Scrolled) => number;

/** One for each button. All buttons that could be pressed are read in one go, before anything is rendered: many cards cost one layout. */
const LOOKS = new Set<Look>();
let looking: ReturnType<typeof setInterval> | undefined;

function lookAtAll(): void {
  // also while all of them are out of sight: the letters of their cards count
  noteFocus();
  const scrolled: Scrolled = new Map();
  LOOKS.forEach((look) => look(scrolled));
}

function keepLooking(look: Look): () => void {
  LOOKS.add(look);
  looking ??= setInterval(lookAtAll, LOOK_EVERY_MS);
  return () => {
    LOOKS.delete(look);
    if (LOOKS.size === 0) {
      clearInterval(looking);
      looking = undefined;
    }
  };
}

function noteFocus(): void {
  if (!document.hasFocus()) {
    noteSight();
  }
}

/** False for a moment after the button has moved by itself, because a card disappeared or grew or the page scrolled: the pointer may have
 * been meant for something else. A person who scrolls sees where the button goes. Also false for a moment after the window got the
 * focus: the press that focuses it, or that closes a dialog of the browser, is not meant for the button. */
function useStill(button: RefObject<Element | null>, isUsable: boolean): Stillness {
  const [isStill, setStill] = useState(true);
  const place = useRef<Place | undefined>(undefined);
  const movedAt = useRef(NEVER);
  const look = useCallback((scrolled: Scrolled): number => {
    // the timer may fire once after the button is unmounted
    if (!isUsable || button.current === null) {
      return Number.POSITIVE_INFINITY;
    }
    const now = performance.now();
    const next = placeOf(button.current, scrolled);
    if (isElsewhere(place.current ?? next, next)) {
      movedAt.current = now;
    }
    place.current = next;
    const stoodSince = Math.max(movedAt.current, shiftedAt, seenAt);
    setStill(now - stoodSince >= SETTLED_MS);
    return stoodSince;
  }, [button, isUsable]);
  // before it is painted at its new place
  useBeforePaint(() => void look(new Map()));
  useEffect(() => keepLooking(look), [look]);
  const stands = (since: number): boolean => {
    noteFocus();
    return since - look(new Map()) >= SETTLED_MS;
  };
  return { isStill, stands };
}

export const useBeforePaint = typeof document === "undefined" ? useEffect : useLayoutEffect;

/** The position in the scrolled content, the vertical position in the window, and the scrollable height. */
type Place = readonly [left: number, top: number, topInWindow: number, extent: number];

function placeOf(element: Element, scrolled: Scrolled): Place {
  const { left, top } = element.getBoundingClientRect();
  const [scrolledLeft, scrolledTop, extent] = scrollOf(element, scrolled);
  return [left + scrolledLeft, top + scrolledTop, top, extent];
}

/** How far an element and all around it are scrolled, and how much there is to scroll: buttons share most of what is around them. */
type Scrolled = Map<Element, readonly [left: number, top: number, extent: number]>;

function scrollOf(element: Element | null, scrolled: Scrolled): readonly [number, number, number] {
  if (element === null) {
    return [0, 0, 0];
  }
  const known = scrolled.get(element);
  if (known !== undefined) {
    return known;
  }
  const [left, top, extent] = scrollOf(element.parentElement, scrolled);
  const sum = [left + element.scrollLeft, top + element.scrollTop, extent + element.scrollHeight] as const;
  scrolled.set(element, sum);
  return sum;
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
  const isUsable = useInSight(button) && !disabled;
  const since = useSettled(isUsable);
  const { isStill, stands } = useStill(button, isUsable);
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
