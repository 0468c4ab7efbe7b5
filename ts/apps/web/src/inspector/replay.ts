// Replays a run from its records: nothing is requested, nothing runs.
import { useEffect, useState } from "react";
import { paceOf } from "./chart.ts";

export interface Replay {
  /** The current position, in seconds of the run; undefined when nothing is replayed. */
  readonly at: number | undefined;
  readonly start: (from: number) => void;
  readonly stop: () => void;
}

const FRAME_MS = 16;
/** Steps instead of motion, for `prefers-reduced-motion`. */
const PICTURE_MS = 700;

export function useReplay(runId: string | undefined, seconds: number): Replay {
  const [at, setAt] = useState<number>();
  const isPlaying = at !== undefined;
  useEffect(() => setAt(undefined), [runId]);
  useEffect(() => {
    if (!isPlaying) {
      return undefined;
    }
    let last = performance.now();
    const play = (): void => {
      const now = performance.now();
      const passed = ((now - last) / 1000) * paceOf(seconds);
      last = now;
      setAt((before) => (before === undefined || before + passed >= seconds ? undefined : before + passed));
    };
    const timer = setInterval(play, matchMedia("(prefers-reduced-motion: reduce)").matches ? PICTURE_MS : FRAME_MS);
    return () => clearInterval(timer);
  }, [isPlaying, seconds]);
  return { at, start: setAt, stop: () => setAt(undefined) };
}
