// Where the time went: one row for each model step and call, divided into the five kinds of waiting and working.
import type { InspectedMark, InspectedRow, InspectedRun } from "@farhand/protocol";
import { CircleSlash, CircleX, RotateCcw, TimerOff, Zap } from "lucide-react";
import type { CSSProperties, ReactNode } from "react";
import { Card } from "./elements.tsx";
import { type Band, bandsOf, barsOf, lengthOf, percent, spanOf, ticksOf } from "./chart.ts";
import { iconOfTool } from "./icons.tsx";
import { go, hrefOf } from "./route.ts";
import { costOf, durationOf, tokensOf } from "./words.ts";

const KINDS = {
  model: { words: "Model", colour: "bg-model" },
  server: { words: "Server tool", colour: "bg-server" },
  way: { words: "In transit", colour: "bg-way" },
  person: { words: "Waiting for a person", colour: "bg-person" },
  client: { words: "Running in a client", colour: "bg-client" },
} as const;

const GRID = "grid grid-cols-[minmax(120px,178px)_minmax(0,1fr)_78px]";

interface WaterfallProps {
  readonly shown: InspectedRun;
  readonly rows: readonly InspectedRow[];
  /** The time up to which it is drawn: now, or the position of a replay. */
  readonly now: number;
  readonly isLive: boolean;
  readonly chosen: string | undefined;
  readonly onRerun?: (step: number) => void;
}

export function Waterfall({ shown, rows, now, isLive, chosen, onRerun }: WaterfallProps): ReactNode {
  const span = spanOf(Math.max(shown.now, now));
  const ticks = ticksOf(span);
  const marks = (shown.marks ?? []).filter(({ at }) => at <= now);
  const bands = bandsOf(marks);
  return (
    <Card label="Waterfall">
      <Legend />
      <div className={`${GRID} border-y border-line text-xs text-muted`}>
        <span className="px-4 py-1.5">Step or call</span>
        <span className="relative" aria-hidden="true">
          {ticks.map((tick) => <span key={tick} className="absolute top-1.5 -translate-x-1/2 whitespace-nowrap tabular-nums max-[560px]:not-last:hidden" style={{ left: `${percent(tick, span)}%` }}>{tickWords(tick)}</span>)}
        </span>
        <span />
      </div>
      {rows.length === 0 && <p className="m-0 px-4 py-8 text-center text-muted">{shown.kept ? "Nothing has begun yet." : "The events of this run are no longer kept."}</p>}
      <ol className="relative m-0 list-none p-0">
        {rows.map((row, number) => (
          <li key={row.callId ?? `${row.step}-${number}`} className="border-b border-line last:border-0">
            <Line row={row} runId={shown.run.runId} now={now} span={span} ticks={ticks} marks={marks.filter(({ callId }) => callId !== undefined && callId === row.callId)} isChosen={row.callId !== undefined && row.callId === chosen} onRerun={onRerun} />
          </li>
        ))}
        {rows.length > 0 && bands.map((band) => (
          <li key={`${band.kind}-${band.from}`} aria-hidden="true" className={`${GRID} pointer-events-none absolute inset-0`}>
            <span />
            <span className="relative"><span className={`absolute inset-y-0 min-w-px border-x border-dashed ${BANDS[band.kind].look}`} style={{ left: `${percent(band.from, span)}%`, width: `${percent((band.to ?? now) - band.from, span)}%` }} /></span>
            <span />
          </li>
        ))}
        {isLive && rows.length > 0 && (
          <li aria-hidden="true" className={`${GRID} pointer-events-none absolute inset-0`}>
            <span />
            <span className="relative"><span className="absolute inset-y-0 w-0 border-l-[1.5px] border-dashed border-amber" style={{ left: `${percent(now, span)}%` }} /></span>
            <span />
          </li>
        )}
      </ol>
      {bands.length > 0 && (
        <ul aria-label="Interruptions" className="m-0 flex list-none flex-wrap gap-x-5 gap-y-1 border-t border-line px-4 py-2 text-xs text-muted">
          {bands.map((band) => <li key={`${band.kind}-${band.from}`} className="inline-flex items-center gap-2"><span aria-hidden="true" className={`h-3 w-4 border-x border-dashed ${BANDS[band.kind].look}`} />{bandWords(band)}</li>)}
        </ul>
      )}
    </Card>
  );
}

