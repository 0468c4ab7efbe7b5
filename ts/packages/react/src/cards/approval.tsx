// A person's yes or no before a call may run, with a way to change its input first. What is allowed can be read whenever it
// can be allowed; how a press has to be meant stands in `deliberate.tsx`.
import { Pencil } from "lucide-react";
import { type FormEvent, type KeyboardEvent, type ReactNode, type RefObject, useEffect, useRef, useState } from "react";
import { useCardHost, useDraft, useReadCalls } from "../thread.tsx";
import type { CardView } from "../view.ts";
import { titleOf } from "../words.ts";
import { useAnswer } from "./answer.ts";
import { AllowButton, isDeliberate, useSettled } from "./deliberate.tsx";
import { Button, Frame, Note } from "./frame.tsx";
import { type Drafts, draftsOf, type Input, InputForm, inputOf, InputTable, isExact, useReading } from "./input.tsx";

export function ApprovalCard({ view }: { view: CardView }): ReactNode {
  const { call } = view;
  return call.phase === "asking" ? <Asking view={view} call={call} /> : null;
}

type AskingCall = Extract<CardView["call"], { phase: "asking" }>;

function Asking({ view, call }: { view: CardView; call: AskingCall }): ReactNode {
  const { approve } = useCardHost();
  const { isOff } = useAnswer(view);
  const reading = useReadCalls();
  const [drafts, setDrafts] = useDraft<Drafts | undefined>(view, "input", undefined);
  const [reason, setReason] = useDraft<string | undefined>(view, "reason", undefined);
  const [isAlways, setAlways] = useState(false);
  const edited = drafts === undefined ? undefined : inputOf(call.input, drafts);
  const isRead = reading.has(call.id);
  const cannotAllow = isOff || !isRead || edited?.ok === false;
  const isSettled = useSettled(cannotAllow);
  const decide = (approved: boolean, scope: "once" | "thread" = "once"): void =>
    approve(call.id, call.approvalId, {
      approved,
      scope,
      ...(approved && edited?.ok === true ? { input: edited.input } : {}),
      ...(!approved && reason ? { reason } : {}),
    });
  const box = useCardInSight(`${drafts !== undefined} ${isAlways} ${reason !== undefined}`);
  const letters = { a: () => isSettled && decide(true), d: () => !isOff && setReason("") };
  const isPlain = reason === undefined && !isAlways;
  const pressed = (event: KeyboardEvent): void => {
    const letter = isPlain ? letterOf(event) : undefined;
    if (letter !== undefined) {
      event.preventDefault();
      letters[letter]();
    }
  };
  const deciding = (
    <>
      <AllowButton key="once" disabled={cannotAllow} aria-keyshortcuts="a" onAllow={() => decide(true)}>Allow once</AllowButton>
      {drafts === undefined ? (
        <Button disabled={isOff || !isExact(call.input)} onClick={() => setDrafts(draftsOf(call.input))}><Pencil size={14} aria-hidden="true" /> Edit</Button>
      ) : (
        <Button disabled={isOff} onClick={() => setDrafts(undefined)}>Undo changes</Button>
      )}
      <Button disabled={isOff} aria-keyshortcuts="d" onClick={() => setReason("")}>Deny</Button>
      <Button look="quiet" className="fh-button fh-quiet fh-last" disabled={cannotAllow || drafts !== undefined} onClick={() => setAlways(true)}>Always in this chat</Button>
    </>
  );
  // a button of its own, which has to be in sight for a moment before it can be pressed
  const always = (
    <>
      <AllowButton key="always" disabled={cannotAllow} onAllow={() => decide(true, "thread")}>Allow always in this chat</AllowButton>
      <Button look="quiet" disabled={isOff} onClick={() => setAlways(false)}>Back</Button>
    </>
  );
  const denying = (
    <>
      <Button look="main" disabled={isOff} onClick={() => decide(false)}>Deny</Button>
      <Button look="quiet" disabled={isOff} onClick={() => setReason(undefined)}>Back</Button>
    </>
  );
  return (
    <Frame view={view} title={titleOf(call)} context={placeOf(view)} aside={<code className="fh-mono">{call.tool}</code>} actions={reason !== undefined ? denying : isAlways ? always : deciding} onKeyDown={pressed}>
      <Returned view={view} />
      <InputBox box={box} isRead={isRead} onRead={() => reading.add(call.id)} input={call.input}>
        {drafts === undefined ? <InputTable input={call.input} /> : <InputForm input={call.input} drafts={drafts} onChange={setDrafts} isOff={isOff} />}
      </InputBox>
      {isAlways && reason === undefined && <p>Every later call of <code className="fh-mono">{call.tool}</code> in this chat will run without asking you, whatever its input is.</p>}
      {reason !== undefined && <Reason reason={reason} onChange={setReason} onSend={() => decide(false)} isOff={isOff} />}
    </Frame>
  );
}

