// The list of runs: searched by words or state, newest first, older ones on request.
import type { InspectedRunRow, InspectedRuns } from "@farhand/protocol";
import { ChartNoAxesGantt, Search } from "lucide-react";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { type Answer, askOnce, useAsked } from "./ask.ts";
import { Missing, Nothing } from "./elements.tsx";
import { hrefOf } from "./route.ts";
import { agoOf, hasFailure, noteOf, STATES, stateOf, toneOf } from "./words.ts";

const DOTS = { amber: "bg-amber", blue: "bg-accent", green: "bg-green", red: "bg-red", grey: "bg-muted" } as const;
const STILL_TYPING_MS = 180;

export function RunList({ chosen }: { chosen: string | undefined }): ReactNode {
  const [words, setWords] = useState("");
  const [state, setState] = useState("");
  const search = `/runs?limit=40${settled(words) === "" ? "" : `&search=${encodeURIComponent(words.trim())}`}${state === "" ? "" : `&state=${state}`}`;
  const quiet = useQuiet(search);
  const { answer } = useAsked<InspectedRuns>(quiet, 15_000);
  return (
    <nav aria-label="Runs" className="flex min-h-0 flex-1 flex-col">
      <div className="flex flex-col gap-2 p-3">
        <SearchBox words={words} onWords={setWords} />
        <label className="flex items-center gap-2 px-1 text-xs text-muted">
          Show
          <select value={state} onChange={({ target }) => setState(target.value)} className="min-w-0 flex-1 rounded-md border border-line bg-surface px-1.5 py-0.5 text-xs text-text">
            <option value="">all runs</option>
            {Object.entries(STATES).map(([each, { words: named }]) => <option key={each} value={each}>{named}</option>)}
          </select>
        </label>
      </div>
      <div className="relative min-h-0 flex-1 overflow-y-auto px-2 pb-4">
        <Rows key={quiet} answer={answer} search={quiet} chosen={chosen} hasWords={words !== "" || state !== ""} />
      </div>
    </nav>
  );
}

function settled(words: string): string {
  return words.trim();
}

/** The value once it has not changed for a moment, so that not every key press sends a request. */
function useQuiet(value: string): string {
  const [quiet, setQuiet] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setQuiet(value), STILL_TYPING_MS);
    return () => clearTimeout(timer);
  }, [value]);
  return quiet;
}

function SearchBox({ words, onWords }: { words: string; onWords: (words: string) => void }): ReactNode {
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const focus = (event: KeyboardEvent): void => {
      const typing = event.target instanceof HTMLElement && event.target.closest("input, textarea, select") !== null;
      if (event.key === "/" && !typing) {
        event.preventDefault();
        input.current?.focus();
      }
    };
    addEventListener("keydown", focus);
    return () => removeEventListener("keydown", focus);
  }, []);
  return (
    <div className="relative">
      <input ref={input} type="search" aria-label="Find a run or call" placeholder="Find a run or call" value={words} maxLength={200} onChange={({ target }) => onWords(target.value)} className="w-full rounded-lg border border-line bg-surface py-1.5 pr-9 pl-3 text-[13px] placeholder:text-muted" />
      {words === "" && <kbd aria-hidden="true" className="absolute top-1.5 right-2 rounded border border-line px-1.5 font-mono text-[11px] text-muted">/</kbd>}
    </div>
  );
}

function Rows({ answer, search, chosen, hasWords }: { answer: Answer<InspectedRuns>; search: string; chosen: string | undefined; hasWords: boolean }): ReactNode {
  const [older, setOlder] = useState<readonly InspectedRuns[]>([]);
  if (answer.state !== "here") {
    return <Missing answer={answer} icon={ChartNoAxesGantt} />;
  }
  const pages = [answer.value, ...older];
  const following = pages.at(-1)?.next;
  const runs = [...new Map(pages.flatMap(({ runs: each }) => each).toReversed().map((run) => [run.runId, run])).values()].toReversed();
  if (runs.length === 0 && following === undefined) {
    return <Nothing icon={hasWords ? Search : ChartNoAxesGantt}>{hasWords ? "No runs match." : "No runs yet. Send a message in the chat, and its run appears here."}</Nothing>;
  }
  const more = async (): Promise<void> => {
    const page = await askOnce<InspectedRuns>(`${search}&after=${following}`);
    setOlder((before) => (page === undefined ? before : [...before, page]));
  };
  return (
    <>
      <ul className="m-0 flex list-none flex-col gap-0.5 p-0">
        {runs.map((run) => <li key={run.runId}><RunItem run={run} isChosen={run.runId === chosen} /></li>)}
      </ul>
      {following !== undefined && <button type="button" onClick={() => void more()} className="mt-2 w-full rounded-lg py-1.5 text-[13px] text-muted hover:bg-sunken">Older runs</button>}
    </>
  );
}

function RunItem({ run, isChosen }: { run: InspectedRunRow; isChosen: boolean }): ReactNode {
  const look = isChosen ? "is-here border-line bg-surface shadow-soft" : "border-transparent hover:bg-sunken";
  return (
    <a href={hrefOf({ tab: "runs", runId: run.runId })} aria-current={isChosen ? "true" : undefined} className={`grid grid-cols-[8px_minmax(0,1fr)_auto] items-baseline gap-x-3 rounded-xl border px-2.5 py-2 no-underline ${look}`}>
      <span aria-hidden="true" className={`mt-[7px] size-[7px] self-start rounded-full forced-color-adjust-none ${DOTS[toneOf(run)]}`} />
      <span className="line-clamp-2 font-medium wrap-anywhere">{run.title || "A run without words"}</span>
      <span className="text-xs text-muted tabular-nums">{agoOf(run.startedAt, Date.now())}</span>
      <span className="sr-only">{stateOf(run.state).words}. </span>
      <span className={`col-span-2 col-start-2 truncate text-xs ${hasFailure(run) ? "text-red" : "text-muted"}`}>{noteOf(run)}</span>
    </a>
  );
}
