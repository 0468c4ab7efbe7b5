// The frame of every card: icon, title, context, body, one main button, a way to decline, and the time left.
import {
  Camera, ClipboardList, Clock, Copy, ExternalLink, File, Hand, List, type Icon, MapPin, Palette, Plug, Server, ShieldCheck, TriangleAlert, Type, X,
} from "./icons.tsx";
import { type ButtonHTMLAttributes, type DOMAttributes, type ReactNode, useId } from "react";
import { useNow } from "../card-memory.ts";
import { timeLeft } from "../sentences.ts";
import { useCardHost, useWords } from "../thread.tsx";
import type { CardState, CardView, Kind } from "../view.ts";
import { piecesOf } from "../visible-text.ts";
import type { Words } from "../words.ts";
import { VisibleText } from "./input.tsx";

const ICONS: Readonly<Record<Kind, Icon>> = {
  confirm: Hand,
  text: Type,
  select: List,
  file: File,
  photo: Camera,
  location: MapPin,
  open_page: ExternalLink,
  clipboard: Copy,
  color: Palette,
  form: ClipboardList,
  approval: ShieldCheck,
  unknown: Plug,
};

/** A tool without a card of its own shows where it runs. */
export function iconOf({ kind, executor, state }: CardView): Icon {
  if (state.name === "denied") {
    return ShieldCheck;
  }
  return kind === "unknown" && executor === "server" ? Server : ICONS[state.name === "no-client" ? "unknown" : kind];
}

const AMBER_UNDER_MS = 10_000;

/** `onKeyDown` is for keys that are pressed while the focus is inside the card. */
export interface FrameProps extends Pick<DOMAttributes<HTMLElement>, "onKeyDown" | "onDragOver" | "onDragLeave" | "onDrop"> {
  readonly view: CardView;
  readonly title: string;
  readonly context: string;
  readonly children?: ReactNode;
  readonly actions?: ReactNode;
  readonly aside?: ReactNode;
}

export function Frame({ view, title, context, children, actions, aside, ...events }: FrameProps): ReactNode {
  const id = useId();
  const words = useWords();
  const { call, kind, state } = view;
  const Icon = iconOf(view);
  return (
    <section className="fh-card" data-kind={kind} data-state={state.name} data-call={call.id} role="group" aria-labelledby={`${id}t`} aria-describedby={`${id}c`} {...events}>
      <header className="fh-head">
        <span className="fh-icon" aria-hidden="true">
          <Icon size={16} />
        </span>
        <div className="fh-words">
          <h2 id={`${id}t`} className="fh-title" tabIndex={-1}><VisibleText pieces={piecesOf(title)} /></h2>
          <p id={`${id}c`} className="fh-context">{state.name === "sending" ? words.sendingAnswer : context}</p>
        </div>
        <div className="fh-aside">{aside}<Aside state={state} /></div>
      </header>
      {children !== undefined && <div className="fh-body">{children}</div>}
      {actions !== undefined && <div className="fh-actions">{actions}</div>}
    </section>
  );
}

function Saved({ deadline }: { deadline: number | undefined }): ReactNode {
  const now = useNow(true);
  const words = useWords();
  return <span className="fh-pill fh-amber">{words.saved(deadline === undefined ? undefined : timeLeft(deadline, now, words))}</span>;
}

const PILLS: Partial<Record<CardState["name"], readonly [Extract<keyof Words, "running" | "sending" | "undelivered" | "refused" | "timedOut" | "denied" | "noClient">, string]>> = {
  running: ["running", "blue"],
  sending: ["sending", "blue"],
  undelivered: ["undelivered", "amber"],
  refused: ["refused", "red"],
  "timed-out": ["timedOut", "grey"],
  denied: ["denied", "grey"],
  "no-client": ["noClient", "amber"],
};

function Aside({ state }: { state: CardState }): ReactNode {
  const words = useWords();
  const [name, tone] = PILLS[state.name] ?? [];
  if (name !== undefined) {
    return <span className={`fh-pill fh-${tone}`}>{tone === "blue" && <span className="fh-beat" aria-hidden="true" />}{words[name]}</span>;
  }
  if (state.name === "parked") {
    return <Saved deadline={state.deadline} />;
  }
  return state.name === "open" && state.deadline !== undefined ? <TimeLeft deadline={state.deadline} /> : null;
}

function TimeLeft({ deadline }: { deadline: number }): ReactNode {
  const now = useNow(true);
  const words = useWords();
  const time = timeLeft(deadline, now, words);
  const label = words.timeLeft(time);
  return (
    <span className="fh-time" data-short={deadline - now < AMBER_UNDER_MS} role="timer" aria-live="off" aria-label={label}>
      <Clock size={14} aria-hidden="true" /> {time}
    </span>
  );
}

export interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  readonly look?: "main" | "plain" | "quiet";
}

export function Button({ look = "plain", ...rest }: ButtonProps): ReactNode {
  return <button type="button" className={`fh-button fh-${look}`} {...rest} />;
}

/** With the `code` of an error, it links to the server's explanation. */
export function Note({ tone, code, children }: { tone: "amber" | "red"; code?: string | undefined; children: ReactNode }): ReactNode {
  const Icon = tone === "amber" ? TriangleAlert : X;
  return (
    <p className={`fh-note fh-${tone}`} role={tone === "red" ? "alert" : "status"}>
      <Icon size={16} aria-hidden="true" /> <span>{children}{code && <> <ErrorCode code={code} /></>}</span>
    </p>
  );
}

function ErrorCode({ code }: { code: string }): ReactNode {
  const { http } = useCardHost();
  return <a className="fh-mono" href={`${http.url}/errors/${encodeURIComponent(code)}`} target="_blank" rel="noopener">{code}</a>;
}
