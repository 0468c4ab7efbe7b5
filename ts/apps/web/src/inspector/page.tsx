// The Inspector: tabs at the top; under Runs, the list, the run and the call side by side if there is room.
import type { InspectedRun, InspectedRuns, InspectedServer, InspectedWaiting } from "@farhand/protocol";
import { ChartNoAxesGantt, CodeXml, Inbox, List, type LucideIcon, Plug } from "lucide-react";
import { type ReactNode, useEffect, useState, useSyncExternalStore } from "react";
import { BASE } from "../base.ts";
import { logoOf } from "../chat/about.ts";
import { Pill } from "../chat/parts.tsx";
import { isQuestion } from "../chat/question.ts";
import { SignedOut } from "../chat/signed-out.tsx";
import { askAbout, SIGN_IN } from "../server.ts";
import { Brand } from "../theme/brand.tsx";
import { showTabIcon } from "../theme/tab-icon.ts";
import { feed, useAsked } from "./ask.ts";
import { Missing, Nothing } from "./elements.tsx";
import { CallPanel } from "./call-panel.tsx";
import { InboxView } from "./inbox-view.tsx";
import { ClientsView, EventsView, ToolsView } from "./lists-view.tsx";
import { useReplay } from "./replay.ts";
import { go, hrefOf, type Route, type Tab, TABS, useRoute } from "./route.ts";
import { RunList } from "./run-list.tsx";
import { AllRuns, RunView } from "./run-view.tsx";

const LOOKS: Readonly<Record<Tab, { readonly words: string; readonly icon: LucideIcon }>> = {
  runs: { words: "Runs", icon: ChartNoAxesGantt },
  inbox: { words: "Inbox", icon: Inbox },
  clients: { words: "Clients", icon: Plug },
  tools: { words: "Tools", icon: CodeXml },
  events: { words: "Events", icon: List },
};

const WHILE_RUNNING_MS = 1_000;

export function InspectorPage(): ReactNode {
  const route = useRoute();
  const isOut = useSyncExternalStore(SIGN_IN.subscribe, () => SIGN_IN.isOut);
  useEffect(() => void (isOut || askAbout().then((about) => typeof about !== "string" && showTabIcon(logoOf(about), false))), [isOut]);
  return (
    <div className="flex h-full flex-col">
      <TopBar tab={route.tab} />
      {isOut && <SignedOut />}
      {route.tab === "runs" ? <Runs route={route} /> : <Other tab={route.tab} />}
    </div>
  );
}

function TopBar({ tab }: { tab: Tab }): ReactNode {
  const isLive = useSyncExternalStore(feed.watch, () => feed.isLive);
  const isOut = useSyncExternalStore(SIGN_IN.subscribe, () => SIGN_IN.isOut);
  const { answer } = useAsked<InspectedServer>("");
  const waiting = useAsked<{ readonly calls: readonly InspectedWaiting[] }>("/inbox").answer;
  const open = waiting.state === "here" ? waiting.value.calls.filter(isQuestion).length : 0;
  return (
    <header className="flex h-[50px] shrink-0 items-stretch gap-x-5 overflow-x-auto border-b max-[420px]:gap-x-2 border-line bg-surface px-4 lg:px-[18px]">
      <a href={`${BASE}/`} aria-label="farhand, the chat" className="flex shrink-0 items-center no-underline max-[620px]:w-6 max-[620px]:overflow-hidden"><Brand /></a>
      <nav aria-label="Inspector" className="flex items-stretch gap-x-1">
        {TABS.map((each) => {
          const { words, icon: Icon } = LOOKS[each];
          const look = each === tab ? "border-b-2 border-accent text-text font-medium" : "pb-0.5 text-muted hover:text-text";
          return (
            <a key={each} href={hrefOf({ tab: each })} aria-current={each === tab ? "page" : undefined} className={`inline-flex items-center gap-2 px-2.5 no-underline max-[420px]:px-2 ${look}`}>
              <Icon size={14} aria-hidden="true" /> <span className="max-[620px]:sr-only">{words}</span>
              {each === "inbox" && open > 0 && <span className="rounded-full bg-amber-tint px-1.5 text-xs font-semibold text-amber">{open}<span className="sr-only"> open question{open === 1 ? "" : "s"}</span></span>}
            </a>
          );
        })}
      </nav>
      <span className="ml-auto flex items-center gap-2.5">
        {isOut ? <Pill tone="amber" dot>Signed out</Pill> : isLive ? <Pill tone="green" dot>Live</Pill> : <Pill tone="amber" dot>Connecting</Pill>}
        {answer.state === "here" && <span className="hidden rounded-full bg-grey-tint px-3 py-1 text-xs whitespace-nowrap text-muted min-[900px]:inline">{answer.value.subject}, {location.host}</span>}
      </span>
    </header>
  );
}

