// The geometry of the waterfall and of its replay. Pure: seconds in, percentages out.
import type { InspectedMark, InspectedRow, InspectedSegment } from "@farhand/protocol";

/** How far the axis reaches: a little beyond the end, so that the last bar does not touch the edge. */
export function spanOf(seconds: number): number {
  return Math.max(seconds * 1.06, 0.05);
}

const NICE = [1, 2, 4, 5, 10];

/** About five marks at round moments, none at zero. */
export function ticksOf(span: number): readonly number[] {
  const raw = span / 6;
  const [base, sizes] = raw >= 60 ? timeSizes(raw) : [10 ** Math.floor(Math.log10(raw)), NICE];
  const step = base * (sizes.find((size) => base * size >= raw) ?? sizes.at(-1)!);
  const ticks: number[] = [];
  for (let number = 1; number * step < span * 0.97; number += 1) {
    ticks.push(Number((number * step).toPrecision(12)));
  }
  return ticks;
}

/** Minutes, hours and days are not counted in tens. */
function timeSizes(raw: number): [number, readonly number[]] {
  if (raw < 3_600) {
    return [60, [1, 2, 5, 10, 15, 30, 60]];
  }
  return raw < 86_400 ? [3_600, [1, 2, 3, 6, 12, 24]] : [86_400, [1, 2, 5, 10, 30]];
}

export interface Bar extends InspectedSegment {
  readonly left: number;
  readonly width: number;
  /** Drawn with stripes: still going, or lost on the way. */
  readonly isStriped: boolean;
}

/** `now` is where what has no end yet is drawn to. */
export function barsOf(row: InspectedRow, now: number, span: number): readonly Bar[] {
  return row.segments.map((segment) => ({
    ...segment,
    left: percent(segment.start, span),
    width: Math.max(0, percent((segment.end ?? now) - segment.start, span)),
    isStriped: segment.end === undefined || segment.lost === true,
  }));
}

export function percent(seconds: number, span: number): number {
  return (seconds / span) * 100;
}

/** The rows as they were at this moment of the run: what came later is not there, what ended later still goes. */
export function rowsAt(rows: readonly InspectedRow[], at: number): readonly InspectedRow[] {
  return rows.filter(({ start }) => start <= at).map((row) => {
    const segments = row.segments
      .filter(({ start }) => start <= at)
      .map(({ end, ...rest }) => (end === undefined || end > at ? rest : { ...rest, end }));
    const { end, outcome, ...begun } = row;
    return end === undefined || end > at ? { ...begun, segments } : { ...row, segments };
  });
}

/** Seconds of a run for one second of its replay: nobody waits longer than a dozen. */
export function paceOf(seconds: number): number {
  return Math.max(1, seconds / 12);
}

export interface Band {
  readonly kind: "lost" | "paused";
  readonly from: number;
  /** Undefined: it is still so. */
  readonly to?: number;
}

/** A run that is saved needs no connection. */
const ENDS: Readonly<Record<"lost" | "paused", readonly string[]>> = { lost: ["resumed", "paused"], paused: ["continued"] };

/** Stretches without a connection, and those in which the run was saved: from one mark to the one that ends it. */
export function bandsOf(marks: readonly InspectedMark[]): readonly Band[] {
  return marks.flatMap(({ kind, at }, number): Band[] => {
    if (kind !== "lost" && kind !== "paused") {
      return [];
    }
    const end = marks.slice(number + 1).find((mark) => ENDS[kind].includes(mark.kind));
    return [{ kind, from: at, ...(end === undefined ? {} : { to: end.at }) }];
  });
}

export function lengthOf(row: InspectedRow, now: number): number {
  return Math.max(0, (row.end ?? now) - row.start);
}
