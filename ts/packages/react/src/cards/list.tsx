// All open questions of a thread, whole, at the end of its talk. Owns the focus and what is announced.
import { Hand } from "lucide-react";
import { type ReactNode, useRef } from "react";
import { CardHostProvider, type CardHost } from "../thread.tsx";
import { isWaiting } from "../view.ts";
import { announcementOf } from "../words.ts";
import { ToolCard } from "./card.tsx";
import { useCardFocus } from "./focus.ts";
import { Button } from "./frame.tsx";

export function CardList({ host }: { host: CardHost }): ReactNode {
  const list = useRef<HTMLDivElement>(null);
  const open = host.cards.filter(({ call }) => call.phase !== "settled");
  const waiting = open.filter(isWaiting);
  useCardFocus(list, waiting);
  return (
    <CardHostProvider host={host}>
      <div ref={list} className="fh-cards">
        {waiting.length > 0 && <Needed count={waiting.length} />}
        <p className="fh-hidden" aria-live="polite">{waiting.map(announcementOf).join(" ")}</p>
        {open.map((view) => <ToolCard key={view.call.id} view={view} />)}
        <ConnectionLine host={host} />
      </div>
    </CardHostProvider>
  );
}

function Needed({ count }: { count: number }): ReactNode {
  return (
    <p className="fh-needed">
      <Hand size={15} aria-hidden="true" />
      <strong>{count === 1 ? "1 answer needed" : `${count} answers needed`}</strong>
      <span>{`The assistant goes on when ${count === 1 ? "it is" : count === 2 ? "both are" : "all are"} in.`}</span>
    </p>
  );
}

export function ConnectionLine({ host: { connection, retryNow } }: { host: CardHost }): ReactNode {
  if (connection.state !== "lost") {
    return null;
  }
  return (
    <p className="fh-lost fh-note fh-amber" role="status">
      <span>Connection lost. Trying again.</span>
      <Button look="quiet" onClick={retryNow}>Resume now</Button>
    </p>
  );
}
