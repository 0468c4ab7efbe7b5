// All calls that wait for somebody, oldest first, with the cards of the chat page: an answer given here is the same as one given there.
import type { OpenCall } from "@farhand/client";
import type { InspectedWaiting } from "@farhand/protocol";
import { type ReactNode, useEffect, useState } from "react";
import { Inbox } from "../chat/inbox.tsx";
import { isQuestion } from "../chat/question.ts";
import { KeptAnswers } from "../chat/signed-out.tsx";
import { Site, SiteProvider, useHands } from "../chat/site.ts";
import { askInbox } from "../server.ts";
import { feed, useAsked, whenever } from "./ask.ts";
import { hrefOf } from "./route.ts";

export function InboxView(): ReactNode {
  const [site] = useState(siteOf);
  return <SiteProvider value={site}><div className="-mx-4 -mt-6"><Refused /><Questions site={site} /></div></SiteProvider>;
}

let site: Site | undefined;

/** One for the lifetime of the page: answers are still sent after the person has switched to another tab. */
function siteOf(): Site {
  return (site ??= new Site(feed));
}

/** Answers that the server refused. */
function Refused(): ReactNode {
  const { deliveries } = useHands();
  return [...deliveries.values()].some(({ state }) => state === "refused") && <KeptAnswers />;
}

function Questions({ site }: { site: Site }): ReactNode {
  const [calls, setCalls] = useState<readonly OpenCall[]>();
  // cards need the unmasked input, since it can be edited; the Inspector's own list knows the runs
  const { answer } = useAsked<{ readonly calls: readonly InspectedWaiting[] }>("/inbox");
  const known = answer.state === "here" ? answer.value.calls : [];
  useEffect(() => {
    const look = (): void => void askInbox().then((found) => typeof found !== "string" && setCalls(found.filter(isQuestion)));
    look();
    const ends = [whenever(look), site.onReceipt(look)];
    return () => ends.forEach((end) => end());
  }, [site]);
  const hrefFor = ({ callId }: OpenCall): string => {
    const runId = known.find((each) => each.callId === callId)?.runId;
    return hrefOf({ tab: "runs", callId, ...(runId == null ? {} : { runId }) });
  };
  return <Inbox calls={calls ?? []} isLoaded={calls !== undefined} hrefFor={hrefFor} emptyWords="All caught up." />;
}
