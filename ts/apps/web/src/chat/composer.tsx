// Where the person writes, and the line below it. Off while answers are needed; Stop always works.
import { isNowhere } from "@farhand/react";
import { ArrowUp, Square } from "lucide-react";
import { type FormEvent, type KeyboardEvent, type ReactNode, useEffect, useRef, useState } from "react";
import type { Conversation } from "./conversation.ts";
import { PLAIN } from "./parts.tsx";

const AT_REST: ReadonlySet<Conversation["state"]> = new Set(["New", "Done"]);
const BUSY: ReadonlySet<Conversation["state"]> = new Set(["Thinking", "Running", "Waiting for you", "Parked"]);

export function Composer({ talk }: { talk: Conversation }): ReactNode {
  const [text, setText] = useState("");
  // Enter before the answer was over: it is sent by itself then, and can be changed until then
  const [isDue, setDue] = useState(false);
  const box = useRef<HTMLTextAreaElement>(null);
  const { needsAnswers } = talk;
  const isBusy = BUSY.has(talk.state) || talk.isStopping;
  useEffect(() => {
    if (talk.state === "New") {
      box.current?.focus();
    }
  }, [talk.state, talk.id]);
  useEffect(() => {
    // after the last answer, or after Stop: the button that was pressed is gone
    if (!needsAnswers && isNowhere()) {
      box.current?.focus();
    }
  }, [needsAnswers, isBusy]);
  const send = (event?: FormEvent): void => {
    event?.preventDefault();
    if (needsAnswers) {
      return;
    }
    if (text.trim() === "" || isBusy) {
      setDue(text.trim() !== "");
      return;
    }
    talk.send(text.trim());
    setText("");
    setDue(false);
  };
  useEffect(() => {
    if (isDue && !isBusy) {
      AT_REST.has(talk.state) ? send() : setDue(false); // after a failure or a stop the person decides anew
    }
  });
  useEffect(() => setText((written) => (written === "" ? talk.returned : written)), [talk.returned]);
  const write = (written: string): void => {
    setText(written);
    setDue(false);
  };
  const keyed = (event: KeyboardEvent): void => {
    if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) {
      event.preventDefault();
      send();
    }
  };
  return (
    <form onSubmit={send} className={`flex items-end gap-2 rounded-2xl border border-line p-2 pl-4 ${needsAnswers ? "bg-sunken" : "bg-surface shadow-soft"} focus-within:border-accent/50`}>
      <textarea
        // not disabled: that would take the focus from somebody who is writing here
        ref={box} rows={1} value={text} readOnly={needsAnswers} aria-disabled={needsAnswers} aria-label="Message" onChange={(event) => write(event.target.value)} onKeyDown={keyed}
        placeholder={needsAnswers ? "Answer the cards above and I will go on" : "Ask for something"}
        className="field-sizing-content max-h-40 min-h-8 flex-1 resize-none bg-transparent py-1.5 outline-none placeholder:text-muted"
      />
      {isDue && <span role="status" className="self-center text-xs text-muted">Sent when this answer is complete</span>}
      {isBusy ? (
        <button type="button" className={PLAIN} onClick={talk.stop} disabled={talk.isStopping}><Square size={12} aria-hidden="true" /> Stop</button>
      ) : (
        <button type="submit" aria-label="Send" disabled={text.trim() === ""} className="grid size-8 place-items-center rounded-lg bg-accent text-on-accent disabled:opacity-40">
          <ArrowUp size={16} aria-hidden="true" />
        </button>
      )}
    </form>
  );
}

export function FootLine({ talk }: { talk: Conversation }): ReactNode {
  const asks = talk.host.cards.some(({ call, state }) => call.phase === "asking" && (state.name === "open" || state.name === "parked"));
  return (
    <div className="flex min-h-6 flex-wrap items-center gap-x-3.5 gap-y-1 pt-2 text-xs text-muted">
      {talk.needsAnswers ? <><Key name="Shift + Tab" /> {asks ? "to the card, there" : "to the card"}</> : <><Key name="Enter" /> send</>}
      {asks && <><Key name="A" /> allow <Key name="D" /> deny</>}
      {talk.until !== undefined && <span className="ml-auto">{`Saved. You can answer until ${timeOf(talk.until)}.`}</span>}
    </div>
  );
}

function Key({ name }: { name: string }): ReactNode {
  return <kbd className="-mr-2.5 rounded-[5px] border border-line bg-surface px-1.5 font-sans text-[11px]">{name}</kbd>;
}

const A_DAY_MS = 86_400_000;

export function timeOf(at: number, now: number = Date.now()): string {
  const when = new Date(at);
  const time = when.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  return at - now < A_DAY_MS && when.getDate() === new Date(now).getDate() ? time : `${when.toLocaleDateString([], { weekday: "short", day: "numeric", month: "short" })}, ${time}`;
}
