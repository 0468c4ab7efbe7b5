// The card that asks a person to approve a call, and lets them edit its input first. The input must have been visible before it can be
// allowed; `deliberate.tsx` decides which presses count.
import { Pencil } from "./icons.tsx";
import { type FormEvent, type KeyboardEvent, type ReactNode, type RefObject, useEffect, useMemo, useRef, useState } from "react";
import { areDrafts } from "../drafts.ts";
import { editFields, type FieldDrafts, firstDrafts } from "../fields.ts";
import { edited } from "../form-values.ts";
import { refusalCode, refusalWords, titleOf } from "../sentences.ts";
import { type CardHost, EDIT, useCardHost, useDraft, useReadCalls, useWords } from "../thread.tsx";
import type { CardView } from "../view.ts";
import type { Words } from "../words.ts";
import { useAnswer } from "./answer.ts";
import { AllowButton, canAllow, isDeliberate, isPressed } from "./deliberate.tsx";
import { Button, Frame, Note } from "./frame.tsx";
import { type Input, InputForm, InputTable, isExact, LeftOut, useReading } from "./input.tsx";

export function ApprovalCard({ view }: { view: CardView }): ReactNode {
  const { call } = view;
  return call.phase === "asking" ? <Asking view={view} call={call} /> : null;
}

type AskingCall = Extract<CardView["call"], { phase: "asking" }>;

interface Editing {
  readonly isOn: boolean;
  readonly form: ReactNode;
  readonly start: () => void;
  readonly undo: () => void;
  /** The edited input; undefined if some of it is invalid. */
  readonly input: Input | undefined;
  readonly isChanged: boolean;
  /** The draft has fields that the tool does not have. */
  readonly isUnfit: boolean;
}

/** Fields made from the tool's schema, filled with the model's input. */
function useEditing(view: CardView, call: AskingCall, isOff: boolean): Editing {
  const words = useWords();
  const [kept, setDrafts] = useDraft<FieldDrafts | undefined>(view, EDIT, undefined, areDrafts);
  const schema = view.tool?.inputSchema;
  const { runsWith } = view;
  const fields = useMemo(() => editFields(schema, call.input, runsWith?.input), [schema, call.input, runsWith]);
  // a draft from before the tool was loaded may lack fields: those are unchanged
  const drafts = kept === undefined ? undefined : { ...firstDrafts(fields), ...kept };
  const isUnfit = drafts !== undefined && Object.keys(drafts).length > fields.length;
  const now = drafts === undefined ? undefined : edited(fields, drafts, call.input, words);
  // the change of a field that is missing would be lost
  const isWrong = now?.errors.some((error) => error !== "") === true || isUnfit;
  const input = now === undefined ? call.input : isWrong ? undefined : (now.value as Input);
  return {
    isOn: drafts !== undefined,
    form: drafts === undefined || now === undefined ? undefined : <InputForm fields={fields} drafts={drafts} errors={now.errors} onChange={setDrafts} isOff={isOff} runsWith={runsWith} />,
    start: () => setDrafts(firstDrafts(fields)),
    undo: () => setDrafts(undefined),
    input,
    isUnfit: isUnfit && view.tool !== undefined,
    isChanged: now !== undefined && JSON.stringify(input) !== JSON.stringify(call.input),
  };
}

