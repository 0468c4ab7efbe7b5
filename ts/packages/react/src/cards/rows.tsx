// Finished calls as rows; a click unfolds input and output.
import { openable } from "@farhand/client";
import { Check, Minus, X } from "./icons.tsx";
import type { ReactNode } from "react";
import { useAllowed } from "../allowed.ts";
import { doneTitle, doneWords, durationOf, lateWords, questionOf } from "../sentences.ts";
import { useCardHost, useWords } from "../thread.tsx";
import { useKnown } from "../tools.ts";
import type { CardView } from "../view.ts";
import type { Words } from "../words.ts";
import { inTab } from "./abilities.tsx";
import { Button, iconOf } from "./frame.tsx";

/** Rows that belong together, in one frame. */
export function Rows({ views }: { views: readonly CardView[] }): ReactNode {
  return <div className="fh-rows">{views.map((view) => <Row key={view.call.id} view={view} />)}</div>;
}

export function Row({ view: given }: { view: CardView }): ReactNode {
  const words = useWords();
  const view = useKnown([given], useCardHost()).views[0] ?? given;
  const { call, kind, state, tookMs } = view;
  const Icon = iconOf(view);
  return (
    <div className="fh-row" data-kind={kind} data-state={state.name} data-call={call.id}>
      <details>
        <summary>
          <span className="fh-icon fh-small" aria-hidden="true"><Icon size={14} /></span>
          <span className="fh-what">
            <span className="fh-title">{isDone(view) ? doneTitle(view, words) : (view.title ?? questionOf(view, words))}</span>
            <span className="fh-came">
              <Swatch view={view} />
              <Thumbnail view={view} />
              <span className="fh-context">{wordsOf(view, words)}</span>
            </span>
          </span>
          {tookMs !== undefined && <span className="fh-took">{durationOf(tookMs)}</span>}
          {view.answeredBy !== undefined && <span className="fh-took">{words.answeredBy(view.answeredBy)}</span>}
          {view.isEdited === true && <span className="fh-took">{view.answeredBy === undefined ? words.changedByYou : words.changed}</span>}
        </summary>
        <Details view={view} />
      </details>
      {view.isAlwaysAllowed === true && <Always callId={call.id} tool={call.tool} />}
      <OpenForGood view={view} />
      <Mark view={view} />
    </div>
  );
}

function isDone({ state }: CardView): boolean {
  return state.name === "done" || state.name === "elsewhere";
}

/** A tick; a cross if it failed; a dash if the person chose not to do it. */
function Mark({ view }: { view: CardView }): ReactNode {
  const words = useWords();
  if (isDone(view)) {
    return <Check size={16} className="fh-ok" role="img" aria-label={words.done} />;
  }
  return view.state.name === "failed" && view.state.isCancelled !== true ? <X size={16} className="fh-bad" role="img" aria-label={words.failed} /> : <Minus size={16} className="fh-left" role="img" aria-label={words.notDone} />;
}

/** It ran without asking because its tool is allowed for the whole chat; the permission can be revoked here. */
function Always({ callId, tool }: { callId: string; tool: string }): ReactNode {
  const { standing, undo } = useAllowed(callId, tool);
  const words = useWords();
  return (
    <span className="fh-always">
      {standing === "undone" ? words.undone : words.alwaysAllowed}
      {standing !== "undone" && undo !== undefined && <> · <button type="button" className="fh-unfold" disabled={standing === "asking"} onClick={undo}>{words.undo}</button></>}
    </span>
  );
}

export function Details({ view: { call } }: { view: CardView }): ReactNode {
  const words = useWords();
  if (call.phase !== "settled") {
    return null;
  }
  const { outcome } = call;
  const output = outcome.kind === "success" ? outcome.output : outcome;
  return (
    <div className="fh-details">
      <span>{words.input}</span>
      <pre className="fh-json" tabIndex={0}>{JSON.stringify(call.input, undefined, 2)}</pre>
      <span>{words.output}</span>
      <pre className="fh-json" tabIndex={0}>{JSON.stringify(output, undefined, 2)}</pre>
    </div>
  );
}

/** Pop-up blockers accept a press but no script: the button stays after the call has ended. */
export function OpenForGood({ view: { call, kind, state } }: { view: CardView }): ReactNode {
  const { openPage } = useCardHost();
  const words = useWords();
  // the page of a form may be valid for one visit only
  const text = call.phase === "settled" && kind !== "form" ? (call.input as { url?: unknown } | null)?.url : undefined;
  const url = typeof text === "string" ? openable(text) : undefined;
  if (url === undefined) {
    return null;
  }
  const name = state.name === "done" ? words.openAgain : words.open;
  return <Button className="fh-button fh-plain fh-little" aria-label={`${name}: ${url.host}`} onClick={() => void (openPage ?? inTab)(url)}>{name}</Button>;
}

function wordsOf({ state, kind, call, summary }: CardView, words: Words): string {
  switch (state.name) {
    case "done":
      return summary ?? (call.phase === "settled" && call.outcome.kind === "success" ? doneWords(kind, call.input, call.outcome.output, words) : "");
    case "failed":
      return state.words || words.gone;
    case "skipped":
      return words.skipped;
    case "declined":
      return words.declined;
    case "elsewhere":
      return words.answeredElsewhere;
    case "timed-out":
      return lateWords(state.afterSec, words);
    case "denied":
      return words.deniedRow(state.reason);
    default:
      return "";
  }
}

function Swatch({ view }: { view: CardView }): ReactNode {
  const { hex } = view.kind === "color" ? outputOf(view) : {};
  const isColour = typeof hex === "string" && /^#[0-9a-f]{6}$/i.test(hex);
  return isColour ? <span className="fh-swatch" style={{ background: hex }} aria-hidden="true" /> : null;
}

/** Only for files that the server stores: an address written by a tool is never loaded. */
function Thumbnail({ view }: { view: CardView }): ReactNode {
  const { http } = useCardHost();
  const { ref, type } = view.kind === "photo" || view.kind === "file" ? outputOf(view) : {};
  const isImage = typeof ref === "string" && /^blob_[0-9a-f]{32}$/.test(ref) && typeof type === "string" && type.startsWith("image/");
  return isImage ? <img className="fh-thumb" src={`${http.url}/api/files/${ref}`} alt="" /> : null;
}

function outputOf({ call }: CardView): Readonly<Record<string, unknown>> {
  const output = call.phase === "settled" && call.outcome.kind === "success" ? call.outcome.output : undefined;
  return typeof output === "object" && output !== null ? (output as Readonly<Record<string, unknown>>) : {};
}