const BANDS = {
  lost: { words: "Connection lost", look: "border-red bg-red/12" },
  paused: { words: "Run saved while waiting", look: "border-amber bg-amber/10" },
} as const;

function bandWords({ kind, from, to }: Band): string {
  const until = to === undefined ? "until now" : `for ${durationOf(to - from)}`;
  return `${BANDS[kind].words} at ${durationOf(from)}, ${until}`;
}

function tickWords(seconds: number): string {
  return seconds < 1 ? `${Math.round(seconds * 1000)} ms` : seconds < 60 ? `${seconds} s` : durationOf(seconds);
}

function Legend(): ReactNode {
  return (
    <div className="flex flex-wrap gap-x-5 gap-y-1.5 px-4 py-2.5 text-xs text-muted">
      {Object.values(KINDS).map(({ words, colour }) => <span key={words} className="inline-flex items-center gap-2"><span aria-hidden="true" className={`size-2.5 rounded-[3px] forced-color-adjust-none ${colour}`} />{words}</span>)}
      <span className="inline-flex items-center gap-2"><span aria-hidden="true" className="h-3 w-0.5 rounded bg-green forced-color-adjust-none" />Answer stored</span>
    </div>
  );
}

interface LineProps {
  readonly row: InspectedRow;
  readonly runId: string;
  readonly now: number;
  readonly span: number;
  readonly ticks: readonly number[];
  readonly isChosen: boolean;
  /** Answers for this call that changed nothing. */
  readonly marks: readonly InspectedMark[];
  readonly onRerun: ((step: number) => void) | undefined;
}

function Line(props: LineProps): ReactNode {
  const { row, runId, now, isChosen, onRerun } = props;
  const length = durationOf(lengthOf(row, now));
  const content = (
    <>
      <Name row={row} onRerun={onRerun} />
      <Track {...props} />
      <span className="self-center pr-3.5 text-right text-xs whitespace-nowrap text-muted tabular-nums">{length}{row.cost !== undefined && <span className="block text-[11px]">{costOf(row.cost)}</span>}</span>
    </>
  );
  if (row.callId === undefined) {
    return <div className={`${GRID} min-h-[34px]`}>{content}</div>;
  }
  const route = { tab: "runs", runId, callId: row.callId } as const;
  return (
    <a href={hrefOf(route)} onClick={() => go(route)} aria-current={isChosen ? "true" : undefined} className={`${GRID} min-h-[34px] no-underline ${isChosen ? "bg-tint" : "hover:bg-sunken"}`}>
      {content}
      <span className="sr-only">, {storyOf(row, now)}{props.marks.length > 0 && `, ${repeatsOf(props.marks)}`}</span>
    </a>
  );
}

function Name({ row, onRerun }: { row: InspectedRow; onRerun: ((step: number) => void) | undefined }): ReactNode {
  const isModel = row.callId === undefined;
  const Icon = isModel ? Zap : iconOfTool(row);
  return (
    <span title={row.title} className={`group flex min-w-0 items-center gap-2.5 pr-2 ${isModel ? "pl-4" : "pl-8"}`}>
      <Icon size={14} className="shrink-0 text-muted" aria-hidden="true" />
      <span className="min-w-0 truncate text-[13px]">{isModel ? `Model, step ${row.step}` : row.tool}{row.inputTokens !== undefined && <span className="block truncate text-[11px] text-muted">{tokensOf(row.inputTokens, row.outputTokens ?? 0)}</span>}</span>
      <Ending outcome={row.outcome} />
      {isModel && onRerun !== undefined && (
        <button type="button" aria-label={`Rerun from step ${row.step}`} title={`Rerun from step ${row.step}`} onClick={() => onRerun(row.step)} className="ml-auto grid size-6 shrink-0 place-items-center rounded-md text-muted opacity-60 hover:bg-sunken hover:opacity-100 focus-visible:opacity-100"><RotateCcw size={13} aria-hidden="true" /></button>
      )}
    </span>
  );
}

