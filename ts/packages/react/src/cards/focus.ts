// Where the focus is while questions come and go: at the first one, then at the one after each answer. Never taken from
// somebody who is writing or has gone elsewhere.
import { type RefObject, useEffect, useRef } from "react";
import type { CardView } from "../view.ts";

const CONTROLS = "button:not(:disabled), input:not([hidden]):not(:disabled), select:not(:disabled), textarea:not(:disabled)";

/** `room` holds the cards; `waiting` are those that somebody has to answer, in their order. */
export function useCardFocus(room: RefObject<HTMLElement | null>, waiting: readonly CardView[]): void {
  const last = useRef(0);
  const first = waiting[0]?.call.id ?? "";
  useEffect(() => {
    if (first !== "" && room.current !== null && isFree(room.current)) {
      focusOn(room.current, first);
    }
  }, [room, first]);
  const states = waiting.map(({ call, state }) => `${call.id} ${state.name}`).join("\n");
  useEffect(() => {
    const cards = room.current;
    // a button that went off, or away with its card, leaves the focus nowhere
    if (cards === null || !isNowhere()) {
      return;
    }
    const ids = waiting.map(({ call }) => call.id);
    const from = Math.min(last.current, ids.length);
    [...ids.slice(from), ...ids.slice(0, from)].some((id) => focusOn(cards, id));
  }, [room, states]);
  useEffect(() => {
    const note = ({ target }: FocusEvent): void => {
      const id = (target as Element).closest<HTMLElement>("[data-call]")?.dataset["call"];
      const place = waiting.findIndex(({ call }) => call.id === id);
      last.current = place < 0 ? last.current : place;
    };
    const cards = room.current;
    cards?.addEventListener("focusin", note);
    return () => cards?.removeEventListener("focusin", note);
  });
}

/** True if there is something in this card that can be pressed or filled in. */
function focusOn(room: HTMLElement, id: string): boolean {
  const control = room.querySelector<HTMLElement>(`[data-call="${CSS.escape(id)}"]`)?.querySelector<HTMLElement>(CONTROLS);
  control?.focus();
  return control != null;
}

export function isNowhere(): boolean {
  const active = document.activeElement;
  return active === null || active === document.body || (active as HTMLButtonElement).disabled === true;
}

function isFree(room: HTMLElement): boolean {
  const active = document.activeElement;
  const isWriting = (active instanceof HTMLInputElement || active instanceof HTMLTextAreaElement) && active.value !== "" && !active.disabled;
  return !isWriting && !(active !== null && room.contains(active) && !(active as HTMLButtonElement).disabled);
}
