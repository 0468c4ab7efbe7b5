// One run: its header with the figures, its waterfall, its events.
import type { InspectedEvents, InspectedFigures, InspectedRun, InspectedTest } from "@farhand/protocol";
import { ArrowLeft, ChartNoAxesGantt, CodeXml, MessageSquare, Play, RotateCcw, Square } from "lucide-react";
import { type ReactNode, useEffect, useReducer, useRef, useState } from "react";
import { BASE } from "../base.ts";
import { Pill, PLAIN } from "../chat/parts.tsx";
import { askOnce, useAsked } from "./ask.ts";
import { Action, Card, Copy, Missing } from "./elements.tsx";
import { rowsAt } from "./chart.ts";
import { EventLines } from "./events-list.tsx";
import type { Replay } from "./replay.ts";
import { RerunDialog } from "./rerun-dialog.tsx";
import { hrefOf } from "./route.ts";
import { Waterfall } from "./waterfall.tsx";
import { count, extrasOf, figureOf, stateOf, tenthsOf, toneOf } from "./words.ts";

const LIVE = new Set(["running", "waiting"]);
const WHILE_LIVE_MS = 1_000;
const EVENTS = 400;

export function RunView({ shown, callId, replay }: { shown: InspectedRun; callId: string | undefined; replay: Replay }): ReactNode {
  const [rerunStep, setRerunStep] = useState<number>();
  const isLive = LIVE.has(shown.run.state);
  const isOpen = shown.run.endedAt === null;
  const now = useNow(shown, isLive);
  const moment = replay.at ?? now;
  const rows = replay.at === undefined ? shown.rows : rowsAt(shown.rows, replay.at);
  return (
    <div className="flex min-w-0 flex-col gap-4 p-4 lg:px-5">
      <Head shown={shown} now={now} replay={replay} onRerun={() => setRerunStep(1)} />
      <Waterfall shown={shown} rows={rows} now={moment} isLive={isOpen || replay.at !== undefined} chosen={callId} onRerun={setRerunStep} />
      <Events runId={shown.run.runId} isLive={isLive} until={replay.at} />
      {rerunStep !== undefined && <RerunDialog place={{ runId: shown.run.runId, step: rerunStep, prompt: shown.prompt }} onClose={() => setRerunStep(undefined)} />}
    </div>
  );
}

/** A link back to the list where the list is not shown next to the run. */
export function AllRuns(): ReactNode {
  return <a href={hrefOf({ tab: "runs" })} className="inline-flex items-center gap-1.5 text-[13px] text-muted min-[760px]:hidden"><ArrowLeft size={14} aria-hidden="true" /> All runs</a>;
}

/** The current time of the run, extrapolated between two responses. */
function useNow(shown: InspectedRun, isLive: boolean): number {
  const [, tick] = useReducer((before: number) => before + 1, 0);
  const seen = useRef({ shown, at: performance.now() });
  if (seen.current.shown !== shown) {
    seen.current = { shown, at: performance.now() };
  }
  useEffect(() => {
    const timer = isLive ? setInterval(tick, 100) : undefined;
    return () => clearInterval(timer);
  }, [isLive]);
  return isLive ? shown.now + (performance.now() - seen.current.at) / 1000 : shown.now;
}