function Asking({ view, call }: { view: CardView; call: AskingCall }): ReactNode {
  const { approve, connection } = useCardHost();
  const words = useWords();
  // a decision is for now: it is not kept until the server is back
  const isAway = isServerAway(connection);
  const isOff = useAnswer(view).isOff || isAway;
  const reading = useReadCalls();
  const editing = useEditing(view, call, isOff);
  const [reason, setReason] = useDraft<string | undefined>(view, "reason", undefined, (kept) => typeof kept === "string");
  // not for a denial that was begun before a reload or on another page: Enter in its field sends it
  const [isDenying, setDenying] = useState(false);
  const deny = (): void => {
    setDenying(true);
    setReason("");
  };
  const [isAlways, setAlways] = useState(false);
  const isRead = reading.has(call.id);
  const shown = view.runsWith?.input ?? call.input;
  const cannotAllow = isOff || !isRead || editing.input === undefined;
  const decide = (approved: boolean, scope: "once" | "thread" = "once"): void =>
    approve(call.id, call.approvalId, {
      approved,
      scope,
      ...(approved && editing.isChanged && editing.input !== undefined ? { input: editing.input } : {}),
      ...(!approved && reason ? { reason } : {}),
    });
  const box = useCardInSight(`${editing.isOn} ${editing.isChanged} ${isAlways} ${reason !== undefined}`);
  // in a form, letters are typed into its fields
  const isPlain = reason === undefined && !isAlways && !editing.isOn;
  const pressed = (event: KeyboardEvent): void => {
    const letter = isPlain && isOnButton(event) ? event.key.toLowerCase() : "";
    if (letter === "d" && !isOff) {
      // otherwise the letter would be typed into the field for the reason
      event.preventDefault();
      deny();
    } else if (letter === "a" && canAllow(event.currentTarget)) {
      decide(true);
    }
  };
  const deciding = (
    <>
      <AllowButton key="once" disabled={cannotAllow} aria-keyshortcuts="a" onAllow={() => decide(true)}>{words.allowOnce}</AllowButton>
      {editing.isOn ? (
        <Button disabled={isOff} onClick={editing.undo}>{words.undoChanges}</Button>
      ) : (
        <Button disabled={isOff || !isExact(shown)} onClick={editing.start}><Pencil size={14} aria-hidden="true" /> {words.edit}</Button>
      )}
      <Button disabled={isOff} aria-keyshortcuts="d" onClick={deny}>{words.deny}</Button>
      <Button look="quiet" className="fh-button fh-quiet fh-last" disabled={cannotAllow || editing.isOn} onClick={() => setAlways(true)}>{words.always}</Button>
    </>
  );
  // another button, which also has to be visible for a moment before it can be pressed
  const always = (
    <>
      <AllowButton key="always" disabled={cannotAllow} onAllow={() => decide(true, "thread")}>{words.allowAlways}</AllowButton>
      <Button look="quiet" disabled={isOff} onClick={() => setAlways(false)}>{words.back}</Button>
    </>
  );
  const denying = (
    <>
      <Button look="main" disabled={isOff} onClick={() => decide(false)}>{words.deny}</Button>
      <Button look="quiet" disabled={isOff} onClick={() => setReason(undefined)}>{words.back}</Button>
    </>
  );
  // the server made the title from the model's input, so it may be wrong for an edited one
  const asked = editing.isChanged || editing.input === undefined ? { ...view, title: undefined, tool: view.tool?.title?.includes("…") === true ? undefined : view.tool } : view;
  return (
    <Frame view={view} title={titleOf(asked, words)} context={placeOf(view, words)} aside={<code className="fh-mono">{call.tool}</code>} actions={reason !== undefined ? denying : isAlways ? always : deciding} onKeyDown={pressed}>
      {isAway ? <Note tone="amber">{connection.state === "lost" ? words.away : words.signedOut}</Note> : <Returned view={view} />}
      {editing.isChanged && <Note tone="amber">{editing.isUnfit ? words.unfitInput : words.changedInput}</Note>}
      {/* another key, so that the fields start at their top even if the table was scrolled */}
      <InputBox key={editing.isOn ? "fields" : "table"} box={box} isRead={isRead} onRead={() => reading.add(call.id)} count={Object.keys(shown).length} hasMore={view.runsWith !== undefined}>
        {editing.form ?? <><InputTable input={shown} runsWith={view.runsWith} /><LeftOut runsWith={view.runsWith} /></>}
      </InputBox>
      {isAlways && <Note tone="amber">{words.alwaysCovers(call.tool)}</Note>}
      {reason !== undefined && <Reason isFocused={isDenying} reason={reason} onChange={setReason} onSend={() => decide(false)} isOff={isOff} />}
    </Frame>
  );
}

/** Nothing can be decided now: the server cannot be reached, or the person is signed out. */
export function isServerAway(connection: CardHost["connection"]): boolean {
  return connection.state === "lost" || (connection.state === "refused" && connection.status === 401);
}

/** Why the previous decision was refused, when the card asks again. */
function Returned({ view: { state } }: { view: CardView }): ReactNode {
  const words = useWords();
  const refusal = state.name === "open" || state.name === "parked" ? state.refusal : undefined;
  return refusal === undefined ? null : <Note tone="red" code={refusalCode(refusal)}>{words.decideAgain(refusalWords(refusal, words))}</Note>;
}

/** Scrolls the card so that its buttons stay visible when it grows. Attach the ref to an element inside the card. */
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
  readonly count: number;
  /** Parameters that were left out are listed as well. */
  readonly hasMore: boolean;
  readonly isRead: boolean;
  readonly onRead: () => void;
  readonly children: ReactNode;
}

/** The input, which has to be scrolled to its end before it can be allowed. */
function InputBox({ box, count, hasMore, isRead, onRead, children }: BoxProps): ReactNode {
  const words = useWords();
  useReading(box, isRead, onRead);
  if (count === 0 && !hasMore) {
    return null;
  }
  return (
    <>
      <div ref={box} className="fh-inputs" role="group" aria-label={words.inputs} tabIndex={0}>{children}</div>
      {!isRead && <p className="fh-context" role="status">{words.scrollFirst(count)}</p>}
    </>
  );
}

interface ReasonProps {
  readonly isFocused: boolean;
  readonly reason: string;
  readonly onChange: (reason: string) => void;
  readonly onSend: () => void;
  readonly isOff: boolean;
}

function Reason({ isFocused, reason, onChange, onSend, isOff }: ReasonProps): ReactNode {
  const words = useWords();
  const send = (event: FormEvent): void => {
    event.preventDefault();
    onSend();
  };
  return (
    // a single field without a button: Enter sends it
    <form onSubmit={send}>
      <input className="fh-input" aria-label={words.reason} placeholder={words.reason} autoFocus={isFocused} value={reason} disabled={isOff} onChange={(event) => onChange(event.target.value)} />
    </form>
  );
}

function placeOf({ executor }: CardView, words: Words): string {
  return executor === "frontend" ? words.runsHere : executor === "client" ? words.runsInProgram : words.runsOnServer;
}

/** Whether a key without modifiers was pressed on one of the card's buttons that has the focus because of the keyboard. The heading gets
 * the focus automatically, the list of parameters by a click that selects text, and a button such as Back by the click that pressed it:
 * a key that is pressed then may be meant for something else. */
function isOnButton(event: KeyboardEvent): boolean {
  const hasModifier = event.ctrlKey || event.metaKey || event.altKey;
  return !hasModifier && isDeliberate(event) && (event.target as Element).closest(".fh-actions") !== null && !isPressed(event.target);
}
