// Waiting for facts, with a bound.
const LOOK_AGAIN_MS = 10;

/** Resolves when the fact is there; a look that throws is a fact that is not there yet. */
export async function until(
  fact: () => boolean | Promise<boolean>,
  name: string | (() => string),
  withinMs = 20_000,
): Promise<void> {
  const end = performance.now() + withinMs;
  let last: unknown = "it was never so";
  while (performance.now() < end) {
    try {
      if (await fact()) {
        return;
      }
    } catch (error) {
      last = error;
    }
    await new Promise((wake) => setTimeout(wake, LOOK_AGAIN_MS));
  }
  throw new Error(`waited ${withinMs} ms for ${typeof name === "string" ? name : name()}: ${String(last)}`);
}
