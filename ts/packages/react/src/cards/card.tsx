// One call as a card, in whichever state it is.
import { unreachable } from "@farhand/client";
import { type ReactNode, useState } from "react";
import { useCardHost, useNow } from "../thread.tsx";
import { type CardView, longTime } from "../view.ts";
import { questionOf, sentenceOf, titleOf } from "../words.ts";
import { ClipboardCard, LocationCard, OpenPageCard } from "./abilities.tsx";
import { useAnswer } from "./answer.ts";
import { ApprovalCard } from "./approval.tsx";
import { FileCard, PhotoCard } from "./files.tsx";
import { FormCard, TypedFields } from "./form.tsx";
import { Button, Frame, Note } from "./frame.tsx";
import { ColorCard, ConfirmCard, SelectCard, TextCard } from "./questions.tsx";
import { OpenForGood, Row, Details } from "./rows.tsx";
import { UnknownCard } from "./unknown.tsx";

export function ToolCard({ view }: { view: CardView }): ReactNode {
  const { state } = view;
  switch (state.name) {
    case "writing":
      return <Writing view={view} />;
    case "open":
    case "sending":
    case "parked":
      return <Question view={view} />;
    case "running":
      return <Running view={view} />;
    case "undelivered":
      return <Undelivered view={view} retryAt={state.retryAt} />;
    case "refused":
      return <Refused view={view} reason={state.reason} canRetry={state.canRetry} />;
    case "no-client":
      return <NoClient view={view} client={state.client} since={state.since} />;
    case "timed-out":
      return <TimedOut view={view} afterSec={state.afterSec} />;
    case "denied":
      return <Denied view={view} reason={state.reason} />;
    case "elsewhere":
    case "done":
    case "failed":
      return <Row view={view} />;
    default:
      return unreachable(state);
  }
}

const PLACES: Readonly<Record<string, string>> = { server: "Running on the server", client: "Running in another program" };

function Running({ view }: { view: CardView }): ReactNode {
  const { skip } = useAnswer(view);
  const isHere = view.executor === "frontend";
  const cancel = isHere ? <Button look="quiet" onClick={skip}>Cancel</Button> : undefined;
  return <Frame view={view} title={questionOf(view.call)} context={PLACES[view.executor] ?? "Running in this browser"} actions={cancel} />;
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
    case "form":
      return <FormCard view={view} />;
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

function Undelivered({ view, retryAt }: { view: CardView; retryAt: number }): ReactNode {
  const { retry, discard } = useCardHost();
  const id = answerId(view);
  const seconds = Math.max(0, Math.ceil((retryAt - useNow(true)) / 1_000));
  const actions = (
    <>
      <Button look="main" onClick={() => retry(id)}>Try now</Button>
      <Button look="quiet" onClick={() => discard(id)}>Change answer</Button>
    </>
  );
  return (
    <Frame view={view} title={titleOf(view.call)} context="Your answer did not reach the server" actions={actions}>
      <Note tone="amber">{`Still here and not lost. Trying again in ${seconds} s.`}</Note>
    </Frame>
  );
}

function Refused({ view, reason, canRetry }: { view: CardView; reason: string; canRetry: boolean }): ReactNode {
  const { retry, discard } = useCardHost();
  const id = answerId(view);
  const actions = (
    <>
      <Button look="main" onClick={() => discard(id)}>Change answer</Button>
      {canRetry && <Button look="quiet" onClick={() => retry(id)}>Try again</Button>}
    </>
  );
  return (
    <Frame view={view} title={titleOf(view.call)} context="The server did not take your answer" actions={actions}>
      <Note tone="red">{reason}</Note>
    </Frame>
  );
}

function answerId({ call }: CardView): string {
  return call.phase === "asking" ? call.approvalId : call.id;
}

function NoClient({ view, client, since }: { view: CardView; client: string; since: number }): ReactNode {
  const { skip } = useAnswer(view);
  const [how, setHow] = useState<"asked" | "waiting" | "here">("asked");
  const seconds = Math.max(0, (useNow(true) - since) / 1_000);
  if (how === "here") {
    return <UnknownCard view={view} />;
  }
  const actions = (
    <>
      {how === "asked" && <Button onClick={() => setHow("waiting")}>Wait</Button>}
      <Button onClick={() => setHow("here")}>Run here</Button>
      <Button look="quiet" onClick={skip}>Skip</Button>
    </>
  );
  const context = `“${client}” has not been seen for ${longTime(seconds)}`;
  return (
    <Frame view={view} title={`${sentenceOf(view.call.tool)}: needs another program`} context={context} actions={actions}>
      {how === "waiting" && <p>It runs there as soon as that program is back.</p>}
    </Frame>
  );
}

function TimedOut({ view, afterSec }: { view: CardView; afterSec: number | undefined }): ReactNode {
  const { say } = useCardHost();
  const waited = afterSec === undefined ? "The assistant went on without an answer" : `The assistant waited ${afterSec} s and went on`;
  const actions = (
    <>
      {say !== undefined && <Button onClick={() => say("Please ask me again.")}>Ask me again</Button>}
      <OpenForGood view={view} />
    </>
  );
  return <Frame view={view} title="Too late to answer" context={waited} actions={actions}>{view.kind === "form" ? <TypedFields view={view} /> : undefined}</Frame>;
}

function Denied({ view, reason }: { view: CardView; reason: string }): ReactNode {
  const context = reason === "" ? "You said no" : `You said no: “${reason}”`;
  return (
    <Frame view={view} title={`${sentenceOf(view.call.tool)}: not done`} context={context}>
      <details className="fh-fold">
        <summary>Show details</summary>
        <Details view={view} />
      </details>
    </Frame>
  );
}
