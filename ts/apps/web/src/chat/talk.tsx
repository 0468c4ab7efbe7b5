// What was said and done in a chat, and the questions that are open at its end.
import { CardHostProvider, CardList, type CardView, Note, Rows, ToolCard } from "@farhand/react";
import type { UIMessage } from "ai";
import { memo, type ReactNode, useEffect, useRef } from "react";
import { toolPartOf } from "./calls.ts";
import type { Conversation } from "./conversation.ts";
import { PLAIN, runHref } from "./parts.tsx";

export function Talk({ talk }: { talk: Conversation }): ReactNode {
  const end = useStickyEnd(talk);
  const lastId = talk.messages.at(-1)?.id;
  return (
    <CardHostProvider host={talk.host}>
      <div className="mx-auto flex w-full max-w-[660px] flex-col gap-4 px-4 pt-5 pb-6">
        {talk.messages.map((message) =>
          message.role === "user" ? <Said key={message.id} message={message} /> : <Answer key={message.id} message={message} views={talk.views} isLast={message.id === lastId} />)}
        {talk.state === "Thinking" && talk.host.connection.state !== "lost" && <Thinking />}
        {talk.error !== undefined && talk.state === "Failed" && (
          <div className="flex flex-col items-start gap-3">
            <Note tone="red">{talk.error.message}{talk.error.code !== undefined && <> <code className="font-mono text-xs">{talk.error.code}</code></>}</Note>
            <span className="flex flex-wrap gap-2">
              <button type="button" className={PLAIN} onClick={talk.tryAgain}>Try again</button>
              {talk.runId !== undefined && <a className={PLAIN} href={runHref(talk.runId)}>See what happened</a>}
            </span>
          </div>
        )}
        {talk.state === "Stopped" && <p className="text-[13px] text-muted" role="status">{stoppedWords(talk)}</p>}
        {talk.lateForms.map((view) => <ToolCard key={view.call.id} view={view} />)}
        <CardList host={talk.host} />
        <div ref={end} />
      </div>
      <p className="sr-only" role="status">{talk.state === "New" ? "" : `The assistant: ${talk.state}`}</p>
    </CardHostProvider>
  );
}

function stoppedWords({ isStopping, stopIsLate }: Conversation): string {
  if (!isStopping) {
    return "Stopped. Nothing more happens in this answer.";
  }
  return stopIsLate ? "Stopped here. The server does not answer; it is told as soon as it is back." : "Stopping.";
}

const Said = memo(function Said({ message }: { message: UIMessage }): ReactNode {
  return (
    <div className="flex justify-end pl-10">
      <p className="rounded-2xl min-w-0 rounded-br-md bg-tint px-4 py-2 wrap-anywhere whitespace-pre-wrap"><span className="sr-only">You: </span>{textOf(message)}</p>
    </div>
  );
});

function textOf({ parts }: UIMessage): string {
  return parts.map((part) => (part.type === "text" ? part.text : part.type === "file" ? `[${part.filename ?? "file"}]` : "")).join("\n").trim();
}

interface AnswerProps {
  readonly message: UIMessage;
  readonly views: Conversation["views"];
  readonly isLast: boolean;
}

/** Texts and finished calls in their order; what is open stands whole at the end of the talk. */
function Answer({ message, views, isLast }: AnswerProps): ReactNode {
  return (
    <div className="flex flex-col gap-4">
      {blocksOf(message, views).map((block) => {
        switch (block.kind) {
          case "text":
            return <p key={block.key} className="wrap-anywhere whitespace-pre-wrap">{block.text}</p>;
          case "thought":
            return <details key={block.key} className="text-[13px] text-muted"><summary className="w-fit cursor-pointer">Thought about it</summary><p className="mt-1 wrap-anywhere whitespace-pre-wrap">{block.text}</p></details>;
          case "calls":
            return <Finished key={block.key} views={block.views} isLast={isLast} />;
        }
      })}
    </div>
  );
}

const STAYS: ReadonlySet<string> = new Set(["denied", "timed-out"]);

/** Of the last answer, what was denied or came too late stays a card: there is something left to do. */
function Finished({ views, isLast }: { views: readonly CardView[]; isLast: boolean }): ReactNode {
  const cards = isLast ? views.filter(({ state }) => STAYS.has(state.name)) : [];
  const rows = views.filter((view) => !cards.includes(view));
  return (
    <>
      {rows.length > 0 && <Rows views={rows} />}
      {cards.map((view) => <ToolCard key={view.call.id} view={view} />)}
    </>
  );
}

type Block =
  | { readonly kind: "text" | "thought"; readonly key: string; readonly text: string }
  | { readonly kind: "calls"; readonly key: string; readonly views: CardView[] };

export function blocksOf(message: UIMessage, views: Conversation["views"]): readonly Block[] {
  const blocks: Block[] = [];
  message.parts.forEach((part, index) => {
    const key = `${message.id}-${index}`;
    const view = views.get(toolPartOf(part)?.toolCallId ?? "");
    const last = blocks.at(-1);
    if ((part.type === "text" || part.type === "reasoning") && part.text.trim() !== "") {
      blocks.push({ kind: part.type === "text" ? "text" : "thought", key, text: part.text.trim() });
    } else if (view?.call.phase === "settled" && last?.kind === "calls") {
      last.views.push(view);
    } else if (view?.call.phase === "settled") {
      blocks.push({ kind: "calls", key, views: [view] });
    }
  });
  return blocks;
}

function Thinking(): ReactNode {
  return (
    <p className="flex items-center gap-1.5 py-1" aria-hidden="true">
      {[0, 1, 2].map((each) => <span key={each} className="thinking size-1.5 rounded-full bg-muted" />)}
    </p>
  );
}

const NEAR_PX = 160;
/** What people scroll with, and for how long it goes on moving. */
const MOVES = ["wheel", "touchmove", "keydown", "pointerdown"] as const;
const MOVED_MS = 1_000;

/** Stays at the end while somebody is there; whoever scrolled up is left alone. */
function useStickyEnd(talk: Conversation): { current: HTMLDivElement | null } {
  const end = useRef<HTMLDivElement>(null);
  const isNear = useRef(true);
  useEffect(() => {
    const room = end.current?.closest("[data-scrolls]");
    let before = 0;
    let movedAt = Number.NEGATIVE_INFINITY;
    const move = (): void => void (movedAt = performance.now());
    const look = (): void => {
      const { scrollHeight, scrollTop, clientHeight } = room ?? { scrollHeight: 0, scrollTop: 0, clientHeight: 0 };
      // the event comes late, and also when what is shown grew or shrank: only a person who scrolls up leaves the end
      const isScrolledUp = scrollTop < before && performance.now() - movedAt < MOVED_MS;
      isNear.current = scrollHeight - scrollTop - clientHeight < NEAR_PX || (isNear.current && !isScrolledUp);
      before = scrollTop;
    };
    MOVES.forEach((kind) => addEventListener(kind, move, { passive: true }));
    room?.addEventListener("scroll", look, { passive: true });
    return () => {
      MOVES.forEach((kind) => removeEventListener(kind, move));
      room?.removeEventListener("scroll", look);
    };
  }, []);
  const count = talk.messages.length;
  useEffect(() => {
    isNear.current = true;
  }, [count, talk.id]);
  useEffect(() => {
    if (isNear.current) {
      end.current?.scrollIntoView({ block: "end" });
    }
  });
  return end;
}
