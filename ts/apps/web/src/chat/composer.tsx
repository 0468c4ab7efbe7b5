// The message box and the line below it. Disabled while answers are needed; Stop always works.
import { isNowhere } from "@farhand/react";
import { ArrowUp, Paperclip, Square } from "lucide-react";
import { type ClipboardEvent, type FormEvent, type KeyboardEvent, lazy, type ReactNode, Suspense, useEffect, useRef, useState, useSyncExternalStore } from "react";
import { useAttachments } from "./attachments.ts";
import type { Conversation } from "./conversation.ts";
import type { Drafts } from "./drafts.ts";
import { IconButton, PLAIN, timeOf, untilLoaded } from "./parts.tsx";
import { textOf } from "./record.ts";
import { isUnderWay } from "./run-state.ts";
import { fill, useWords } from "./words.ts";

const AttachmentList = lazy(async () => ({ default: (await untilLoaded(() => import("./attachment-list.tsx"))).AttachmentList }));

const AT_REST: ReadonlySet<Conversation["state"]> = new Set(["New", "Done"]);

interface ComposerProps {
  readonly talk: Conversation;
  readonly drafts: Drafts;
  /** The key of the draft: the id of the chat, or `NEW` for a chat without messages. */
  readonly place: string;
}

export function Composer({ talk, drafts, place }: ComposerProps): ReactNode {
  const words = useWords();
  const { text, isDue } = useSyncExternalStore(drafts.subscribe, () => drafts.get(place));
  const setText = (written: string): void => drafts.change(place, () => ({ text: written, isDue: false }));
  // the person pressed Enter before the answer was complete: the message is sent when it is, and can be edited until then
  const setDue = (due: boolean): void => drafts.change(place, () => ({ isDue: due }));
  const files = useAttachments(drafts, place);
  // if the answer was complete when the person came back, nothing is sent automatically
  const wasBusy = useRef(false);
  const box = useRef<HTMLTextAreaElement>(null);
  const { needsAnswers } = talk;
  const isBusy = isUnderWay(talk.state) || talk.isStopping;
  const isEmpty = text.trim() === "" && files.parts.length === 0;
  const isOver = useDrop(files.add, !needsAnswers);
  useEffect(() => {
    // a chat that is still loading may have an open question
    if (talk.isLoaded && talk.state === "New") {
      box.current?.focus();
    }
  }, [talk.isLoaded, talk.state, talk.id]);
  useEffect(() => {
    // after the last answer, or after Stop: the button that was pressed is gone
    if (talk.isLoaded && !needsAnswers && isNowhere()) {
      box.current?.focus();
    }
  }, [talk.isLoaded, needsAnswers, isBusy]);
  const send = (event?: FormEvent): void => {
    event?.preventDefault();
    if (needsAnswers) {
      return;
    }
    if (isEmpty || isBusy || files.isUploading) {
      setDue(!isEmpty || files.isUploading);
      return;
    }
    // before `send`, which moves what is left in the box of a new chat to the draft of that chat
    setText("");
    files.clear();
    talk.send(text.trim(), files.parts);
  };
  useEffect(() => {
    wasBusy.current ||= isBusy || files.isUploading;
    if (isDue && talk.isLoaded && !isBusy && !files.isUploading) {
      wasBusy.current && AT_REST.has(talk.state) && !files.hasFailed ? send() : setDue(false); // after a failure or a stop, the person decides again
    }
  });
  const { restore } = files;
  const given = useRef<Conversation["returned"]>(undefined);
  useEffect(() => {
    const message = talk.returned;
    if (message !== undefined && given.current !== message) {
      given.current = message;
      // text that was typed meanwhile is kept below it
      drafts.change(place, (before) => ({ text: [textOf(message), before.text].filter((each) => each !== "").join("\n\n"), isDue: false }));
      restore(message.parts.filter((part) => part.type === "file"));
    }
  }, [talk.returned, restore, drafts, place]);
  const keyed = (event: KeyboardEvent): void => {
    if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) {
      event.preventDefault();
      send();
    } else if (event.key === "Tab" && event.shiftKey && needsAnswers) {
      const field = fieldAbove();
      field?.focus();
      field && event.preventDefault();
    }
  };
  const pasted = (event: ClipboardEvent): void => {
    if (event.clipboardData.files.length > 0 && !needsAnswers) {
      event.preventDefault();
      files.add(event.clipboardData.files);
    }
  };
  return (
    <form onSubmit={send} data-over={isOver} className={`rounded-2xl border border-line p-2 ${needsAnswers ? "bg-sunken" : "bg-surface shadow-soft"} focus-within:border-accent/50 data-[over=true]:border-accent data-[over=true]:bg-tint`}>
      {isOver && <p className="px-2 pt-1 pb-2 text-[13px] text-tint-text">{words.dropFiles}</p>}
      {files.list.length > 0 && <Suspense><AttachmentList files={files} /></Suspense>}
      <div className="flex items-end gap-2">
        <FileButton onFiles={files.add} isOff={needsAnswers} />
        <textarea
          // not `disabled`: that would take the focus from a person who is typing
          ref={box} rows={1} value={text} readOnly={needsAnswers} aria-disabled={needsAnswers} aria-label={words.message} onChange={(event) => setText(event.target.value)} onKeyDown={keyed} onPaste={pasted}
          placeholder={needsAnswers ? words.answerAbove : words.placeholder}
          className="field-sizing-content max-h-40 min-h-8 flex-1 resize-none bg-transparent py-1.5 outline-none placeholder:text-muted"
        />
        {isBusy ? (
          <button type="button" className={PLAIN} onClick={talk.stop} disabled={talk.isStopping}><Square size={12} aria-hidden="true" /> {words.stop}</button>
        ) : (
          <button type="submit" aria-label={words.send} disabled={isEmpty} className="grid size-8 shrink-0 place-items-center rounded-lg border border-transparent bg-accent text-on-accent disabled:opacity-40">
            <ArrowUp size={16} aria-hidden="true" />
          </button>
        )}
      </div>
      {isDue && <p role="status" className="px-2 pt-1 text-right text-xs text-muted">{words.sentLater}</p>}
    </form>
  );
}

