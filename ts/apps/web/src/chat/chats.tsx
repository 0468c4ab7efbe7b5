// One chat in the list: opened by a click, renamed in place, deleted after a confirmation.
import type { ThreadPage } from "@farhand/client";
import { Pencil, Trash2 } from "lucide-react";
import { type KeyboardEvent, type ReactNode, useState } from "react";
import { type Change, deleteThread, renameThread } from "../server.ts";
import type { Lists } from "./lists.ts";
import { go, hrefOf } from "./route.ts";
import { useSite } from "./site.ts";
import { iconFor } from "./starters.ts";
import { fill, useWords, type Words } from "./words.ts";

export type Row = ThreadPage["threads"][number];

export const ITEM = "flex min-h-[34px] items-center gap-2.5 rounded-[10px] border border-transparent px-2.5 text-[13.5px] hover:bg-sunken";

export function Group({ name, children }: { name: string; children: ReactNode }): ReactNode {
  return (
    <section aria-label={name}>
      <h2 className="px-2.5 pt-5 pb-1.5 text-xs text-muted">{name}</h2>
      <ul>{children}</ul>
    </section>
  );
}

interface ThreadItemProps {
  readonly row: Row;
  readonly isHere: boolean;
  readonly isWaiting: boolean;
  readonly lists: Pick<Lists, "forget" | "refresh">;
}

const SMALL = "grid size-[26px] place-items-center rounded-lg text-muted opacity-0 group-hover:opacity-100 group-focus-within:opacity-100 focus-visible:opacity-100 [@media(hover:none)]:opacity-100";

export function ThreadItem({ row, isHere, isWaiting, lists }: ThreadItemProps): ReactNode {
  const words = useWords();
  const { drafts } = useSite();
  const [isRenamed, setRenamed] = useState(false);
  const [fault, setFault] = useState<{ readonly words: string; readonly again: (() => void) | undefined }>();
  const title = row.title || words.untitled;
  const attempt = async (change: () => Promise<Change>, notDone: string): Promise<void> => {
    setFault(undefined);
    const result = await change();
    if (result !== "done") {
      setFault({ words: `${notDone} ${words[REASONS[result]]}`, again: result === "gone" ? undefined : () => void attempt(change, notDone) });
    }
    lists.refresh();
  };
  const remove = async (): Promise<Change> => {
    const result = await deleteThread(row.id);
    if (result !== "done" && result !== "gone") {
      return result;
    }
    if (isHere) {
      go({ view: "new" });
    }
    drafts.forget(row.id);
    lists.forget(row.id);
    return "done";
  };
  const askToRemove = (): void => {
    if (confirm(fill(words.deleteQuestion, { title }))) {
      void attempt(remove, words.notDeleted);
    }
  };
  const rename = (next: string): void => {
    setRenamed(false);
    if (next !== "" && next !== row.title) {
      void attempt(() => renameThread(row.id, next), words.notRenamed);
    }
  };
  if (isRenamed) {
    return <li><TitleField title={row.title} onDone={rename} /></li>;
  }
  const Icon = iconFor(row.title);
  return (
    <li>
      <div className="chat group relative">
        <a href={hrefOf({ view: "chat", id: row.id })} aria-current={isHere ? "page" : undefined} title={title} className={`${ITEM} ${isHere ? "is-here" : ""} py-1 [@media(hover:none)]:pr-15`}>
          <Icon size={15} className="shrink-0 text-muted" aria-hidden="true" />
          <span className="title line-clamp-2 min-w-0 flex-1 leading-[1.4] wrap-anywhere">{title}</span>
          {isWaiting && <span className="ml-auto size-1.5 shrink-0 rounded-full bg-amber forced-color-adjust-none group-focus-within:opacity-0 group-hover:opacity-0"><span className="sr-only">{words.waitingForYou}</span></span>}
        </a>
        <span className="absolute inset-y-0 right-1 flex items-center">
          <button type="button" aria-label={fill(words.renameChat, { title })} title={words.rename} onClick={() => setRenamed(true)} className={`${SMALL} hover:text-text`}><Pencil size={13} aria-hidden="true" /></button>
          <button type="button" aria-label={fill(words.deleteChat, { title })} onClick={askToRemove} className={`${SMALL} hover:text-red`}><Trash2 size={14} aria-hidden="true" /></button>
        </span>
      </div>
      {fault !== undefined && (
        <p role="alert" className="px-2.5 pb-2 text-xs text-red">{fault.words} {fault.again && <button type="button" className="text-text underline underline-offset-2" onClick={fault.again}>{words.tryAgain}</button>}</p>
      )}
    </li>
  );
}

const REASONS = { gone: "chatGone", away: "noAnswer", "signed-out": "signInFirst", refused: "refusedLater" } as const satisfies Readonly<Record<Exclude<Change, "done">, keyof Words>>;

function TitleField({ title, onDone }: { title: string; onDone: (title: string) => void }): ReactNode {
  const words = useWords();
  const [text, setText] = useState(title);
  const keyed = (event: KeyboardEvent): void => {
    if (event.key === "Enter" && !event.nativeEvent.isComposing) {
      onDone(text.trim());
    } else if (event.key === "Escape") {
      // otherwise Escape would also close the drawer around it
      event.stopPropagation();
      onDone(title);
    }
  };
  return (
    <input
      autoFocus value={text} maxLength={80} aria-label={words.newTitle} onFocus={(event) => event.target.select()} onChange={(event) => setText(event.target.value)} onKeyDown={keyed} onBlur={() => onDone(text.trim())}
      className="min-h-[34px] w-full rounded-[10px] border border-accent/50 bg-surface px-2.5 text-[13.5px]"
    />
  );
}

const A_DAY_MS = 86_400_000;

/** Newest first, grouped by the day of their last use. */
export function groupsOf(rows: readonly Row[], now: Date, words: Pick<Words, "today" | "yesterday" | "earlier">): [string, Row[]][] {
  const today = new Date(now.getFullYear(), now.getMonth(), now.getDate()).getTime();
  const nameOf = ({ updatedAt }: Row): string => {
    const at = Date.parse(updatedAt);
    return at >= today ? words.today : at >= today - A_DAY_MS ? words.yesterday : words.earlier;
  };
  const groups = new Map<string, Row[]>();
  rows.forEach((row) => groups.set(nameOf(row), [...(groups.get(nameOf(row)) ?? []), row]));
  return [...groups];
}
