// All open questions of a thread, whole, at the end of its talk. Owns the focus and what is announced.
import { type ReactNode, useEffect, useRef } from "react";
import { CardHostProvider, type CardHost } from "../thread.tsx";
import { isWaiting, questionOf } from "../view.ts";
import { ToolCard } from "./card.tsx";
import { Button } from "./frame.tsx";

const CONTROLS = "button:not(:disabled), input:not([hidden]):not(:disabled), select:not(:disabled), textarea:not(:disabled), [role=radio]:not(:disabled)";

export function CardList({ host }: { host: CardHost }): ReactNode {
  const list = useRef<HTMLDivElement>(null);
  const open = host.cards.filter(({ call }) => call.phase !== "settled");
  const waiting = open.filter(isWaiting);
  const first = waiting[0]?.call.id;
  useEffect(() => {
    if (first !== undefined && list.current !== null && isFocusFree(list.current)) {
      list.current.querySelector<HTMLElement>(`[data-call="${CSS.escape(first)}"]`)?.querySelector<HTMLElement>(CONTROLS)?.focus();
    }
  }, [first]);
  const needed = waiting.length === 1 ? "1 answer needed" : `${waiting.length} answers needed`;
  return (
    <CardHostProvider host={host}>
      <div ref={list} className="fh-cards">
        <p className="fh-needed" hidden={waiting.length === 0}>{needed}</p>
        <p className="fh-hidden" aria-live="polite">{waiting.map(({ call }) => questionOf(call)).join(". ")}</p>
        {open.map((view) => <ToolCard key={view.call.id} view={view} />)}
        <ConnectionLine host={host} />
      </div>
    </CardHostProvider>
  );
}

export function ConnectionLine({ host: { state, thread } }: { host: CardHost }): ReactNode {
  if (state.connection.state !== "lost") {
    return null;
  }
  return (
    <p className="fh-lost fh-note fh-amber" role="status">
      <span>Connection lost. Trying again.</span>
      <Button look="quiet" onClick={() => thread.retryNow()}>Resume now</Button>
    </p>
  );
}

/** Whoever is writing, or is in another card, is not moved. */
function isFocusFree(list: HTMLElement): boolean {
  const active = document.activeElement;
  const isWriting = (active instanceof HTMLInputElement || active instanceof HTMLTextAreaElement) && active.value !== "" && !active.disabled;
  return !isWriting && !(active !== null && list.contains(active) && !(active as HTMLButtonElement).disabled);
}