/** An answer that was not taken is asked for again, with what became of it. */
function Returned({ view: { state } }: { view: CardView }): ReactNode {
  const note = state.name === "open" || state.name === "parked" ? state.note : undefined;
  return note === undefined ? null : <Note tone="red">{note}</Note>;
}

/** A card that grows keeps its buttons in sight. Goes on an element inside of the card. */
function useCardInSight(shape: string): RefObject<HTMLDivElement | null> {
  const inside = useRef<HTMLDivElement>(null);
  const before = useRef(shape);
  useEffect(() => {
    if (before.current !== shape) {
      before.current = shape;
      inside.current?.closest(".fh-card")?.scrollIntoView({ block: "nearest" });
    }
  }, [shape]);
  return inside;
}

interface BoxProps {
  readonly box: RefObject<HTMLDivElement | null>;
  readonly input: Input;
  readonly isRead: boolean;
  readonly onRead: () => void;
  readonly children: ReactNode;
}

/** As high as there is room for; what does not fit is scrolled to before it can be allowed. */
function InputBox({ box, input, isRead, onRead, children }: BoxProps): ReactNode {
  useReading(box, () => !isRead && onRead());
  const count = Object.keys(input).length;
  if (count === 0) {
    return null;
  }
  return (
    <>
      <div ref={box} className="fh-inputs" role="region" aria-label="What it runs with" tabIndex={0}>{children}</div>
      {!isRead && <p className="fh-context" role="status">{`${count} parameters. Scroll to the last one before you allow it.`}</p>}
    </>
  );
}

interface ReasonProps {
  readonly reason: string;
  readonly onChange: (reason: string) => void;
  readonly onSend: () => void;
  readonly isOff: boolean;
}

function Reason({ reason, onChange, onSend, isOff }: ReasonProps): ReactNode {
  const send = (event: FormEvent): void => {
    event.preventDefault();
    onSend();
  };
  return (
    // one field and no button of its own: Enter sends it
    <form onSubmit={send}>
      <input className="fh-input" aria-label="Why not? (may be empty)" placeholder="Why not? (may be empty)" autoFocus value={reason} disabled={isOff} onChange={(event) => onChange(event.target.value)} />
    </form>
  );
}

function placeOf({ executor }: CardView): string {
  return PLACES[executor] ?? PLACES["server"] ?? "";
}

const PLACES: Readonly<Record<string, string>> = {
  frontend: "Runs in this browser once you allow it",
  client: "Runs in another program once you allow it",
  server: "Runs on the server once you allow it",
};

const WRITES = "input:not([type=radio]):not([type=checkbox]), textarea, select, [contenteditable]";

/** A letter that somebody pressed on one of the card's controls. The heading gets the focus by itself, so it does not count there. */
function letterOf(event: KeyboardEvent): "a" | "d" | undefined {
  const letter = event.key.toLowerCase();
  const hasModifier = event.ctrlKey || event.metaKey || event.altKey;
  const target = event.target as Element;
  if ((letter !== "a" && letter !== "d") || hasModifier || !isDeliberate(event) || target.closest(`${WRITES}, .fh-title`) !== null) {
    return undefined;
  }
  return letter;
}
