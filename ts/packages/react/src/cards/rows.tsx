// Calls that are over, folded into lines; a click unfolds what went in and what came out.
import { openable } from "@farhand/client";
import { Check, Plug, Server, X } from "lucide-react";
import type { ReactNode } from "react";
import { useCardHost } from "../thread.tsx";
import type { CardView } from "../view.ts";
import { doneTitle, durationOf } from "../words.ts";
import { inTab } from "./abilities.tsx";
import { Button, ICONS } from "./frame.tsx";

/** Lines that belong together, in one frame. */
export function Rows({ views }: { views: readonly CardView[] }): ReactNode {
  return <div className="fh-rows">{views.map((view) => <Row key={view.call.id} view={view} />)}</div>;
}

export function Row({ view }: { view: CardView }): ReactNode {
  const { call, kind, state, tookMs } = view;
  const Icon = iconOf(view);
  const ok = state.name === "done" || state.name === "elsewhere";
  const Mark = ok ? Check : X;
  return (
    <div className="fh-row" data-kind={kind} data-state={state.name} data-call={call.id}>
      <details>
        <summary>
          <span className="fh-icon fh-small" aria-hidden="true"><Icon size={14} /></span>
          <span className="fh-title">{ok ? doneTitle(call, kind) : doneTitle(call, "unknown")}</span>
          <Swatch view={view} />
          <Thumbnail view={view} />
          <span className="fh-context">{wordsOf(view)}</span>
          {tookMs !== undefined && <span className="fh-took">{durationOf(tookMs)}</span>}
        </summary>
        <Details view={view} />
      </details>
      <OpenForGood view={view} />
      <Mark size={16} className={ok ? "fh-ok" : "fh-bad"} role="img" aria-label={ok ? "Done" : "Not done"} />
    </div>
  );
}

export function Details({ view: { call } }: { view: CardView }): ReactNode {
  if (call.phase !== "settled") {
    return null;
  }
  const { outcome } = call;
  const output = outcome.kind === "success" ? outcome.output : outcome;
  return (
    <div className="fh-details">
      <span>Input</span>
      <pre className="fh-json">{JSON.stringify(call.input, undefined, 2)}</pre>
      <span>Output</span>
      <pre className="fh-json">{JSON.stringify(output, undefined, 2)}</pre>
    </div>
  );
}

/** A press passes the rules for pop-ups that a script does not: the button stays when the call is over. */
export function OpenForGood({ view: { call, kind, state } }: { view: CardView }): ReactNode {
  const { openPage } = useCardHost();
  // the page of a form may be good for one visit only
  const text = call.phase === "settled" && kind !== "form" ? (call.input as { url?: unknown } | null)?.url : undefined;
  const url = typeof text === "string" ? openable(text) : undefined;
  if (url === undefined) {
    return null;
  }
  const name = state.name === "done" ? "Open again" : "Open";
  return <Button className="fh-button fh-plain fh-little" aria-label={`${name}: ${url.host}`} onClick={() => void (openPage ?? inTab)(url)}>{name}</Button>;
}

function iconOf({ kind, executor, state }: CardView): typeof Server {
  if (state.name === "denied") {
    return ICONS.approval;
  }
  if (kind !== "unknown") {
    return ICONS[kind];
  }
  return executor === "server" ? Server : Plug;
}

function wordsOf({ state }: CardView): string {
  switch (state.name) {
    case "done":
    case "failed":
      return state.words;
    case "elsewhere":
      return "Answered in another tab";
    case "timed-out":
      return "Nobody answered in time";
    case "denied":
      return state.reason === "" ? "You said no" : `You said no: “${state.reason}”`;
    default:
      return "";
  }
}

function Swatch({ view }: { view: CardView }): ReactNode {
  const { hex } = view.kind === "color" ? outputOf(view) : {};
  const isColour = typeof hex === "string" && /^#[0-9a-f]{6}$/i.test(hex);
  return isColour ? <span className="fh-swatch" style={{ background: hex }} aria-hidden="true" /> : null;
}

/** Only of a file that the server keeps: an address that a tool wrote is never loaded. */
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
