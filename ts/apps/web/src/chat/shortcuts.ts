// A allows and D denies the first open approval, or the one that has the focus. Not while somebody writes.
import { type RefObject, useEffect } from "react";

const WRITES = "input:not([type=radio]):not([type=checkbox]), textarea, select, [contenteditable]";

export function useShortcuts(room: RefObject<HTMLElement | null>): void {
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      const key = event.key.toLowerCase();
      const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey && !event.repeat;
      const target = event.target as Element | null;
      if (!isPlain || (key !== "a" && key !== "d") || target?.closest(WRITES) != null) {
        return;
      }
      const card = target?.closest("[data-kind=approval]") ?? room.current?.querySelector(".fh-card[data-kind=approval]");
      const button = card?.querySelector<HTMLButtonElement>(`button[aria-keyshortcuts=${key}]:not(:disabled)`);
      if (button != null) {
        event.preventDefault();
        button.click();
      }
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [room]);
}
