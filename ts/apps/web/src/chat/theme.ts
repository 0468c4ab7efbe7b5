// Light, dark, or the system's theme: the person's choice, stored in this browser.
import { useSyncExternalStore } from "react";
import { choiceOf, choose as keepChoice } from "../storage.ts";

export type Theme = "system" | "light" | "dark";

const KEPT = "farhand:theme";
const ORDER: readonly Theme[] = ["system", "light", "dark"];
const listeners = new Set<() => void>();

export function currentTheme(): Theme {
  return ORDER.find((each) => each === choiceOf(KEPT)) ?? "system";
}

/** Before the first paint, and when it is changed in another tab. */
export function followTheme(): void {
  apply();
  addEventListener("storage", ({ key }) => key === KEPT && apply());
}

export function useTheme(): [Theme, () => void] {
  const theme = useSyncExternalStore(subscribe, currentTheme);
  return [theme, () => choose(ORDER[(ORDER.indexOf(theme) + 1) % ORDER.length] ?? "system")];
}

function choose(theme: Theme): void {
  keepChoice(KEPT, theme === "system" ? undefined : theme);
  apply();
}

function apply(): void {
  const theme = currentTheme();
  theme === "system" ? document.documentElement.removeAttribute("data-theme") : document.documentElement.setAttribute("data-theme", theme);
  listeners.forEach((listener) => listener());
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}
