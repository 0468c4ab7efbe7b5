// The chats and where else one can go.
import type { ThreadPage } from "@farhand/client";
import { Inbox, Plug, Plus, Trash2, Workflow } from "lucide-react";
import { type ReactNode, useSyncExternalStore } from "react";
import { BASE } from "../base.ts";
import { deleteThread } from "../server.ts";
import { Brand } from "../theme/brand.tsx";
import { go, hrefOf, type Route } from "./route.ts";
import { iconFor, type Sample } from "./samples.ts";
import { useSite } from "./site.ts";

type Row = ThreadPage["threads"][number];

export interface SidebarProps {
  readonly route: Route;
  readonly threads: readonly Row[];
  readonly inboxCount: number;
  readonly model: string | undefined;
  readonly samples: readonly Sample[];
  readonly onSample: (sample: Sample) => void;
  readonly onGone: () => void;
}

export function Sidebar(props: SidebarProps): ReactNode {
  const { route, threads, inboxCount, samples, onSample, onGone } = props;
  return (
    <nav aria-label="Chats" className="flex h-full flex-col overflow-hidden">
      <div className="px-[18px] pt-4 pb-3"><Brand /></div>
      <ul className="px-2.5">
        <Item href={hrefOf({ view: "new" })} icon={<Plus size={16} />} isHere={route.view === "new"}>New chat</Item>
        <Item href={hrefOf({ view: "inbox" })} icon={<Inbox size={16} />} isHere={route.view === "inbox"} badge={inboxCount}>Inbox</Item>
        <Item href={`${BASE}/_farhand`} icon={<Workflow size={16} />}>Inspector</Item>
        <Item href={`${BASE}/_farhand#/clients`} icon={<Plug size={16} />}>Clients</Item>
      </ul>
      <div className="min-h-0 flex-1 overflow-y-auto px-2.5 pb-4">
        {groupsOf(threads, new Date()).map(([name, rows]) => (
          <Group key={name} name={name}>
            {rows.map((row) => <ThreadItem key={row.id} row={row} isHere={route.view === "chat" && route.id === row.id} onGone={onGone} />)}
          </Group>
        ))}
        {samples.length > 0 && (
          <Group name="Try one">
            {samples.map((sample) => (
              <li key={sample.title}>
                <button type="button" className={`${ITEM} w-full text-left`} onClick={() => onSample(sample)}>
                  <sample.Icon size={16} className="shrink-0 text-muted" aria-hidden="true" /> <span className="truncate">{sample.title}</span>
                </button>
              </li>
            ))}
          </Group>
        )}
      </div>
      <Foot model={props.model} />
    </nav>
  );
}

const ITEM = "flex min-h-[34px] items-center gap-2.5 rounded-[10px] border border-transparent px-2.5 text-[13.5px] hover:bg-sunken";

interface ItemProps {
  readonly href: string;
  readonly icon: ReactNode;
  readonly children: ReactNode;
  readonly isHere?: boolean;
  readonly badge?: number;
}

function Item({ href, icon, children, isHere = false, badge = 0 }: ItemProps): ReactNode {
  return (
    <li>
      <a href={href} aria-current={isHere ? "page" : undefined} className={`${ITEM} ${isHere ? HERE : "text-text"}`}>
        <span className="shrink-0 text-muted" aria-hidden="true">{icon}</span>
        <span className="truncate">{children}</span>
        {badge > 0 && <span className="ml-auto rounded-full bg-amber-tint px-2 text-xs font-semibold text-amber"><span aria-hidden="true">{badge}</span><span className="sr-only">{`, ${badge} waiting`}</span></span>}
      </a>
    </li>
  );
}

const HERE = "border-line! bg-surface font-medium shadow-[0_1px_2px_rgb(0_0_0/4%)] hover:bg-surface";

function Group({ name, children }: { name: string; children: ReactNode }): ReactNode {
  return (
    <section aria-label={name}>
      <h2 className="px-2.5 pt-5 pb-1.5 text-xs text-muted">{name}</h2>
      <ul>{children}</ul>
    </section>
  );
}

function ThreadItem({ row, isHere, onGone }: { row: Row; isHere: boolean; onGone: () => void }): ReactNode {
  const remove = async (): Promise<void> => {
    if (confirm(`Delete “${row.title}” with everything in it? This cannot be undone.`) && (await deleteThread(row.id))) {
      if (isHere) {
        go({ view: "new" });
      }
      onGone();
    }
  };
  const Icon = iconFor(row.title);
  return (
    <li className="group relative">
      <a href={hrefOf({ view: "chat", id: row.id })} aria-current={isHere ? "page" : undefined} className={`${ITEM} ${isHere ? HERE : ""} group-hover:pr-8`}>
        <Icon size={15} className="shrink-0 text-muted" aria-hidden="true" />
        <span className="truncate">{row.title || "Untitled"}</span>
        {row.openCalls > 0 && <span className="ml-auto size-1.5 shrink-0 rounded-full bg-amber"><span className="sr-only">, waiting for you</span></span>}
      </a>
      <button type="button" aria-label={`Delete ${row.title}`} onClick={() => void remove()} className="absolute top-1 right-1 grid size-[26px] place-items-center rounded-lg text-muted opacity-0 group-hover:opacity-100 hover:text-red focus-visible:opacity-100">
        <Trash2 size={14} aria-hidden="true" />
      </button>
    </li>
  );
}

function Foot({ model }: { model: string | undefined }): ReactNode {
  const { feed } = useSite();
  const isLive = useSyncExternalStore(feed.watch, () => feed.isLive);
  return (
    <div className="mx-3.5 border-t border-line px-1.5 pt-3 pb-4 text-xs text-muted">
      <p role="status" className={`flex items-center gap-2 ${isLive ? "text-green" : "text-amber"}`}>
        <span className="size-1.5 rounded-full bg-current" aria-hidden="true" />
        {isLive ? "This browser is connected" : "Not connected. Trying again."}
      </p>
      {model !== undefined && <p className="mt-1.5">{model.startsWith("scripted") ? "Scripted model, no key needed" : model}</p>}
    </div>
  );
}

const A_DAY_MS = 86_400_000;

/** Newest first, under the day that they were last used on. */
export function groupsOf(rows: readonly Row[], now: Date): [string, Row[]][] {
  const today = new Date(now.getFullYear(), now.getMonth(), now.getDate()).getTime();
  const nameOf = ({ updatedAt }: Row): string => {
    const at = Date.parse(updatedAt);
    return at >= today ? "Today" : at >= today - A_DAY_MS ? "Yesterday" : "Earlier";
  };
  const groups = new Map<string, Row[]>();
  rows.forEach((row) => groups.set(nameOf(row), [...(groups.get(nameOf(row)) ?? []), row]));
  return [...groups];
}
