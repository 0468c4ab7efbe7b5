// The header of a chat: title, state of its run, model, and the link to the Inspector.
import { ChartNoAxesGantt, Menu, Unplug, Zap } from "lucide-react";
import { type ReactNode, useSyncExternalStore } from "react";
import { SIGN_IN } from "../server.ts";
import { useAbout } from "./about.ts";
import type { Conversation } from "./conversation.ts";
import { IconButton, Pill, PLAIN, runHref, timeOf, type Tone } from "./parts.tsx";
import { isUnderWay, type RunState, STATE_WORDS } from "./run-state.ts";
import { useIsConnected, useSite } from "./site.ts";
import { fill, useWords } from "./words.ts";

const TONES: Readonly<Record<RunState, Tone>> = {
  New: "grey",
  Thinking: "blue",
  Running: "blue",
  "Waiting for you": "amber",
  Parked: "amber",
  Done: "green",
  Stopped: "grey",
  Failed: "red",
};

interface TopBarProps {
  readonly title: string;
  readonly talk?: Conversation;
  readonly onMenu: () => void;
}

/** The state of the run; unknown while the server cannot be reached. */
function StatePill({ state, until }: { state: Exclude<RunState, "New">; until: number | undefined }): ReactNode {
  const words = useWords();
  const { wasLive } = useSite();
  const isOut = useSyncExternalStore(SIGN_IN.subscribe, () => SIGN_IN.isOut);
  const isLost = !useIsConnected() && wasLive && !isOut && isUnderWay(state);
  if (isLost) {
    return <Pill tone="amber" dot>{words.stateLost}</Pill>;
  }
  return <Pill tone={TONES[state]} dot title={until === undefined ? undefined : fill(words.saved, { time: timeOf(until) })}>{words[STATE_WORDS[state]]}</Pill>;
}

export function TopBar({ title, talk, onMenu }: TopBarProps): ReactNode {
  const words = useWords();
  const about = useAbout();
  const model = talk === undefined ? undefined : about?.model;
  const runId = about?.inspector === false ? undefined : talk?.runId;
  const pullThePlug = about?.demo === true ? talk?.pullThePlug : undefined;
  return (
    <header className="@container flex h-[50px] shrink-0 items-center gap-3 border-b border-line px-4 lg:px-[22px]">
      <IconButton label={words.chats} className="-ml-2 min-[760px]:hidden" onClick={onMenu}><Menu size={18} aria-hidden="true" /></IconButton>
      <div className="flex min-w-0 items-center gap-3 @max-[500px]:flex-col @max-[500px]:items-start @max-[500px]:gap-0">
        <h1 className="max-w-full min-w-0 truncate font-semibold" title={title}>{title}</h1>
        {talk !== undefined && talk.state !== "New" && <StatePill state={talk.state} until={talk.until} />}
      </div>
      <span className="ml-auto flex shrink-0 items-center gap-2.5">
        {pullThePlug !== undefined && (
          <button type="button" aria-label={words.pullThePlug} className={`${PLAIN} max-[560px]:px-2`} onClick={pullThePlug} title={words.pullThePlugHint}>
            <Unplug size={14} aria-hidden="true" /> <span className="@max-[752px]:hidden">{words.pullThePlug}</span>
          </button>
        )}
        {model !== undefined && <span className="hidden items-center gap-1.5 rounded-full bg-grey-tint px-3 py-1 text-xs text-muted @min-[500px]:inline-flex"><Zap size={13} aria-hidden="true" /> {model}</span>}
        {runId !== undefined && (
          <a href={runHref(runId)} aria-label={words.inspectRun} className={`${PLAIN} max-[560px]:px-2`}><ChartNoAxesGantt size={14} aria-hidden="true" /> <span className="@max-[752px]:hidden">{words.inspectRun}</span></a>
        )}
      </span>
    </header>
  );
}
