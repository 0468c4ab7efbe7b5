// One call as a card, in whichever state it is.
import { openable, unreachable } from "@farhand/client";
import type { ReactNode } from "react";
import { useCardHost, useNow } from "../thread.tsx";
import { type CardView, questionOf, sentenceOf, timeLeft } from "../view.ts";
import { ClipboardCard, inTab, LocationCard, OpenPageCard } from "./abilities.tsx";
import { useAnswer } from "./answer.ts";
import { ApprovalCard } from "./approval.tsx";
import { FileCard, PhotoCard } from "./files.tsx";
import { Button, Frame, Note, OutcomeIcon } from "./frame.tsx";
import { ColorCard, ConfirmCard, SelectCard, TextCard } from "./questions.tsx";
import { UnknownCard } from "./unknown.tsx";

export function ToolCard({ view }: { view: CardView }): ReactNode {
  const { state } = view;
  switch (state.name) {
    case "writing":
      return <Writing view={view} />;
    case "open":
    case "sending":
      return <OpenCard view={view} />;
    case "parked":
      return <OpenCard view={view} note={<Parked deadline={state.deadline} />} />;
    case "running":
      return <Frame view={view} title={questionOf(view.call)} context={PLACES[view.executor] ?? "Running in this browser"} />;
    case "undelivered":
      return <Undelivered view={view} retryAt={state.retryAt} />;
    case "refused":
      return <Refused view={view} reason={state.reason} />;
    case "no-client":
      return <NoClient view={view} />;
    case "timed-out":
      return <TimedOut view={view} afterSec={state.afterSec} />;
    case "denied":
      return <Frame view={view} title={`${sentenceOf(view.call.tool)}: not done`} context={state.reason === "" ? "You said no" : `You said no: “${state.reason}”`} />;
    case "elsewhere":
      return <Row view={view} words="Answered in another tab" ok />;
    case "done":
      return <Row view={view} words={state.words} ok />;
    case "failed":
      return <Row view={view} words={state.words} ok={false} />;
    default:
      return unreachable(state);
  }
}

const PLACES: Readonly<Record<string, string>> = { server: "Running on the server", client: "Running in another program" };

function OpenCard({ view, note }: { view: CardView; note?: ReactNode }): ReactNode {
  return (
    <>
      <Question view={view} />
      {note}
    </>
  );
}

function Question({ view }: { view: CardView }): ReactNode {
  switch (view.kind) {
    case "confirm":
      return <ConfirmCard view={view} />;
    case "text":
      return <TextCard view={view} />;
    case "select":
      return <SelectCard view={view} />;
    case "file":
      return <FileCard view={view} />;
    case "photo":
      return <PhotoCard view={view} />;
    case "location":
      return <LocationCard view={view} />;
    case "open_page":
      return <OpenPageCard view={view} />;
    case "clipboard":
      return <ClipboardCard view={view} />;
    case "color":
      return <ColorCard view={view} />;
    case "approval":
      return <ApprovalCard view={view} />;
    case "unknown":
      return <UnknownCard view={view} />;
    default:
      return unreachable(view.kind);
  }
}

function Writing({ view }: { view: CardView }): ReactNode {
  return (
    <Frame view={view} title={sentenceOf(view.call.tool)} context="The assistant is still writing the question">
      <span className="fh-bar" aria-hidden="true" />
      <span className="fh-bar fh-short" aria-hidden="true" />
    </Frame>
  );
}

function Parked({ deadline }: { deadline: number | undefined }): ReactNode {
  const now = useNow(true);
  return <p className="fh-saved">{`Saved. Answer any time${deadline === undefined ? "" : ` in the next ${timeLeft(deadline, now)}`}`}</p>;
}

function Undelivered({ view, retryAt }: { view: CardView; retryAt: number }): ReactNode {
  const { thread } = useCardHost();
  const id = answerId(view);
  const seconds = Math.max(0, Math.ceil((retryAt - useNow(true)) / 1_000));
  const actions = (
    <>
      <Button look="main" onClick={() => thread.retry(id)}>Try now</Button>
      <Button look="quiet" onClick={() => void thread.discard(id)}>Change answer</Button>
    </>
  );
  return (
    <Frame view={view} title={questionOf(view.call)} context="Your answer did not reach the server" actions={actions}>
      <Note tone="amber">{`Still here and not lost. Trying again in ${seconds} s.`}</Note>
    </Frame>
  );
}

function Refused({ view, reason }: { view: CardView; reason: string }): ReactNode {
  const { thread } = useCardHost();
  const id = answerId(view);
  const actions = (
    <>
      <Button look="main" onClick={() => void thread.discard(id)}>Change answer</Button>
      <Button look="quiet" onClick={() => thread.retry(id)}>Try again</Button>
    </>
  );
  return (
    <Frame view={view} title={questionOf(view.call)} context="The server did not take your answer" actions={actions}>
      <Note tone="red">{reason}</Note>
    </Frame>
  );
}

function answerId({ call }: CardView): string {
  return call.phase === "asking" ? call.approvalId : call.id;
}

function NoClient({ view }: { view: CardView }): ReactNode {
  const { skip } = useAnswer(view);
  return (
    <Frame view={view} title={`${sentenceOf(view.call.tool)}: waiting for another program`} context={`“${view.call.tool}” runs in a program that has not answered yet`} actions={<Button look="quiet" onClick={skip}>Skip</Button>} />
  );
}

function TimedOut({ view, afterSec }: { view: CardView; afterSec: number | undefined }): ReactNode {
  const { thread } = useCardHost();
  const again = <Button onClick={() => thread.send("Please ask me again.")}>Ask me again</Button>;
  const waited = afterSec === undefined ? "The assistant went on without an answer" : `The assistant waited ${afterSec} s and went on`;
  return (
    <Frame view={view} title="Too late to answer" context={waited} actions={<>{again}<OpenForGood view={view} /></>} />
  );
}

/** A call that is over, in one line; a click unfolds what went in and what came out. */
function Row({ view, words, ok }: { view: CardView; words: string; ok: boolean }): ReactNode {
  const { call, kind, state } = view;
  const told = call.phase === "settled" ? { input: call.input, outcome: call.outcome } : {};
  return (
    <div className="fh-row" data-kind={kind} data-state={state.name} data-call={call.id}>
      <details>
        <summary>
          <OutcomeIcon ok={ok} />
          <span className="fh-title">{questionOf(call)}</span>
          <span className="fh-context">{words}</span>
        </summary>
        <pre className="fh-json">{JSON.stringify(told, undefined, 2)}</pre>
      </details>
      <OpenForGood view={view} />
    </div>
  );
}

/** A press passes the rules for pop-ups that a script does not: the button stays when the call is over. */
function OpenForGood({ view: { call } }: { view: CardView }): ReactNode {
  const { openPage } = useCardHost();
  const text = call.phase === "settled" ? (call.input as { url?: unknown } | null)?.url : undefined;
  const url = typeof text === "string" ? openable(text) : undefined;
  if (url === undefined) {
    return null;
  }
  return <Button look="quiet" aria-label={`Open ${url.host}`} onClick={() => void (openPage ?? inTab)(url)}>Open</Button>;
}
