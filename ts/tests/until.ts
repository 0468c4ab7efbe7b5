// Waiting for facts, with a bound.
const LOOK_AGAIN_MS = 10;
/** A turn of this loop that took longer was spent waiting for a processor, and that is nobody's delay. */
const LONGEST_TURN_MS = 50;

/**
 * Resolves when the fact is there; a look that throws is a fact that is not there yet. The bound counts the turns of this
 * very loop: on a machine that gives it none, the others had none either.
 */
export async function until(
  fact: () => boolean | Promise<boolean>,
  name: string | (() => string),
  withinMs = 20_000,
): Promise<void> {
  let left = withinMs;
  let last: unknown = "it was never so";
  while (left > 0) {
    const began = performance.now();
    try {
      if (await fact()) {
        return;
      }
    } catch (error) {
      last = error;
    }
    await new Promise((wake) => setTimeout(wake, LOOK_AGAIN_MS));
    left -= Math.min(performance.now() - began, LONGEST_TURN_MS);
  }
  throw new Error(`waited ${withinMs} ms for ${typeof name === "string" ? name : name()}: ${String(last)}`);
}
