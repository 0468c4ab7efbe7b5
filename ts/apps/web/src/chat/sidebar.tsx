// The list of chats, and links to the other views.
import { Bell, BellOff, BellRing, ChartNoAxesGantt, Inbox, Monitor, Moon, Plug, Plus, Search, Sun } from "lucide-react";
import { type ReactNode, useCallback, useEffect, useRef, useState, useSyncExternalStore } from "react";
import { BASE } from "../base.ts";
import { askThreads, SIGN_IN } from "../server.ts";
import { Brand } from "../theme/brand.tsx";
import { logoOf, useAbout } from "./about.ts";
import { useNotify } from "./attention.ts";
import { Group, groupsOf, ITEM, type Row, ThreadItem } from "./chats.tsx";
import { type Lists, withOlder } from "./lists.ts";
import { IconButton } from "./parts.tsx";
import { hrefOf, type Route } from "./route.ts";
import { iconFor, type Starter } from "./starters.ts";
import { useIsConnected } from "./site.ts";
import { useTheme } from "./theme.ts";
import { fill, useWords } from "./words.ts";

export interface SidebarProps {
  readonly route: Route;
  readonly lists: Lists;
  readonly starters: readonly Starter[];
  readonly onStarter: (starter: Starter) => void;
}

export function Sidebar({ route, lists, starters, onStarter }: SidebarProps): ReactNode {
  const words = useWords();
  const about = useAbout();
  const logo = about === undefined ? undefined : logoOf(about);
  const [query, setQuery] = useState("");
  const found = useSearch(query.trim(), lists.threads);
  const rows = found?.rows ?? lists.threads;
  const more = found === undefined ? lists.more : found.more;
  const waiting = new Set(lists.inbox.map(({ threadId }) => threadId));
  return (
    <nav aria-label={words.chats} className="flex h-full flex-col overflow-hidden">
      <div className="pt-3.5 pr-2.5 pb-3 pl-[18px]"><Brand {...(logo === undefined ? {} : { logo })} name={about?.title ?? "farhand"} /></div>
      <ul className="px-2.5">
        <Item href={hrefOf({ view: "new" })} icon={<Plus size={16} />} isHere={route.view === "new"}>{words.newChat}</Item>
        <Item href={hrefOf({ view: "inbox" })} icon={<Inbox size={16} />} isHere={route.view === "inbox"} badge={lists.inbox.length}>{words.inbox}</Item>
        {about?.inspector !== false && (
          <>
            <Item href={`${BASE}/_farhand`} icon={<ChartNoAxesGantt size={16} />}>{words.inspector}</Item>
            <Item href={`${BASE}/_farhand#/clients`} icon={<Plug size={16} />}>{words.clients}</Item>
          </>
        )}
      </ul>
      {(lists.threads.length > 0 || query !== "") && (
        <label className="mx-2.5 mt-3 flex items-center gap-2.5 rounded-[10px] border border-line bg-surface px-2.5 text-[13.5px] focus-within:border-accent/50">
          <Search size={15} className="shrink-0 text-muted" aria-hidden="true" />
          <input type="search" value={query} aria-label={words.searchChats} placeholder={words.searchChats} onChange={(event) => setQuery(event.target.value)} className="min-h-8 w-full min-w-0 bg-transparent outline-none placeholder:text-muted" />
        </label>
      )}
      <div className="relative min-h-0 flex-1 overflow-y-auto px-2.5 pb-4">
        {groupsOf(rows, new Date(), words).map(([name, each]) => (
          <Group key={name} name={name}>
            {each.map((row) => <ThreadItem key={row.id} row={row} isHere={route.view === "chat" && route.id === row.id} isWaiting={waiting.has(row.id)} lists={lists} />)}
          </Group>
        ))}
        {found?.rows.length === 0 && <p role="status" className="px-2.5 pt-5 text-[13px] text-muted">{words.noMatches}</p>}
        {more !== undefined && <Older onSeen={more} />}
        {starters.length > 0 && (
          <Group name={words.tryOne}>
            {starters.map((starter) => {
              const Icon = iconFor(starter.title, starter.prompt);
              return (
                <li key={starter.title}>
                  <button type="button" className={`${ITEM} w-full text-left`} onClick={() => onStarter(starter)}>
                    <Icon size={16} className="shrink-0 text-muted" aria-hidden="true" /> <span className="truncate">{starter.title}</span>
                  </button>
                </li>
              );
            })}
          </Group>
        )}
      </div>
      <Foot />
    </nav>
  );
}

interface ItemProps {
  readonly href: string;
  readonly icon: ReactNode;
  readonly children: ReactNode;
  readonly isHere?: boolean;
  readonly badge?: number;
}

