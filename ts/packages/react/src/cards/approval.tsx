// A person's yes or no before a call may run, with a way to change its input first. What is allowed can be read whenever it
// can be allowed; how a press has to be meant stands in `deliberate.tsx`.
import { Pencil } from "lucide-react";
import { type FormEvent, type KeyboardEvent, type ReactNode, type RefObject, useEffect, useMemo, useRef, useState } from "react";
import { areDrafts } from "../drafts.ts";
import { editFields, type FieldDrafts, firstDrafts } from "../fields.ts";
import { edited } from "../form-values.ts";
import { refusalWords, titleOf } from "../sentences.ts";
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
  /** The input as it is now; nothing if some of it is wrong. */
  readonly input: Input | undefined;
  readonly isChanged: boolean;
  /** It is about fields that the tool does not have. */
  readonly isUnfit: boolean;
}

/** Fields made from the tool's schema, with what the model wrote in them. */
function useEditing(view: CardView, call: AskingCall, isOff: boolean): Editing {
  const words = useWords();
  const [kept, setDrafts] = useDraft<FieldDrafts | undefined>(view, EDIT, undefined, areDrafts);
  const schema = view.tool?.inputSchema;
  const { runsWith } = view;
  const fields = useMemo(() => editFields(schema, call.input, runsWith?.input), [schema, call.input, runsWith]);
  // made before the server had told of the tool, it may have fewer fields: those are as they were
  const drafts = kept === undefined ? undefined : { ...firstDrafts(fields), ...kept };
  const isUnfit = drafts !== undefined && Object.keys(drafts).length > fields.length;
  const now = drafts === undefined ? undefined : edited(fields, drafts, call.input, words);
  // of a field that is not there, or not yet, the change would be left out
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
  // what is decided now is for now: it is not kept for a server that comes back later
  const isAway = isServerAway(connection);
  const isOff = useAnswer(view).isOff || isAway;
  const reading = useReadCalls();
  const editing = useEditing(view, call, isOff);
  const [reason, setReason] = useDraft<string | undefined>(view, "reason", undefined, (kept) => typeof kept === "string");
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
  // of a form, the letters are typed into its fields
  const isPlain = reason === undefined && !isAlways && !editing.isOn;
  const pressed = (event: KeyboardEvent): void => {
    const letter = isPlain && isOnButton(event) ? event.key.toLowerCase() : "";
    if (letter === "d" && !isOff) {
      // else it would be the first letter of the reason
      event.preventDefault();
      setReason("");
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
      <Button disabled={isOff} aria-keyshortcuts="d" onClick={() => setReason("")}>{words.deny}</Button>
      <Button look="quiet" className="fh-button fh-quiet fh-last" disabled={cannotAllow || editing.isOn} onClick={() => setAlways(true)}>{words.always}</Button>
    </>
  );
  // a button of its own, which has to be in sight for a moment before it can be pressed
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
  // the title was made from what the model wrote: of a changed input it says nothing
  const asked = editing.isChanged || editing.input === undefined ? { ...view, title: undefined, tool: view.tool?.title?.includes("…") === true ? undefined : view.tool } : view;
  return (
    <Frame view={view} title={titleOf(asked, words)} context={placeOf(view, words)} aside={<code className="fh-mono">{call.tool}</code>} actions={reason !== undefined ? denying : isAlways ? always : deciding} onKeyDown={pressed}>
      {isAway ? <Note tone="amber">{connection.state === "lost" ? words.away : words.signedOut}</Note> : <Returned view={view} />}
      {editing.isChanged && <Note tone="amber">{editing.isUnfit ? words.unfitInput : words.changedInput}</Note>}
      {/* the fields begin at their top, however far the table was scrolled */}
      <InputBox key={editing.isOn ? "fields" : "table"} box={box} isRead={isRead} onRead={() => reading.add(call.id)} count={Object.keys(shown).length} hasMore={view.runsWith !== undefined}>
        {editing.form ?? <><InputTable input={shown} runsWith={view.runsWith} /><LeftOut runsWith={view.runsWith} /></>}
      </InputBox>
      {isAlways && <Note tone="amber">{words.alwaysCovers(call.tool)}</Note>}
      {reason !== undefined && <Reason reason={reason} onChange={setReason} onSend={() => decide(false)} isOff={isOff} />}
    </Frame>
  );
}

/** Nothing can be decided at the moment: the server cannot be reached, or does not know this person any more. */
export function isServerAway(connection: CardHost["connection"]): boolean {
  return connection.state === "lost" || (connection.state === "refused" && connection.status === 401);
}

/** An answer that was not taken is asked for again, with what became of it. */
function Returned({ view: { state } }: { view: CardView }): ReactNode {
  const words = useWords();
  const refusal = state.name === "open" || state.name === "parked" ? state.refusal : undefined;
  return refusal === undefined ? null : <Note tone="red">{words.decideAgain(refusalWords(refusal, words))}</Note>;
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
  readonly count: number;
  /** Something is said of parameters that it runs without. */
  readonly hasMore: boolean;
  readonly isRead: boolean;
  readonly onRead: () => void;
  readonly children: ReactNode;
}

/** As high as there is room for; what does not fit is scrolled to before it can be allowed. */
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
  readonly reason: string;
  readonly onChange: (reason: string) => void;
  readonly onSend: () => void;
  readonly isOff: boolean;
}

function Reason({ reason, onChange, onSend, isOff }: ReasonProps): ReactNode {
  const words = useWords();
  const send = (event: FormEvent): void => {
    event.preventDefault();
    onSend();
  };
  return (
    // one field and no button of its own: Enter sends it
    <form onSubmit={send}>
      <input className="fh-input" aria-label={words.reason} placeholder={words.reason} autoFocus value={reason} disabled={isOff} onChange={(event) => onChange(event.target.value)} />
    </form>
  );
}

function placeOf({ executor }: CardView, words: Words): string {
  return executor === "frontend" ? words.runsHere : executor === "client" ? words.runsInProgram : words.runsOnServer;
}

/** Whether somebody pressed a key alone, on one of the card's buttons, and went there with keys. The heading gets the focus by itself,
 * the list of parameters by a click of somebody who reads or copies, and a button such as Back by the click that pressed it: what is
 * typed then may be meant for something else. */
function isOnButton(event: KeyboardEvent): boolean {
  const hasModifier = event.ctrlKey || event.metaKey || event.altKey;
  return !hasModifier && isDeliberate(event) && (event.target as Element).closest(".fh-actions") !== null && !isPressed(event.target);
}
