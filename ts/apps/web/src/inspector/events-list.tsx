// Events as rows: time, kind, a short text; a click shows the whole event.
import type { InspectedEvent } from "@farhand/protocol";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { Json } from "./elements.tsx";
import { iconOfEvent, toneOfEvent } from "./icons.tsx";
import { hrefOf } from "./route.ts";

export function EventLines({ events, isFollowing }: { events: readonly InspectedEvent[]; isFollowing: boolean }): ReactNode {
  const [open, setOpen] = useState<number>();
  const list = useRef<HTMLOListElement>(null);
  const last = events.at(-1)?.seq;
  useEffect(() => {
    if (isFollowing && open === undefined) {
      list.current?.scrollTo({ top: list.current.scrollHeight });
    }
  }, [last, isFollowing, open]);
  return (
    <ol ref={list} tabIndex={0} aria-label="Events" className="relative m-0 max-h-[280px] list-none overflow-y-auto p-0 py-1.5">
      {events.map((event) => <EventLine key={event.seq} event={event} isOpen={open === event.seq} onToggle={() => setOpen((before) => (before === event.seq ? undefined : event.seq))} />)}
    </ol>
  );
}

function EventLine({ event, isOpen, onToggle }: { event: InspectedEvent; isOpen: boolean; onToggle: () => void }): ReactNode {
  const Icon = iconOfEvent(event);
  return (
    <li>
      <button type="button" aria-expanded={isOpen} onClick={onToggle} className="grid w-full grid-cols-[62px_22px_minmax(110px,158px)_minmax(0,1fr)] items-center gap-x-2 max-[620px]:grid-cols-[62px_22px_minmax(0,1fr)] px-4 py-1 text-left font-mono text-xs hover:bg-sunken">
        <span className="text-muted tabular-nums">{momentOf(event)}</span>
        <Icon size={13} aria-hidden="true" className={toneOfEvent(event)} />
        <span className="truncate">{event.type}</span>
        <span className="truncate text-muted empty:hidden max-[620px]:col-start-3 max-[620px]:wrap-anywhere max-[620px]:whitespace-normal">{event.told}</span>
      </button>
      {isOpen && (
        <div className="flex flex-col gap-2 px-4 pt-1 pb-3">
          <Json value={event.data} />
          <Way event={event} />
        </div>
      )}
    </li>
  );
}

/** A link from an event to its run or call; the events of a run need none. */
function Way({ event: { runId, callId, at } }: { event: InspectedEvent }): ReactNode {
  if (at !== undefined || (runId === undefined && callId === undefined)) {
    return null;
  }
  const route = { tab: "runs" as const, ...(runId === undefined ? {} : { runId }), ...(callId === undefined ? {} : { callId }) };
  return <a href={hrefOf(route)} className="self-start text-[13px] text-tint-text underline underline-offset-2">{callId === undefined ? "Show the run" : "Show the call"}</a>;
}

export function momentOf({ at, happenedAt }: InspectedEvent): string {
  if (at !== undefined) {
    return at.toFixed(3).padStart(6, "0");
  }
  return happenedAt === undefined ? "" : new Date(happenedAt).toLocaleTimeString(undefined, { hour12: false });
}