function Head({ shown, now, replay, onRerun }: { shown: InspectedRun; now: number; replay: Replay; onRerun: () => void }): ReactNode {
  const { run } = shown;
  const { words, hint } = stateOf(run.state);
  const test = async (): Promise<string | undefined> => (await askOnce<InspectedTest>(`/runs/${run.runId}/test`))?.text;
  return (
    <header className="flex flex-col gap-3">
      <AllRuns />
      {/* the buttons wrap below a title that would otherwise be narrower than this */}
      <div className="flex flex-wrap items-start gap-x-3 gap-y-2">
        <div className="flex min-w-0 flex-[1_1_320px] flex-wrap items-center gap-x-3 gap-y-1">
          <h1 className="m-0 line-clamp-2 min-w-0 py-1 text-[17px] leading-6 font-semibold wrap-anywhere" title={run.title}>{run.title || "A run without words"}</h1>
          <Pill tone={toneOf(run)} dot title={hint}>{words}</Pill>
        </div>
        <span className="flex flex-wrap gap-2">
          <a href={`${BASE}/#/chat/${run.threadId}`} className={`${PLAIN} no-underline`}><MessageSquare size={14} aria-hidden="true" /> Open chat</a>
          <Action icon={RotateCcw} onClick={onRerun} disabled={shown.prompt == null} title="Starts a new run on a copy of this chat">Rerun</Action>
          {replay.at === undefined
            ? <Action icon={Play} onClick={() => replay.start(0)} disabled={shown.rows.length === 0} title="Replays the run as it happened; nothing is executed">Replay</Action>
            : <Action icon={Square} onClick={replay.stop}>Stop replay</Action>}
          <Copy icon={CodeXml} words="Copy as test" text={test} title="A pytest file; its first lines say what to install" />
        </span>
      </div>
      <p className="m-0 flex flex-wrap gap-x-5 font-mono text-xs break-all text-muted">
        <span>{run.runId}</span><span>chat {run.threadId}</span><span>model {shown.model}</span><span>store {shown.store}</span>
      </p>
      {run.error !== null && <p role="alert" className="m-0 rounded-lg bg-red-tint px-3 py-2 text-[13px] wrap-anywhere text-red">{run.error}</p>}
      <Figures shown={shown} now={now} />
    </header>
  );
}

function Figures({ shown, now }: { shown: InspectedRun; now: number }): ReactNode {
  const { figures, run } = shown;
  const grown = grownOf(shown, now);
  const spent = tenthsOf(grown.whole, [grown.model, grown.person, grown.client, grown.way, grown.server]);
  const parts: readonly (readonly [string, string])[] = [
    [figureOf(grown.whole), run.endedAt === null ? "so far" : "total"],
    ...["model", "waiting for people", "clients", "in transit", "server"].map((name, index) => [figureOf(spent[index] ?? 0), name] as const),
    [String(run.calls), run.calls === 1 ? "call" : "calls"],
    ...extrasOf(shown),
  ];
  return (
    <dl aria-label={`${figures.whole} milliseconds, ${count(run.calls, "call")}`} className="m-0 flex flex-wrap gap-x-6 gap-y-2">
      {parts.map(([figure, name]) => (
        <div key={name} className="flex flex-col-reverse">
          <dt className="text-xs text-muted">{name}</dt>
          <dd className="m-0 text-[15px] font-semibold tabular-nums">{figure}</dd>
        </div>
      ))}
    </dl>
  );
}

/** Between two responses the time is attributed to whoever is active now, so that the parts still add up. */
export function grownOf(shown: InspectedRun, now: number): InspectedFigures {
  const more = Math.max(0, Math.round(now * 1000) - shown.figures.whole);
  const order = ["model", "server", "client", "person", "way"] as const;
  const going = new Set(shown.rows.flatMap(({ segments }) => segments.filter(({ end }) => end === undefined).map(({ kind }) => kind)));
  const whose = order.find((kind) => going.has(kind)) ?? "server";
  return { ...shown.figures, whole: shown.figures.whole + more, [whose]: shown.figures[whose] + more };
}

function Events({ runId, isLive, until }: { runId: string; isLive: boolean; until: number | undefined }): ReactNode {
  const { answer } = useAsked<InspectedEvents>(`/runs/${runId}/events?limit=${EVENTS}`, isLive ? WHILE_LIVE_MS : undefined);
  if (answer.state !== "here") {
    return <Card label="Events of this run"><Missing answer={answer} icon={ChartNoAxesGantt} /></Card>;
  }
  const events = until === undefined ? answer.value.events : answer.value.events.filter(({ at = 0 }) => at <= until);
  return (
    <Card label="Events of this run">
      <div className="flex items-center gap-3 border-b border-line px-4 py-2.5">
        <h2 className="m-0 text-sm font-semibold">Events</h2>
        {isLive && <Pill tone="grey">following</Pill>}
        <span className="ml-auto text-xs text-muted">{events.length} of {answer.value.total}, this run</span>
      </div>
      <EventLines events={events} isFollowing={isLive || until !== undefined} />
    </Card>
  );
}

