// All open questions of all chats, oldest first, with the same cards. Several can be allowed at once only if they are calls of the same
// tool and the person has selected each of them.
import type { OpenCall } from "@farhand/client";
import { AllowButton, type CardHost, CardHostProvider, ConnectionLine, isServerAway, type CardView, isAskedElsewhere, isWaiting, ToolCard, useAnyEdited, useCardFocus, useNow, useReadCalls, viewOf } from "@farhand/react";
import { Inbox as InboxIcon } from "lucide-react";
import { type ReactNode, useMemo, useRef, useState } from "react";
import { HTTP } from "../server.ts";
import { useCardWords } from "./card-words.ts";
import { hrefOf } from "./route.ts";
import { useCardConnection, useHands, useSite } from "./site.ts";
import { fill, useWords, type Words } from "./words.ts";

interface Question {
  readonly fact: OpenCall;
  readonly view: CardView;
}

export interface InboxProps {
  readonly calls: readonly OpenCall[];
  readonly isLoaded: boolean;
  /** The address of the link above a card. */
  readonly hrefFor?: (call: OpenCall) => string;
  readonly emptyWords?: string;
}

export function Inbox({ calls, isLoaded, hrefFor = chatOf, emptyWords }: InboxProps): ReactNode {
  const words = useWords();
  const { host, questions } = useInboxHost(calls);
  const room = useRef<HTMLDivElement>(null);
  useCardFocus(room, host.cards.filter(isWaiting));
  const [picked, setPicked] = useState<ReadonlySet<string>>(new Set());
  const chosen = questions.filter(({ fact, view }) => picked.has(fact.callId) && isWaiting(view));
  const pick = (id: string): void => setPicked((before) => new Set(before.has(id) ? [...before].filter((each) => each !== id) : [...before, id]));
  return (
    <CardHostProvider host={host} words={useCardWords()}>
      <div ref={room} className="mx-auto flex w-full max-w-[660px] flex-col gap-5 px-4 pt-8 pb-10">
        <p className="text-[13px] text-muted" role="status">{isLoaded ? countWords(questions.length, words) : words.looking}</p>
        {chosen.length > 1 && <Together questions={chosen} host={host} onDone={() => setPicked(new Set())} />}
        {questions.map((question) => (
          <div key={question.fact.callId} className="flex flex-col gap-2">
            <div className="flex items-center gap-3 text-[13px] text-muted">
              <a href={hrefFor(question.fact)} className="truncate underline-offset-2 hover:underline">{question.fact.title || words.outsideChat}</a>
              <span className="ml-auto shrink-0">{agoOf(Date.parse(question.fact.openedAt), words)}</span>
              {canJoin(question, questions) && (
                <label className="flex shrink-0 items-center gap-1.5"><input type="checkbox" className="accent-(--fh-accent)" checked={picked.has(question.fact.callId)} onChange={() => pick(question.fact.callId)} /> {words.pick}</label>
              )}
            </div>
            <ToolCard view={question.view} />
          </div>
        ))}
        <ConnectionLine host={host} />
        {isLoaded && questions.length === 0 && <Nothing>{emptyWords ?? words.caughtUp}</Nothing>}
      </div>
    </CardHostProvider>
  );
}

function chatOf({ threadId }: OpenCall): string {
  return hrefOf({ view: "chat", id: threadId });
}

function useInboxHost(calls: readonly OpenCall[]): { host: CardHost; questions: readonly Question[] } {
  const { hands, openPage } = useSite();
  const { deliveries, running } = useHands();
  const facts = useMemo(() => new Map(calls.map((call) => [call.callId, call])), [calls]);
  useNow(isAskedElsewhere(facts));
  const memory = { seenOpen: new Set<string>(), reasons: new Map<string, string>() };
  const questions = calls.map((fact): Question => {
    const named = { id: fact.callId, tool: fact.tool, input: fact.input };
    const call = fact.approvalId === undefined ? ({ ...named, phase: "ready" } as const) : ({ ...named, phase: "asking", approvalId: fact.approvalId } as const);
    return { fact, view: viewOf({ facts, running, deliveries, run: { state: "idle" } }, call, memory) };
  });
  const host: CardHost = {
    http: HTTP,
    cards: questions.map(({ view }) => view),
    connection: useCardConnection(),
    answer: (callId, outcome) => void hands.answer(callId, outcome),
    approve: (_callId, approvalId, decision) => void hands.approve(approvalId, decision),
    retry: (id) => hands.retry(id),
    discard: (id) => void hands.discard(id),
    retryNow: () => hands.retryNow(),
    openPage,
  };
  return { host, questions };
}

function canJoin({ fact }: Question, all: readonly Question[]): boolean {
  return fact.approvalId !== undefined && all.filter(({ fact: other }) => other.approvalId !== undefined && other.tool === fact.tool).length > 1;
}

function Together({ questions, host, onDone }: { questions: readonly Question[]; host: CardHost; onDone: () => void }): ReactNode {
  const words = useWords();
  const tools = new Set(questions.map(({ fact }) => fact.tool));
  const [tool = ""] = tools;
  const read = useReadCalls();
  const isRead = questions.every(({ fact }) => read.has(fact.callId));
  // calls that are allowed together run with their original inputs: an edited one has to be allowed on its own card
  const isEdited = useAnyEdited(questions.map(({ fact }) => fact.callId));
  const allow = (): void => {
    questions.forEach(({ fact }) => host.approve(fact.callId, fact.approvalId ?? "", { approved: true, scope: "once" }));
    onDone();
  };
  return (
    <div className="sticky top-2 z-10 flex flex-wrap items-center gap-3 rounded-card border border-line bg-surface px-4 py-3 shadow-soft" role="group" aria-label={words.picked}>
      {tools.size === 1 ? (
        <>
          <span className="text-[13px]">{fill(words.callsOf, { count: questions.length })}<code className="font-mono text-xs">{tool}</code></span>
          {(isEdited || !isRead) && <span className="text-[13px] text-muted">{isEdited ? words.editedApart : words.readFirst}</span>}
          <span className="ml-auto"><AllowButton disabled={!isRead || isEdited || isServerAway(host.connection)} onAllow={allow}>{fill(words.allowThese, { count: questions.length })}</AllowButton></span>
        </>
      ) : (
        <span className="text-[13px] text-muted">{words.sameToolOnly}</span>
      )}
    </div>
  );
}

function Nothing({ children }: { children: ReactNode }): ReactNode {
  return (
    <div className="flex flex-col items-center gap-3 py-16 text-muted">
      <InboxIcon size={28} strokeWidth={1.4} aria-hidden="true" />
      <p>{children}</p>
    </div>
  );
}

function countWords(count: number, words: Words): string {
  return count === 0 ? words.noQuestions : count === 1 ? words.oneQuestion : fill(words.manyQuestions, { count });
}

export function agoOf(at: number, words: Words, now: number = Date.now()): string {
  const minutes = Math.floor((now - at) / 60_000);
  if (minutes < 1) {
    return words.justNow;
  }
  if (minutes < 60) {
    return fill(words.minutesAgo, { count: minutes });
  }
  return minutes < 1_440 ? fill(words.hoursAgo, { count: Math.floor(minutes / 60) }) : fill(words.daysAgo, { count: Math.floor(minutes / 1_440) });
}
