// One message: the person's text, or the assistant's answer, with the actions for each.
import { type CardView, Rows, ToolCard } from "@farhand/react";
import type { FileUIPart, UIMessage } from "ai";
import { FileText, Pencil, RefreshCw } from "lucide-react";
import { Component, type KeyboardEvent, lazy, memo, type ReactNode, Suspense, useEffect, useState } from "react";
import { toolPartOf } from "./calls.ts";
import type { Conversation } from "./conversation.ts";
import { CopyButton, IconButton, MAIN, PLAIN } from "./parts.tsx";
import { fill, useWords } from "./words.ts";

/** Loaded in the background: until then, or if it fails to load, text is shown as it was written. */
const Rendered = lazy(() => import("./markdown.tsx").catch(() => ({ default: Plain })));

function Plain({ text }: { text: string }): ReactNode {
  return <p className="wrap-anywhere whitespace-pre-wrap">{text}</p>;
}

/** A text that the Markdown renderer cannot handle must not break the page. */
class OrPlain extends Component<{ readonly text: string; readonly children: ReactNode }, { readonly hasFailed: boolean }> {
  override readonly state = { hasFailed: false };

  static getDerivedStateFromError(): { readonly hasFailed: boolean } {
    return { hasFailed: true };
  }

  override render(): ReactNode {
    return this.state.hasFailed ? <Plain text={this.props.text} /> : this.props.children;
  }
}

const ACTIONS = "flex h-7 items-center gap-0.5 opacity-0 transition-opacity group-hover:opacity-100 group-focus-within:opacity-100 [@media(hover:none)]:opacity-100";

interface SaidProps {
  readonly message: UIMessage;
  readonly edit: Conversation["edit"];
}

export const Said = memo(function Said({ message, edit }: SaidProps): ReactNode {
  const words = useWords();
  const [isEdited, setEdited] = useState(false);
  const text = textOf(message);
  const files = message.parts.filter((part) => part.type === "file");
  if (isEdited && edit !== undefined) {
    const done = (next: string | undefined): void => {
      setEdited(false);
      next !== undefined && edit(message, next);
    };
    return <Editor text={text} hasFiles={files.length > 0} onDone={done} />;
  }
  return (
    <div className="group flex flex-col items-end gap-1 pl-10">
      {files.length > 0 && <ul className="flex flex-wrap justify-end gap-2">{files.map((file, index) => <li key={index}><Attached file={file} /></li>)}</ul>}
      {text !== "" && <p className="rounded-2xl min-w-0 rounded-br-md border border-transparent bg-tint px-4 py-2 wrap-anywhere whitespace-pre-wrap"><span className="sr-only">{words.you}</span>{text}</p>}
      <span className={`-mb-6 [@media(hover:none)]:-mb-4 ${ACTIONS}`}>
        {text !== "" && <CopyButton text={text} />}
        {edit !== undefined && <IconButton label={words.edit} className="size-7!" onClick={() => setEdited(true)}><Pencil size={14} aria-hidden="true" /></IconButton>}
      </span>
    </div>
  );
});

function Attached({ file: { url, filename = "", mediaType } }: { file: FileUIPart }): ReactNode {
  const isOwn = /\/api\/files\/blob_[0-9a-f]{32}$/.test(url) && !/^[a-z]+:|^\/\//i.test(url);
  if (isOwn && mediaType.startsWith("image/") && mediaType !== "image/svg+xml") {
    return <img src={url} alt={filename} className="max-h-48 max-w-full rounded-xl border border-line" />;
  }
  const inside = <><FileText size={15} className="shrink-0 text-muted" aria-hidden="true" /> <span className="truncate">{filename}</span></>;
  const look = "flex max-w-[280px] items-center gap-2 rounded-xl border border-line bg-surface px-3 py-2 text-[13px]";
  return isOwn ? <a href={url} download={filename} className={`${look} hover:bg-sunken`}>{inside}</a> : <span className={look}>{inside}</span>;
}

function Editor({ text, hasFiles, onDone }: { text: string; hasFiles: boolean; onDone: (text: string | undefined) => void }): ReactNode {
  const words = useWords();
  const [draft, setDraft] = useState(text);
  const isEmpty = draft.trim() === "" && !hasFiles;
  const keyed = (event: KeyboardEvent): void => {
    if (event.key === "Escape") {
      onDone(undefined);
    } else if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing && !isEmpty) {
      event.preventDefault();
      onDone(draft.trim());
    }
  };
  return (
    <div className="flex flex-col gap-2 rounded-2xl border border-accent/50 bg-surface p-3">
      <textarea
        autoFocus rows={2} value={draft} aria-label={words.editMessage} aria-describedby="edit-hint" onChange={(event) => setDraft(event.target.value)} onKeyDown={keyed}
        className="field-sizing-content max-h-60 min-h-14 w-full resize-none bg-transparent px-1 outline-none"
      />
      <div className="flex flex-wrap items-center justify-end gap-2">
        <p id="edit-hint" className="mr-auto text-xs text-muted">{words.editHint}</p>
        <button type="button" className={PLAIN} onClick={() => onDone(undefined)}>{words.cancel}</button>
        <button type="button" className={MAIN} disabled={isEmpty} onClick={() => onDone(draft.trim())}>{words.send}</button>
      </div>
    </div>
  );
}

