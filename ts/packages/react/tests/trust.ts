// Presses of a person. The page library of the tests does not tell them from those of a script, as every browser does.

export function pressesAre(whose: "a person's" | "a script's"): void {
  Object.defineProperty(Event.prototype, "isTrusted", { configurable: true, get: () => whose === "a person's" });
}
