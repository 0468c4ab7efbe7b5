// All open questions of a thread, at the end of its messages. Owns the focus and the announcements for screen readers.
import { Hand } from "./icons.tsx";
import { type ReactNode, useRef } from "react";
import { announcementOf } from "../sentences.ts";
import { type CardHost, CardHostProvider, type Style, useWords } from "../thread.tsx";
import { useKnown } from "../tools.ts";
import { isWaiting } from "../view.ts";
import { ToolCard } from "./card.tsx";
import { useCardFocus } from "./focus.ts";
import { Button } from "./frame.tsx";

export function CardList({ host, ...style }: Style & { host: CardHost }): ReactNode {
  return <CardHostProvider host={host} {...style}><OpenCards host={host} /></CardHostProvider>;
}

function OpenCards({ host }: { host: CardHost }): ReactNode {
  const list = useRef<HTMLDivElement>(null);
  const words = useWords();
  const { views } = useKnown(host.cards.filter(({ call }) => call.phase !== "settled"), host);
  const waiting = views.filter(isWaiting);
  useCardFocus(list, waiting);
  return (
    <div ref={list} className="fh-cards">
      {waiting.length > 0 && <Needed count={waiting.filter(({ state }) => state.name !== "sending").length} />}
      <p className="fh-hidden" aria-live="polite">{waiting.map((view) => announcementOf(view, words)).join(" ")}</p>
      {views.map((view) => <ToolCard key={view.call.id} view={view} />)}
      <ConnectionLine host={host} />
    </div>
  );
}

/** While the last answer is being sent, no more answers are needed; the line stays, so that nothing moves. */
function Needed({ count }: { count: number }): ReactNode {
  const words = useWords();
  return (
    <p className="fh-needed">
      <Hand size={15} aria-hidden="true" />
      <strong>{count > 0 ? words.needed(count) : words.sendingAnswer}</strong>
      {count > 0 && <span>{words.neededNext}</span>}
    </p>
  );
}

export function ConnectionLine({ host: { connection, retryNow } }: { host: CardHost }): ReactNode {
  const words = useWords();
  if (connection.state !== "lost") {
    return null;
  }
  return (
    <p className="fh-lost fh-note fh-amber" role="status">
      <span>{words.connectionLost}</span>
      <Button look="quiet" onClick={retryNow}>{words.resumeNow}</Button>
    </p>
  );
}
