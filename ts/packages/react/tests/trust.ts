// Makes presses count as a person's. The DOM library of the tests does not distinguish them from those of scripts, as browsers do.

export function pressesAre(whose: "a person's" | "a script's"): void {
  Object.defineProperty(Event.prototype, "isTrusted", { configurable: true, get: () => whose === "a person's" });
}