function Other({ tab }: { tab: Exclude<Tab, "runs"> }): ReactNode {
  const views = { inbox: InboxView, clients: ClientsView, tools: ToolsView, events: EventsView };
  const View = views[tab];
  return (
    <main className="relative min-h-0 flex-1 overflow-y-auto">
      <div className={`mx-auto flex flex-col gap-4 px-4 py-6 ${tab === "inbox" ? "max-w-[660px]" : "max-w-[860px]"}`}>
        <h1 className="m-0 text-[17px] font-semibold">{LOOKS[tab].words}</h1>
        <View />
      </div>
    </main>
  );
}

function Runs({ route }: { route: Route }): ReactNode {
  const { runId, callId } = route;
  const isPicked = runId !== undefined || callId !== undefined;
  useFirstRun(isPicked);
  return (
    <div className="flex min-h-0 flex-1">
      <div className={`min-h-0 w-[246px] shrink-0 flex-col border-r border-line max-[760px]:w-full max-[760px]:border-0 ${isPicked ? "flex max-[760px]:hidden" : "flex"}`}>
        <RunList chosen={runId} />
      </div>
      <RunAndCall key={runId ?? "none"} runId={runId} callId={callId} />
    </div>
  );
}

/** If there is room, the newest run is shown immediately; on a narrow screen the list comes first. */
function useFirstRun(isPicked: boolean): void {
  const [isWide] = useState(() => matchMedia("(min-width: 761px)").matches);
  const { answer } = useAsked<InspectedRuns>(isPicked || !isWide ? undefined : "/runs?limit=1");
  const first = answer.state === "here" ? answer.value.runs[0]?.runId : undefined;
  useEffect(() => {
    if (!isPicked && first !== undefined && location.hash.replace(/^#\/?/, "") in { "": 0, runs: 0 }) {
      history.replaceState(null, "", hrefOf({ tab: "runs", runId: first }));
      dispatchEvent(new HashChangeEvent("hashchange"));
    }
  }, [isPicked, first]);
}

function RunAndCall({ runId, callId }: { runId: string | undefined; callId: string | undefined }): ReactNode {
  const [isRunning, setRunning] = useState(false);
  const { answer } = useAsked<InspectedRun>(runId === undefined ? undefined : `/runs/${runId}`, isRunning ? WHILE_RUNNING_MS : undefined);
  const shown = answer.state === "here" ? answer.value : undefined;
  const replay = useReplay(runId, shown?.now ?? 0);
  useEffect(() => setRunning(shown?.run.state === "running"), [shown]);
  const back: Route = runId === undefined ? { tab: "runs" } : { tab: "runs", runId };
  useEscape(callId === undefined ? undefined : back);
  const nothing = <Nothing icon={ChartNoAxesGantt}>{callId === undefined ? "Select a run to see where its time went." : "Started outside a chat: this call was made by a program."}</Nothing>;
  return (
    <>
      <main className={`relative min-h-0 min-w-0 flex-1 overflow-y-auto ${runId === undefined && callId === undefined ? "max-[760px]:sr-only" : ""}`}>
        {shown === undefined && <h1 className="sr-only">Runs</h1>}
        {shown !== undefined ? <RunView shown={shown} callId={callId} replay={replay} /> : runId === undefined ? nothing : <div className="p-4"><AllRuns /><Missing answer={answer} icon={ChartNoAxesGantt} /></div>}
      </main>
      {callId !== undefined && (
        <div className="relative min-h-0 w-[378px] shrink-0 overflow-y-auto border-l border-line bg-surface max-[1100px]:fixed max-[1100px]:top-[50px] max-[1100px]:right-0 max-[1100px]:bottom-0 max-[1100px]:z-20 max-[1100px]:w-[min(100%,420px)] max-[1100px]:shadow-soft">
          <CallPanel key={callId} callId={callId} back={back} replay={replay} />
        </div>
      )}
    </>
  );
}

function useEscape(back: Route | undefined): void {
  useEffect(() => {
    const leave = (event: KeyboardEvent): void => {
      if (event.key === "Escape" && back !== undefined) {
        go(back);
      }
    };
    addEventListener("keydown", leave);
    return () => removeEventListener("keydown", leave);
  });
}