function textOf({ parts }: UIMessage): string {
  return parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n\n").trim();
}

interface AnswerProps {
  readonly message: UIMessage;
  readonly views: Conversation["views"];
  readonly isLast: boolean;
  readonly isOver: boolean;
  readonly regenerate: (() => void) | undefined;
}

/** Texts and finished calls in order; open calls are shown as cards at the end of the chat. */
export function Answer({ message, views, isLast, isOver, regenerate }: AnswerProps): ReactNode {
  const words = useWords();
  const text = textOf(message);
  const blocks = blocksOf(message, views);
  const hasActions = isOver && (text !== "" || regenerate !== undefined);
  if (blocks.length === 0 && !hasActions) {
    return null;
  }
  return (
    <div className="group flex flex-col gap-4">
      {blocks.map((block) => {
        switch (block.kind) {
          case "text":
            return <OrPlain key={block.key} text={block.text}><Suspense fallback={<Plain text={block.text} />}><Rendered text={block.text} /></Suspense></OrPlain>;
          case "thought":
            return <Thought key={block.key} id={block.key} text={block.text} isNow={block.isNow} />;
          case "calls":
            return <Finished key={block.key} views={block.views} isLast={isLast} />;
        }
      })}
      {hasActions && (
        <span className={`-mt-3 -mb-4 -ml-1.5 ${ACTIONS} ${isLast ? "opacity-100!" : ""}`}>
          {text !== "" && <CopyButton text={text} />}
          {regenerate !== undefined && <IconButton label={words.regenerate} className="size-7!" onClick={regenerate}><RefreshCw size={14} aria-hidden="true" /></IconButton>}
        </span>
      )}
    </div>
  );
}

/** When this page saw the reasoning start, and how long it took: no record has that. */
const THOUGHTS = new Map<string, { readonly began: number; readonly tookMs?: number }>();

function Thought({ id, text, isNow }: { id: string; text: string; isNow: boolean }): ReactNode {
  const words = useWords();
  const [tookMs, setTook] = useState(THOUGHTS.get(id)?.tookMs);
  useEffect(() => {
    const seen = THOUGHTS.get(id);
    if (isNow && seen === undefined) {
      THOUGHTS.set(id, { began: Date.now() });
    } else if (!isNow && seen !== undefined && seen.tookMs === undefined) {
      const took = Date.now() - seen.began;
      THOUGHTS.set(id, { ...seen, tookMs: took });
      setTook(took);
    }
  }, [id, isNow]);
  const name = isNow ? words.reasoningNow : tookMs === undefined ? words.reasoning : fill(words.thoughtFor, { time: secondsOf(tookMs) });
  // open while it is written, folded when it is complete, then as the person chooses
  return (
    <details key={String(isNow)} open={isNow} className="text-[13px] text-muted">
      <summary className="w-fit cursor-pointer">{name}</summary>
      <p className="mt-1 border-l-2 border-line pl-3 wrap-anywhere whitespace-pre-wrap">{text}</p>
    </details>
  );
}

export function secondsOf(ms: number): string {
  const seconds = Math.max(1, Math.round(ms / 1_000));
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

const STAYS: ReadonlySet<string> = new Set(["denied", "timed-out"]);

/** In the last answer, a denied call or one that timed out stays a card: the person can still act on it. */
function Finished({ views, isLast }: { views: readonly CardView[]; isLast: boolean }): ReactNode {
  const cards = isLast ? views.filter(({ state }) => STAYS.has(state.name)) : [];
  const rows = views.filter((view) => !cards.includes(view));
  return (
    <>
      {rows.length > 0 && <Rows views={rows} />}
      {cards.map((view) => <ToolCard key={view.call.id} view={view} />)}
    </>
  );
}

type Block =
  | { readonly kind: "text"; readonly key: string; readonly text: string }
  | { readonly kind: "thought"; readonly key: string; readonly text: string; readonly isNow: boolean }
  | { readonly kind: "calls"; readonly key: string; readonly views: CardView[] };

export function blocksOf(message: UIMessage, views: Conversation["views"]): readonly Block[] {
  const blocks: Block[] = [];
  message.parts.forEach((part, index) => {
    const key = `${message.id}-${index}`;
    const view = views.get(toolPartOf(part)?.toolCallId ?? "");
    const last = blocks.at(-1);
    if (part.type === "text" && part.text.trim() !== "") {
      blocks.push({ kind: "text", key, text: part.text.trim() });
    } else if (part.type === "reasoning" && part.text.trim() !== "") {
      blocks.push({ kind: "thought", key, text: part.text.trim(), isNow: part.state === "streaming" });
    } else if (view?.call.phase === "settled" && last?.kind === "calls") {
      last.views.push(view);
    } else if (view?.call.phase === "settled") {
      blocks.push({ kind: "calls", key, views: [view] });
    }
  });
  return blocks;
}
