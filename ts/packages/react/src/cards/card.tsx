// One call as a card, in any state.
import { unreachable } from "@farhand/client";
import { type ReactNode, useState } from "react";
import { useNow } from "../card-memory.ts";
import { draftsOf, questionKey } from "../drafts.ts";
import { lateWords, longTime, questionOf, refusalCode, refusalWords, shareIn, titleOf, toolTitle } from "../sentences.ts";
import { useCardHost, useOwnCard, useWords } from "../thread.tsx";
import { useKnown } from "../tools.ts";
import { type CardView, type Kind, mendsItself, type Refusal } from "../view.ts";
import { ClipboardCard, LocationCard, OpenPageCard } from "./abilities.tsx";
import { useAnswer } from "./answer.ts";
import { ApprovalCard } from "./approval.tsx";
import { FileCard, PhotoCard } from "./files.tsx";
import { FormCard, Typed } from "./form.tsx";
import { Button, Frame, Note } from "./frame.tsx";
import { ColorCard, ConfirmCard, SelectCard, TextCard } from "./questions.tsx";
import { OpenForGood, Row, Details } from "./rows.tsx";
import { UnknownCard } from "./unknown.tsx";

export function ToolCard({ view: given }: { view: CardView }): ReactNode {
  const known = useKnown([given], useCardHost());
  const view = known.views[0] ?? given;
  const { state } = view;
  // the schemas decide which card it gets: no other card is shown until they are loaded
  const isYetToBeKnown = useOwnCard(view) === undefined && view.kind === "unknown" && view.executor === "frontend" && view.tool === undefined && known.isAsking;
  switch (state.name) {
    case "writing":
      return <Writing view={view} />;
    case "open":
    case "sending":
    case "parked":
      return isYetToBeKnown ? <Writing view={view} /> : <Question view={view} />;
    case "running":
      return <Running view={view} />;
    case "undelivered":
      return <Undelivered view={view} retryAt={state.retryAt} />;
    case "refused":
      return <Refused view={view} refusal={state.refusal} />;
    case "no-client":
      return <NoClient view={view} client={state.client} since={state.since} />;
    case "timed-out":
      return <TimedOut view={view} afterSec={state.afterSec} />;
    case "denied":
      return <Denied view={view} reason={state.reason} />;
    case "elsewhere":
    case "done":
    case "failed":
    case "skipped":
    case "declined":
      return <Row view={view} />;
    default:
      return unreachable(state);
  }
}

function Running({ view }: { view: CardView }): ReactNode {
  const { skip } = useAnswer(view);
  const words = useWords();
  const context = view.executor === "server" ? words.runningOnServer : view.executor === "client" ? words.runningElsewhere : words.runningHere;
  const cancel = view.executor === "frontend" ? <Button look="quiet" onClick={skip}>{words.cancel}</Button> : undefined;
  const { progress } = view;
  return <Frame view={view} title={questionOf(view, words)} context={context} actions={cancel}>{progress === undefined ? undefined : <Progress name={questionOf(view, words)} text={progress} />}</Frame>;
}

/** The progress text, with a bar if it contains a fraction. */
function Progress({ name, text }: { name: string; text: string }): ReactNode {
  const share = shareIn(text);
  return (
    <>
      <p role="status">{text}</p>
      {share !== undefined && <progress className="fh-progress" max={1} value={share} aria-label={name} />}
    </>
  );
}

const CARDS: Readonly<Record<Kind, (card: { readonly view: CardView }) => ReactNode>> = {
  confirm: ConfirmCard,
  text: TextCard,
  select: SelectCard,
  file: FileCard,
  photo: PhotoCard,
  location: LocationCard,
  open_page: OpenPageCard,
  clipboard: ClipboardCard,
  color: ColorCard,
  form: FormCard,
  approval: ApprovalCard,
  unknown: UnknownCard,
};

function Question({ view }: { view: CardView }): ReactNode {
  const Own = useOwnCard(view);
  const { isOff, answer, skip } = useAnswer(view);
  if (Own !== undefined) {
    return <Own view={view} isOff={isOff} answer={answer} skip={skip} />;
  }
  const Card = CARDS[view.kind];
  return <Card view={view} />;
}

