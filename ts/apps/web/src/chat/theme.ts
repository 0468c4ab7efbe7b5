// Light, dark, or the system's theme: the person's choice, stored in this browser.
import { useSyncExternalStore } from "react";

export type Theme = "system" | "light" | "dark";

const KEPT = "farhand:theme";
const ORDER: readonly Theme[] = ["system", "light", "dark"];
const listeners = new Set<() => void>();

export function currentTheme(): Theme {
  try {
    return ORDER.find((each) => each === localStorage.getItem(KEPT)) ?? "system";
  } catch {
    return "system";
  }
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
  try {
    theme === "system" ? localStorage.removeItem(KEPT) : localStorage.setItem(KEPT, theme);
  } catch {
    return;
  }
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