/** An icon for a call that did not end well; the text is in the row and in its title. */
function Ending({ outcome }: { outcome: string | undefined }): ReactNode {
  if (outcome === undefined || outcome === "success") {
    return null;
  }
  const [Icon, colour] = outcome === "failure" ? [CircleX, "text-red"] as const : outcome === "timed_out" ? [TimerOff, "text-muted"] as const : [CircleSlash, "text-muted"] as const;
  return <span title={outcome.replace("_", " ")} className={`ml-auto shrink-0 ${colour}`}><Icon size={13} aria-hidden="true" /><span className="sr-only">{outcome.replace("_", " ")}</span></span>;
}

function Track({ row, now, span, ticks, marks }: LineProps): ReactNode {
  const bars = barsOf(row, now, span);
  const isAnswered = row.callId !== undefined && row.executor !== "server" && (row.outcome === "success" || row.outcome === "failure");
  return (
    <span className="relative border-x border-line" aria-hidden="true">
      {ticks.map((tick) => <span key={tick} className="absolute inset-y-0 w-px bg-line" style={{ left: `${percent(tick, span)}%` }} />)}
      {bars.map(({ kind, start, left, width, isStriped }, number) => (
        <span
          key={`${kind}-${start}`}
          title={KINDS[kind as keyof typeof KINDS]?.words}
          className={`absolute top-1/2 h-3.5 forced-color-adjust-none min-w-0.5 -translate-y-1/2 ${KINDS[kind as keyof typeof KINDS]?.colour ?? "bg-way"} ${isStriped ? "striped" : ""} ${number === 0 ? "rounded-l-[4px]" : ""} ${number === bars.length - 1 ? "rounded-r-[4px]" : ""}`}
          style={{ left: `${left}%`, width: `${width}%` }}
        />
      ))}
      {isAnswered && row.end !== undefined && <span className="absolute inset-y-2 ml-0.5 w-0.5 rounded bg-green forced-color-adjust-none" style={{ left: `${percent(row.end, span)}%` }} />}
      {marks.map(({ at, kind }) => <span key={`${kind}-${at}`} className="absolute inset-y-2 w-0.5 rounded bg-muted forced-color-adjust-none" style={{ left: `${percent(at, span)}%` }} />)}
      {marks.length > 0 && <span className="absolute top-1/2 max-w-full -translate-y-1/2 truncate pl-2 text-[11px] text-muted" style={labelPlace(marks, span)}>{repeatsOf(marks)}</span>}
    </span>
  );
}

/** To the right of the last mark or, at the right edge, to the left of the first. */
function labelPlace(marks: readonly InspectedMark[], span: number): CSSProperties {
  const at = percent(Math.max(...marks.map((mark) => mark.at)), span);
  return at < 70 ? { left: `${at}%` } : { right: `${101 - percent(Math.min(...marks.map((mark) => mark.at)), span)}%` };
}

function repeatsOf(marks: readonly InspectedMark[]): string {
  const conflicts = marks.filter(({ kind }) => kind === "conflict").length;
  const repeats = marks.length - conflicts;
  const told = [repeats > 0 ? `${repeats === 1 ? "repeat" : `${repeats} repeats`} ignored` : "", conflicts > 0 ? "another answer refused" : ""];
  return told.filter((words) => words !== "").join(", ");
}

/** The meaning of the colours as text, for screen readers. */
function storyOf(row: InspectedRow, now: number): string {
  const told = row.segments.map(({ kind, start, end }) => `${(KINDS[kind as keyof typeof KINDS]?.words ?? kind).toLowerCase()} ${durationOf((end ?? now) - start)}`);
  return [...told, row.outcome?.replace("_", " ") ?? "still going"].join(", ");
}
