// Manages the focus while cards come and go. It stays where the person put it. Only if nothing has it does it move to the next question:
// to its heading, or to its field if the person has started typing. Never to a button, because a key that was meant for something else
// must not answer.
import { type RefObject, useEffect, useRef } from "react";
import type { CardView } from "../view.ts";

const FIELDS = "input:not([hidden]):not(:disabled), select:not(:disabled), textarea:not(:disabled)";

/** `room` contains the cards; `waiting` are those that need an answer, in order. */
export function useCardFocus(room: RefObject<HTMLElement | null>, waiting: readonly CardView[]): void {
  const last = useRef(0);
  const isInside = useRef(false);
  const states = waiting.map(({ call, state }) => `${call.id} ${state.name}`).join("\n");
  useEffect(() => {
    const cards = room.current;
    // a button that was disabled, or removed with its card, leaves nothing focused
    if (cards === null || !isNowhere()) {
      return;
    }
    const open = waiting.filter(({ state }) => state.name !== "sending").map(({ call }) => call.id);
    const ids = waiting.map(({ call }) => call.id);
    const from = Math.min(last.current, ids.length);
    [...ids.slice(from), ...ids.slice(0, from)].filter((id) => open.includes(id)).some((id) => focusOn(cards, id, isInside.current));
  }, [room, states]);
  useEffect(() => {
    const note = ({ target }: FocusEvent): void => {
      // on a page that has just loaded, the heading got the focus from this code
      isInside.current ||= (target as Element).matches(":not(.fh-title)");
      const id = (target as Element).closest<HTMLElement>("[data-call]")?.dataset["call"];
      const place = waiting.findIndex(({ call }) => call.id === id);
      last.current = place < 0 ? last.current : place;
    };
    const cards = room.current;
    cards?.addEventListener("focusin", note);
    return () => cards?.removeEventListener("focusin", note);
  });
}

/** Returns true if there is such a card. */
function focusOn(room: HTMLElement, id: string, mayType: boolean): boolean {
  const card = room.querySelector<HTMLElement>(`[data-call="${CSS.escape(id)}"]`);
  const target = (mayType && card?.querySelector<HTMLElement>(FIELDS)) || card?.querySelector<HTMLElement>(".fh-title");
  target?.focus();
  return target != null;
}

export function isNowhere(): boolean {
  const active = document.activeElement;
  return active === null || active === document.body || (active as HTMLButtonElement).disabled === true;
}