function Item({ href, icon, children, isHere = false, badge = 0 }: ItemProps): ReactNode {
  const words = useWords();
  return (
    <li>
      <a href={href} aria-current={isHere ? "page" : undefined} className={`${ITEM} ${isHere ? "is-here" : "text-text"}`}>
        <span className="shrink-0 text-muted" aria-hidden="true">{icon}</span>
        <span className="truncate">{children}</span>
        {badge > 0 && <span className="ml-auto rounded-full bg-amber-tint px-2 text-xs font-semibold text-amber"><span aria-hidden="true">{badge}</span><span className="sr-only">{fill(words.waitingCount, { count: badge })}</span></span>}
      </a>
    </li>
  );
}

const SEARCH_MS = 200;

interface Found {
  readonly rows: readonly Row[];
  readonly more: (() => Promise<void>) | undefined;
}

/** The found chats; undefined without a search. The server searches, since it knows all chats. */
function useSearch(query: string, threads: readonly Row[]): Found | undefined {
  const [found, setFound] = useState<{ readonly query: string; readonly rows: readonly Row[]; readonly next: string | undefined }>();
  const shown = useRef({ query, count: 0 });
  if (shown.current.query !== query) {
    shown.current = { query, count: 0 };
  }
  useEffect(() => {
    if (query === "") {
      setFound(undefined);
      return undefined;
    }
    let isCurrent = true;
    const search = async (): Promise<void> => {
      let rows: readonly Row[] = [];
      let next: string | undefined;
      // as many pages as the person has scrolled through
      do {
        const page = await askThreads({ words: query, after: next });
        if (!isCurrent || typeof page === "string") {
          return;
        }
        rows = withOlder(rows, page.threads);
        next = page.next;
      } while (next !== undefined && rows.length < shown.current.count);
      setFound({ query, rows, next });
    };
    const timer = setTimeout(() => void search(), SEARCH_MS);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
    // search again after a chat was renamed, deleted or used
  }, [query, threads]);
  const next = found?.query === query ? found.next : undefined;
  const more = useCallback(async () => {
    const page = await askThreads({ words: query, after: next });
    if (typeof page !== "string") {
      setFound((before) => {
        if (before?.query !== query || before.next !== next) {
          return before;
        }
        const rows = withOlder(before.rows, page.threads);
        shown.current = { query, count: rows.length };
        return { query, rows, next: page.next };
      });
    }
  }, [query, next]);
  return query === "" || found === undefined ? undefined : { rows: found.rows, more: next === undefined ? undefined : more };
}

/** At the end of the list: what is older is asked for when somebody gets there. */
function Older({ onSeen }: { onSeen: () => unknown }): ReactNode {
  const words = useWords();
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    // a new observer for each page: the next page is requested if the end is still visible
    const watcher = new IntersectionObserver((seen) => void (seen.some(({ isIntersecting }) => isIntersecting) && onSeen()));
    button.current !== null && watcher.observe(button.current);
    return () => watcher.disconnect();
  }, [onSeen]);
  return <button ref={button} type="button" className="mx-2.5 mt-3 text-[13px] text-muted underline underline-offset-2" onClick={() => void onSeen()}>{words.olderChats}</button>;
}

const THEMES = { system: [Monitor, "themeSystem"], light: [Sun, "themeLight"], dark: [Moon, "themeDark"] } as const;
const BELLS = { off: [Bell, "notify"], on: [BellRing, "notifyOff"], blocked: [BellOff, "notifyBlocked"] } as const;

/** The settings for this browser. */
function Switches(): ReactNode {
  const words = useWords();
  const [theme, nextTheme] = useTheme();
  const notify = useNotify();
  const [ThemeIcon, themeWords] = THEMES[theme];
  const [BellIcon, bellWords] = BELLS[notify?.[0] ?? "off"];
  return (
    <>
      {notify !== undefined && <IconButton label={words[bellWords]} disabled={notify[0] === "blocked"} aria-pressed={notify[0] === "on"} className="size-7! disabled:opacity-50" onClick={notify[1]}><BellIcon size={15} aria-hidden="true" /></IconButton>}
      <IconButton label={words[themeWords]} className="size-7!" onClick={nextTheme}><ThemeIcon size={15} aria-hidden="true" /></IconButton>
    </>
  );
}

function Foot(): ReactNode {
  const words = useWords();
  const model = useAbout()?.model;
  const isOut = useSyncExternalStore(SIGN_IN.subscribe, () => SIGN_IN.isOut);
  const isLive = useIsConnected() && !isOut;
  return (
    <div className="mx-3.5 border-t border-line px-1.5 pt-3 pb-4 text-xs text-muted">
      <p role="status" className={`flex items-center gap-2 ${isLive ? "text-green" : "text-amber"}`}>
        <span className="size-1.5 shrink-0 rounded-full bg-current" aria-hidden="true" />
        {isLive ? words.connected : isOut ? words.signedOut : words.notConnected}
      </p>
      <div className="mt-1 -mr-1.5 -mb-1 flex items-center gap-0.5">
        <p className="mr-auto [overflow-wrap:anywhere]">{model?.startsWith("scripted") ? words.scripted : model}</p>
        <Switches />
      </div>
    </div>
  );
}
