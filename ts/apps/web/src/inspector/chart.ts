// The geometry of the waterfall and of its replay. Pure: converts seconds to percentages.
import type { InspectedMark, InspectedRow, InspectedSegment } from "@farhand/protocol";

/** The length of the axis: a little more than the run, so that the last bar does not touch the edge. */
export function spanOf(seconds: number): number {
  return Math.max(seconds * 1.06, 0.05);
}

const NICE = [1, 2, 4, 5, 10];

/** About five ticks at round times, none at zero. */
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

/** The steps for this length; minutes, hours and days are not divided into tens. */
function timeSizes(raw: number): [number, readonly number[]] {
  if (raw < 3_600) {
    return [60, [1, 2, 5, 10, 15, 30, 60]];
  }
  return raw < 86_400 ? [3_600, [1, 2, 3, 6, 12, 24]] : [86_400, [1, 2, 5, 10, 30]];
}

export interface Bar extends InspectedSegment {
  readonly left: number;
  readonly width: number;
  /** Drawn with stripes: still in progress, or lost on the way. */
  readonly isStriped: boolean;
}

/** Segments without an end are drawn up to `now`. */
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

/** The rows as they were at this time of the run: later ones are missing, and those that ended later are still in progress. */
export function rowsAt(rows: readonly InspectedRow[], at: number): readonly InspectedRow[] {
  return rows.filter(({ start }) => start <= at).map((row) => {
    const segments = row.segments
      .filter(({ start }) => start <= at)
      .map(({ end, ...rest }) => (end === undefined || end > at ? rest : { ...rest, end }));
    const { end, outcome, ...begun } = row;
    return end === undefined || end > at ? { ...begun, segments } : { ...row, segments };
  });
}

/** How many seconds of the run are replayed per second: no replay takes longer than twelve seconds. */
export function paceOf(seconds: number): number {
  return Math.max(1, seconds / 12);
}

export interface Band {
  readonly kind: "lost" | "paused";
  readonly from: number;
  /** Undefined while it lasts. */
  readonly to?: number;
}

/** The marks that end a band. A stored run needs no connection, so a pause also ends a loss. */
const ENDS: Readonly<Record<"lost" | "paused", readonly string[]>> = { lost: ["resumed", "paused"], paused: ["continued"] };

/** The periods without a connection, and those in which the run was stored. */
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