/** The field of the last question. The button before this box is its Skip, which Enter would press after an answer that was typed blindly. */
function fieldAbove(): HTMLElement | null | undefined {
  const card = [...document.querySelectorAll('.fh-card:is([data-state="open"], [data-state="parked"])')].at(-1);
  return card?.matches('[data-kind="approval"]') ? null : card?.querySelector<HTMLElement>(".fh-input:enabled");
}

function FileButton({ onFiles, isOff }: { onFiles: (files: Iterable<File>) => void; isOff: boolean }): ReactNode {
  const words = useWords();
  const input = useRef<HTMLInputElement>(null);
  const chosen = (): void => {
    onFiles(input.current?.files ?? []);
    // so that the same file can be chosen again
    input.current!.value = "";
  };
  return (
    <>
      <IconButton label={words.attach} disabled={isOff} className="disabled:opacity-40" onClick={() => input.current?.click()}><Paperclip size={16} aria-hidden="true" /></IconButton>
      <input ref={input} type="file" multiple hidden tabIndex={-1} aria-label={words.attach} onChange={chosen} />
    </>
  );
}

/** Files may be dropped anywhere on the page, except on a card, which may accept files itself. */
function useDrop(add: (files: Iterable<File>) => void, isOn: boolean): boolean {
  const [isOver, setOver] = useState(false);
  useEffect(() => {
    if (!isOn) {
      return undefined;
    }
    const isOurs = ({ dataTransfer, target }: DragEvent): boolean =>
      dataTransfer?.types.includes("Files") === true && !(target instanceof Element && target.closest(".fh-card") !== null);
    const over = (event: DragEvent): void => {
      if (isOurs(event)) {
        event.preventDefault();
        event.dataTransfer!.dropEffect = "copy";
        setOver(true);
      }
    };
    const leave = ({ relatedTarget }: DragEvent): void => setOver((was) => was && relatedTarget !== null);
    const drop = (event: DragEvent): void => {
      setOver(false);
      if (isOurs(event)) {
        event.preventDefault();
        add(event.dataTransfer?.files ?? []);
      }
    };
    const ends = new AbortController();
    addEventListener("dragover", over, { signal: ends.signal });
    addEventListener("dragleave", leave, { signal: ends.signal });
    addEventListener("drop", drop, { signal: ends.signal });
    return () => {
      ends.abort();
      setOver(false);
    };
  }, [add, isOn]);
  return isOver;
}

export function FootLine({ talk }: { talk: Conversation }): ReactNode {
  const words = useWords();
  const asks = talk.host.cards.some(({ call, state }) => call.phase === "asking" && (state.name === "open" || state.name === "parked"));
  return (
    <div className="flex min-h-6 flex-wrap items-center gap-x-3.5 gap-y-1 pt-2 text-xs text-muted">
      {/* a device without a hovering pointer usually has no keyboard */}
      <span className="flex flex-wrap items-center gap-x-3.5 gap-y-1 [@media(hover:none)]:hidden">
        {talk.needsAnswers ? <><Key name="Shift + Tab" /> {asks ? words.toTheCardThere : words.toTheCard}</> : <><Key name="Enter" /> {words.keySend}</>}
        {asks && <><Key name="A" /> {words.keyAllow} <Key name="D" /> {words.keyDeny}</>}
      </span>
      {talk.until !== undefined && <span className="ml-auto">{fill(words.saved, { time: timeOf(talk.until) })}</span>}
    </div>
  );
}

function Key({ name }: { name: string }): ReactNode {
  return <kbd className="-mr-2.5 rounded-[5px] border border-line bg-surface px-1.5 font-sans text-[11px]">{name}</kbd>;
}
