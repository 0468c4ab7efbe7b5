// The messages and finished calls of a chat, and the open questions at its end.
import { CardHostProvider, CardList, Note, ToolCard } from "@farhand/react";
import { ArrowDown } from "lucide-react";
import { type ReactNode, useCallback, useRef } from "react";
import type { UIMessage } from "ai";
import { useAbout } from "./about.ts";
import { useCardWords } from "./card-words.ts";
import type { Conversation } from "./conversation.ts";
import { Answer, Said } from "./message.tsx";
import { PLAIN, runHref } from "./parts.tsx";
import { STATE_WORDS } from "./run-state.ts";
import { useStickyEnd } from "./scroll.ts";
import { fill, useWords, type Words } from "./words.ts";

export function Talk({ talk }: { talk: Conversation }): ReactNode {
  const words = useWords();
  const about = useAbout();
  const { end, isAway, jump } = useStickyEnd(talk);
  const edit = useSteady(talk.edit);
  const lastId = talk.messages.at(-1)?.id;
  const isOver = (message: UIMessage): boolean => message.id !== lastId || talk.regenerate !== undefined;
  return (
    <CardHostProvider host={talk.host} words={useCardWords()}>
      <div className="mx-auto flex min-h-full w-full max-w-[660px] flex-col gap-4 px-4 pt-5 pb-6">
        {talk.messages.map((message) =>
          message.role === "user" ? (
            <Said key={message.id} message={message} edit={edit} />
          ) : (
            <Answer key={message.id} message={message} views={talk.views} isLast={message.id === lastId} isOver={isOver(message)} regenerate={message.id === lastId ? talk.regenerate : undefined} />
          ))}
        {talk.state === "Thinking" && talk.host.connection.state !== "lost" && <Thinking />}
        {talk.error !== undefined && talk.state === "Failed" && (
          <div className="mt-2 flex flex-col items-start gap-3">
            <Note tone="red" code={talk.error.code}>{talk.error.message}</Note>
            <span className="flex flex-wrap gap-2">
              <button type="button" className={PLAIN} onClick={talk.tryAgain}>{words.tryAgain}</button>
              {talk.runId !== undefined && about?.inspector !== false && <a className={PLAIN} href={runHref(talk.runId)}>{words.seeWhatHappened}</a>}
            </span>
          </div>
        )}
        {talk.state === "Stopped" && <p className="mt-2 text-[13px] text-muted" role="status">{stoppedWords(talk, words)}</p>}
        {talk.lateForms.map((view) => <ToolCard key={view.call.id} view={view} />)}
        <CardList host={talk.host} />
        <div ref={end} />
        {isAway && (
          <button type="button" onClick={jump} className={`${PLAIN} sticky bottom-3 mt-auto self-center rounded-full! shadow-soft`}>
            <ArrowDown size={14} aria-hidden="true" /> {words.jump}
          </button>
        )}
      </div>
      <p className="sr-only" role="status">{talk.state === "New" ? "" : fill(words.theAssistant, { state: words[STATE_WORDS[talk.state]] })}</p>
    </CardHostProvider>
  );
}

/** The same function while there is one, so that unchanged messages are not rendered again. */
function useSteady(edit: Conversation["edit"]): Conversation["edit"] {
  const latest = useRef(edit);
  latest.current = edit;
  const steady = useCallback<NonNullable<Conversation["edit"]>>((message, text) => latest.current?.(message, text), []);
  return edit === undefined ? undefined : steady;
}

function stoppedWords({ isStopping, stopIsLate }: Conversation, words: Words): string {
  if (!isStopping) {
    return words.stopped;
  }
  return stopIsLate ? words.stopLate : words.stopping;
}

function Thinking(): ReactNode {
  return (
    <p className="flex items-center gap-1.5 py-1" aria-hidden="true">
      {[0, 1, 2].map((each) => <span key={each} className="thinking size-1.5 rounded-full bg-muted" />)}
    </p>
  );
}
