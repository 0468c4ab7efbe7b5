// The chat page: list of chats, chat, side panel. Owns which of them is shown; each view manages itself.
import { randomId } from "@farhand/client";
import type { About } from "@farhand/protocol";
import { mendsItself } from "@farhand/react";
import { lazy, type ReactNode, Suspense, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import { SIGN_IN } from "../server.ts";
import { AboutProvider, logoOf, useAskedAbout } from "./about.ts";
import { useAttention } from "./attention.ts";
import { type Lists, useLists } from "./lists.ts";
import type { OpenedPage } from "./panel.tsx";
import { untilLoaded } from "./parts.tsx";
import { go, type Route, useRoute } from "./route.ts";
import { Sidebar } from "./sidebar.tsx";
import { useHands, useSite } from "./site.ts";
import type { Starter } from "./starters.ts";
import { useTools } from "./tools.ts";
import { TopBar } from "./top-bar.tsx";
import { fill, useWords, wordsOf, WordsProvider } from "./words.ts";

// loaded immediately, but not awaited: chats and their list come first
const loading = untilLoaded(() => import("./chat-view.tsx"));
const ChatView = lazy(async () => ({ default: (await loading).ChatView }));
const Inbox = lazy(async () => ({ default: (await untilLoaded(() => import("./inbox.tsx"))).Inbox }));
const Panel = lazy(async () => ({ default: (await untilLoaded(() => import("./panel.tsx"))).Panel }));
const SignedOut = lazy(async () => ({ default: (await untilLoaded(() => import("./signed-out.tsx"))).SignedOut }));
const KeptAnswers = lazy(async () => ({ default: (await untilLoaded(() => import("./signed-out.tsx"))).KeptAnswers }));

interface Draft {
  readonly id: string;
  readonly prompt?: string;
}

export function ChatPage(): ReactNode {
  const about = useAskedAbout();
  const words = useMemo(() => wordsOf(about?.words), [about]);
  return (
    <AboutProvider value={about}>
      <WordsProvider value={words}><Columns about={about} /></WordsProvider>
    </AboutProvider>
  );
}

function Columns({ about }: { about: About | undefined }): ReactNode {
  const words = useWords();
  const route = useRoute();
  const lists = useLists();
  const tools = useTools();
  const [page, setPage] = usePanel(route);
  const [isMenuOpen, setMenuOpen] = useState(false);
  const [draft, setDraft] = useState<Draft>(() => ({ id: randomId() }));
  if (route.view === "new" && draft.prompt !== undefined) {
    // the person left the chat before its prompt was sent
    setDraft({ id: randomId() });
  }
  // loaded before the first answer arrives, and before a file is added while the server does not respond
  useEffect(() => [() => import("./message-list.tsx"), () => import("./attachment-list.tsx")].forEach((load) => void untilLoaded<unknown>(load)), []);
  useEffect(() => setMenuOpen(false), [route.view === "chat" ? route.id : route.view]);
  const begin = (prompt?: string): void => {
    const next = { id: randomId(), ...(prompt === undefined ? {} : { prompt }) };
    if (prompt !== undefined) {
      go({ view: "chat", id: next.id });
    }
    setDraft(next);
  };
  const onStarter = ({ prompt }: Starter): void => begin(prompt);
  // otherwise the prompt would be sent again whenever the person returns to its chat
  const onPromptSent = (): void => setDraft({ id: randomId() });
  const id = route.view === "chat" ? route.id : draft.id;
  const title = lists.threads.find((row) => row.id === id)?.title;
  const place = route.view === "inbox" ? words.inbox : route.view === "new" ? "" : (title ?? "");
  useAttention(lists.isLoaded ? lists.inbox : undefined, place, { name: about?.title ?? "farhand", logo: about === undefined ? undefined : logoOf(about) });
  return (
    <div className="flex h-full overflow-hidden">
      <Drawer side="left" label={words.chats} isOpen={isMenuOpen} onClose={() => setMenuOpen(false)}>
        <Sidebar route={route} lists={lists} starters={trials(about, lists)} onStarter={onStarter} />
      </Drawer>
      <main className="flex min-w-0 flex-1 flex-col">
        <Notices />
        {route.view === "inbox" ? (
          <>
            <TopBar title={words.inbox} onMenu={() => setMenuOpen(true)} />
            <div data-scrolls className="relative min-h-0 flex-1 overflow-y-auto"><Suspense><Inbox calls={lists.inbox} isLoaded={lists.isLoaded} /></Suspense></div>
          </>
        ) : (
          <Suspense fallback={<TopBar title="" onMenu={() => setMenuOpen(true)} />}><ChatView key={id} id={id} title={title} prompt={draft.id === id ? draft.prompt : undefined} onPromptSent={onPromptSent} tools={tools} isNew={route.view === "new"} onBegun={() => begin()} onStarter={onStarter} onMenu={() => setMenuOpen(true)} /></Suspense>
        )}
      </main>
      {page !== undefined && (
        <Drawer side="right" label={words.pageBeside} isOpen onClose={() => setPage(undefined)}>
          <Suspense><Panel page={page} onClose={() => setPage(undefined)} /></Suspense>
        </Drawer>
      )}
    </div>
  );
}

/** The notices for a signed-out person and for refused answers, above every view. */
function Notices(): ReactNode {
  const isOut = useSyncExternalStore(SIGN_IN.subscribe, () => SIGN_IN.isOut);
  const { deliveries } = useHands();
  const isRefused = [...deliveries.values()].some((each) => each.state === "refused" && mendsItself(each));
  return <Suspense>{isOut && <SignedOut />}{isRefused && <KeptAnswers />}</Suspense>;
}

/** In the demo: up to three things to try that are not in the list of chats yet. */
function trials(about: About | undefined, { threads }: Lists): readonly Starter[] {
  const asked = new Set(threads.map(({ title }) => title));
  return threads.length === 0 || about?.demo !== true ? [] : (about.starters ?? []).filter(({ title, prompt }) => !asked.has(title) && !asked.has(prompt)).slice(0, 3);
}

interface DrawerProps {
  readonly side: "left" | "right";
  readonly label: string;
  readonly isOpen: boolean;
  readonly onClose: () => void;
  readonly children: ReactNode;
}

const PLACES = {
  left: "w-[228px] border-r max-[760px]:fixed max-[760px]:inset-y-0 max-[760px]:left-0 max-[760px]:z-30 max-[760px]:w-[264px] max-[760px]:shadow-soft",
  right: "w-[452px] border-l max-[1100px]:fixed max-[1100px]:inset-y-0 max-[1100px]:right-0 max-[1100px]:z-30 max-[1100px]:max-w-[92vw] max-[1100px]:shadow-soft",
} as const;

/** A column if there is room, otherwise a drawer over the chat. */
function Drawer({ side, label, isOpen, onClose, children }: DrawerProps): ReactNode {
  const words = useWords();
  const shade = side === "left" ? "min-[760px]:hidden" : "min-[1100px]:hidden";
  const cover = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    const pressed = ({ key, defaultPrevented }: KeyboardEvent): void => {
      // it covers the chat, so the focus may be anywhere
      if (key === "Escape" && !defaultPrevented && cover.current !== null && getComputedStyle(cover.current).display !== "none") {
        onClose();
      }
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, [onClose]);
  return (
    <>
      {isOpen && <button ref={cover} type="button" aria-label={fill(words.close, { name: label })} onClick={onClose} className={`fixed inset-0 z-20 bg-black/30 ${shade}`} />}
      <div onKeyDown={(event) => event.key === "Escape" && onClose()} className={`shrink-0 border-line bg-ground ${PLACES[side]} ${isOpen || side === "right" ? "" : "max-[760px]:hidden"}`}>{children}</div>
    </>
  );
}

/** The page beside the chat, and the function with which cards and handlers open one. Closed when the chat changes. */
function usePanel(route: Route): [OpenedPage | undefined, (page: OpenedPage | undefined) => void] {
  const site = useSite();
  const [page, setPage] = useState<OpenedPage>();
  const open = useCallback((url: URL): string => {
    const key = `panel-${randomId().slice(0, 8)}`;
    setPage({ url, key });
    return key;
  }, []);
  // before the views below use the function for the first time
  useLayoutEffect(() => void (site.openPage = open), [site, open]);
  site.openPage ??= open;
  const place = route.view === "chat" ? route.id : route.view;
  useEffect(() => setPage(undefined), [place]);
  return [page, setPage];
}
