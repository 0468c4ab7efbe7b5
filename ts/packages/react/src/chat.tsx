// A whole chat, ready to use: messages, finished calls, open questions and a message box.
import type { Message, ThreadOptions } from "@farhand/client";
import { type FormEvent, Fragment, type KeyboardEvent, type ReactNode, useState } from "react";
import { Button, Note } from "./cards/frame.tsx";
import { CardList } from "./cards/list.tsx";
import { Rows } from "./cards/rows.tsx";
import { ToolCard } from "./cards/card.tsx";
import { useStickyEnd } from "./sticky-end.ts";
import { CardHostProvider, type HostOptions, type Style, type ThreadHost, useThread, useWords } from "./thread.tsx";
import { type CardView, isWaiting } from "./view.ts";

export interface ThreadProps extends ThreadOptions, HostOptions, Style {
  /** Renders the text of a message, for example as Markdown; by default, plain text. */
  readonly renderText?: (text: string, message: Message) => ReactNode;
}

/** Messages, cards and a message box. For another layout, use `useThread`, `CardList` and `Rows`. */
export function Thread({ cards, words, renderText = asItIs, openPage, ...options }: ThreadProps): ReactNode {
  const host = useThread(options, openPage === undefined ? {} : { openPage });
  return <CardHostProvider host={host} cards={cards} words={words}><Talk host={host} renderText={renderText} /></CardHostProvider>;
}

function Talk({ host, renderText }: MessagesProps): ReactNode {
  const words = useWords();
  const { room, isAway, jump, ...events } = useStickyEnd(host.state.messages.findLast(({ role }) => role === "user")?.id);
  return (
    <div className="fh-cards fh-thread">
      <div ref={room} className="fh-cards fh-scroll" role="region" aria-label={words.messages} tabIndex={0} {...events}>
        <Messages host={host} renderText={renderText} />
        <CardList host={host} />
      </div>
      {isAway && <Button className="fh-button fh-plain fh-little fh-jump" onClick={jump}>{words.jump}</Button>}
      <Composer host={host} />
    </div>
  );
}

function asItIs(text: string): ReactNode {
  return text;
}

interface MessagesProps {
  readonly host: ThreadHost;
  readonly renderText: NonNullable<ThreadProps["renderText"]>;
}

function Messages({ host, renderText }: MessagesProps): ReactNode {
  const words = useWords();
  const { messages, run, calls } = host.state;
  const views = new Map(host.cards.map((view) => [view.call.id, view]));
  const isThinking = run.state === "running" && [...calls.values()].every(({ phase }) => phase === "settled") && messages.at(-1)?.role === "user";
  return (
    <>
      {messages.map((message) => (
        <div key={message.id} className={message.role === "user" ? "fh-said" : "fh-answer"}>
          {message.role === "user" && <span className="fh-hidden">{words.you} </span>}
          {blocksOf(message, views).map((block, index) => (
            <Fragment key={index}>{typeof block === "string" ? <div className="fh-text">{renderText(block, message)}</div> : "thought" in block ? <Thought text={block.thought} /> : <Finished views={block.views} />}</Fragment>
          ))}
        </div>
      ))}
      {isThinking && <p className="fh-context" role="status">{words.thinking}</p>}
      {run.state === "stopped" && <p className="fh-context" role="status">{words.stopped}</p>}
      {run.state === "failed" && <Note tone="red">{run.error}</Note>}
    </>
  );
}

function Thought({ text }: { text: string }): ReactNode {
  return <details className="fh-fold"><summary>{useWords().reasoning}</summary><div className="fh-text">{text}</div></details>;
}

const STAYS: ReadonlySet<string> = new Set(["denied", "timed-out"]);

/** A denied call, or one that timed out, stays a card: the person can still read it or act on it. */
function Finished({ views }: { views: readonly CardView[] }): ReactNode {
  const rows = views.filter(({ state }) => !STAYS.has(state.name));
  return (
    <>
      {rows.length > 0 && <Rows views={rows} />}
      {views.filter(({ state }) => STAYS.has(state.name)).map((view) => <ToolCard key={view.call.id} view={view} />)}
    </>
  );
}

type Block = string | { readonly thought: string } | { readonly views: CardView[] };

/** Texts and finished calls in order; open calls are shown as cards at the end. */
function blocksOf(message: Message, views: ReadonlyMap<string, CardView>): readonly Block[] {
  const blocks: Block[] = [];
  for (const part of message.parts) {
    const last = blocks.at(-1);
    if (part.type !== "call") {
      if (part.text.trim() !== "") {
        blocks.push(part.type === "text" ? part.text : { thought: part.text });
      }
      continue;
    }
    const view = views.get(part.callId);
    if (view?.call.phase !== "settled") {
      continue;
    }
    if (typeof last === "object" && "views" in last) {
      last.views.push(view);
    } else {
      blocks.push({ views: [view] });
    }
  }
  return blocks;
}

function Composer({ host: { thread, state, cards } }: { host: ThreadHost }): ReactNode {
  const words = useWords();
  const [text, setText] = useState("");
  const isWaited = cards.some(isWaiting);
  const isBusy = state.run.state === "running" || isWaited;
  const canSend = !isBusy && text.trim() !== "";
  const send = (event: FormEvent): void => {
    event.preventDefault();
    if (canSend) {
      thread.send(text.trim());
      setText("");
    }
  };
  const pressed = (event: KeyboardEvent<HTMLTextAreaElement>): void => {
    // an Enter that confirms a word of an input method must not send the message
    if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing && !event.repeat) {
      send(event);
    }
  };
  return (
    <form className="fh-composer" onSubmit={send}>
      <textarea className="fh-input" rows={2} aria-label={words.message} placeholder={isWaited ? words.answerFirst : words.message} value={text} onChange={(event) => setText(event.target.value)} onKeyDown={pressed} />
      {isBusy ? <Button onClick={() => void thread.stop()}>{words.stop}</Button> : <Button look="main" type="submit" disabled={!canSend} aria-label={words.sendMessage}>{words.send}</Button>}
    </form>
  );
}