/** Tool names are for programs: a tool without a title shows none. */
function Writing({ view }: { view: CardView }): ReactNode {
  const { writing } = useWords();
  const title = view.title ?? view.tool?.title;
  return (
    <Frame view={view} title={title || writing} context={title ? writing : ""}>
      <span className="fh-bar" aria-hidden="true" />
      <span className="fh-bar fh-short" aria-hidden="true" />
    </Frame>
  );
}

function Undelivered({ view, retryAt }: { view: CardView; retryAt: number }): ReactNode {
  const { retry, discard } = useCardHost();
  const words = useWords();
  const id = answerId(view);
  const seconds = Math.max(0, Math.ceil((retryAt - useNow(true)) / 1_000));
  const actions = (
    <>
      <Button look="main" onClick={() => retry(id)}>{words.tryNow}</Button>
      <Button look="quiet" onClick={() => discard(id)}>{words.changeAnswer}</Button>
    </>
  );
  return (
    <Frame view={view} title={titleOf(view, words)} context={words.notDelivered} actions={actions}>
      <Note tone="amber">{words.retryIn(seconds)}</Note>
      {view.call.phase === "asking" && <p>{words.retryDecision}</p>}
    </Frame>
  );
}

function Refused({ view, refusal }: { view: CardView; refusal: Refusal }): ReactNode {
  const { retry, discard } = useCardHost();
  const words = useWords();
  const id = answerId(view);
  const actions = (
    <>
      <Button look="main" onClick={() => discard(id)}>{words.changeAnswer}</Button>
      {mendsItself(refusal) && <Button look="quiet" onClick={() => retry(id)}>{words.tryAgain}</Button>}
    </>
  );
  return (
    <Frame view={view} title={titleOf(view, words)} context={words.notTaken} actions={actions}>
      <Note tone="red" code={refusalCode(refusal)}>{refusalWords(refusal, words)}</Note>
    </Frame>
  );
}

function answerId({ call }: CardView): string {
  return call.phase === "asking" ? call.approvalId : call.id;
}

function NoClient({ view, client, since }: { view: CardView; client: string; since: number }): ReactNode {
  const { skip } = useAnswer(view);
  const words = useWords();
  const [how, setHow] = useState<"asked" | "waiting" | "here">("asked");
  const seconds = Math.max(0, (useNow(true) - since) / 1_000);
  if (how === "here") {
    return <FormCard view={view} />;
  }
  const actions = (
    <>
      {how === "asked" && <Button onClick={() => setHow("waiting")}>{words.wait}</Button>}
      <Button onClick={() => setHow("here")}>{words.runHere}</Button>
      <Button look="quiet" onClick={skip}>{words.skip}</Button>
    </>
  );
  return (
    <Frame view={view} title={words.needsProgram(toolTitle(view))} context={words.notSeen(client, longTime(seconds, words))} actions={actions}>
      {how === "waiting" && <p>{words.runsLater}</p>}
    </Frame>
  );
}

function TimedOut({ view, afterSec }: { view: CardView; afterSec: number | undefined }): ReactNode {
  const { http, say, cards, threadId } = useCardHost();
  const words = useWords();
  // a new message would cancel open questions
  const isFirst = cards.every(({ call, state }) => call.phase === "settled" || state.name === "timed-out");
  const again = (): void => {
    draftsOf(http).handOver(view.call.id, questionKey(view.call, threadId));
    say?.(words.askAgainMessage);
  };
  const actions = (
    <>
      {say !== undefined && <Button disabled={!isFirst} onClick={again}>{words.askAgain}</Button>}
      <OpenForGood view={view} />
      {say !== undefined && !isFirst && <p className="fh-context">{words.askAgainLater}</p>}
    </>
  );
  return <Frame view={view} title={words.timedOutTitle(questionOf(view, words))} context={lateWords(afterSec, words)} actions={actions}><Typed view={view} /></Frame>;
}

function Denied({ view, reason }: { view: CardView; reason: string }): ReactNode {
  const words = useWords();
  const who = view.answeredBy === undefined ? "" : ` · ${words.answeredBy(view.answeredBy)}`;
  return (
    <Frame view={view} title={words.deniedTitle(toolTitle(view))} context={words.deniedBecause(reason) + who}>
      <details className="fh-fold">
        <summary>{words.showDetails}</summary>
        <Details view={view} />
      </details>
    </Frame>
  );
}
