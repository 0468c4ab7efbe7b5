// One chat: header, messages and message box. A separate chunk with everything that streams need, so that the rest of the page loads
// without it.
import type { FileUIPart } from "ai";
import { lazy, type ReactNode, Suspense, useEffect, useRef, useState } from "react";
import { Composer, FootLine } from "./composer.tsx";
import { useConversation } from "./conversation.ts";
import { NEW } from "./drafts.ts";
import { PLAIN, untilLoaded } from "./parts.tsx";
import { go, hrefOf } from "./route.ts";
import type { Starter } from "./starters.ts";
import type { Tools } from "./tools.ts";
import { useSite } from "./site.ts";
import { TopBar } from "./top-bar.tsx";
import { Welcome } from "./welcome.tsx";
import { useWords } from "./words.ts";

// not needed for the first view of the page
const Talk = lazy(async () => ({ default: (await untilLoaded(() => import("./message-list.tsx"))).Talk }));

export interface ChatViewProps {
  readonly id: string;
  /** The title in the list, which may have been renamed. */
  readonly title: string | undefined;
  /** The prompt of a starter: sent once, even if the person returns to the chat later. */
  readonly prompt: string | undefined;
  readonly onPromptSent: () => void;
  readonly tools: Tools;
  readonly isNew: boolean;
  readonly onBegun: () => void;
  readonly onStarter: (starter: Starter) => void;
  readonly onMenu: () => void;
}

export function ChatView({ id, title, prompt, onPromptSent, tools, isNew, onBegun, onStarter, onMenu }: ChatViewProps): ReactNode {
  const words = useWords();
  const { drafts } = useSite();
  const [isDraft] = useState(isNew || prompt !== undefined);
  const talk = useConversation(id, tools, isDraft);
  const isSaid = useRef(false);
  useEffect(() => {
    if (prompt !== undefined && talk.isLoaded && talk.state === "New" && !isSaid.current) {
      isSaid.current = true;
      talk.send(prompt);
      onPromptSent();
    }
  });
  const send = (text: string, files?: readonly FileUIPart[]): void => {
    talk.send(text, files);
    if (isNew) {
      drafts.move(NEW, id);
      go({ view: "chat", id });
      onBegun();
    }
  };
  const isEmpty = talk.state === "New" && prompt === undefined && !isSaid.current && !talk.isUnknown;
  return (
    <>
      <TopBar title={title || (isEmpty ? words.newChat : talk.isUnknown ? words.noSuchChat : talk.title || words.newChat)} talk={talk} onMenu={onMenu} />
      <div data-scrolls className="relative min-h-0 flex-1 overflow-y-auto">
        {isEmpty && talk.reload ? <NotLoaded onReload={talk.reload} /> : isEmpty && talk.isLoaded ? <Welcome onStarter={onStarter} /> : talk.isUnknown ? <NoSuchChat /> : <Suspense><Talk talk={talk} /></Suspense>}
      </div>
      {!talk.isUnknown && (
        <div className="mx-auto w-full max-w-[660px] shrink-0 px-4 pb-3">
          <Composer talk={{ ...talk, send }} drafts={drafts} place={isNew ? NEW : id} />
          <FootLine talk={talk} />
        </div>
      )}
    </>
  );
}

function NotLoaded({ onReload }: { onReload: () => void }): ReactNode {
  const words = useWords();
  return (
    <div className="mx-auto w-full max-w-[660px] px-4 pt-[9vh]">
      <h2 className="text-2xl font-semibold tracking-tight">{words.noAnswer}</h2>
      <p className="mt-2 mb-4 text-muted">{words.notLoaded}</p>
      <button type="button" className={PLAIN} onClick={onReload}>{words.tryAgain}</button>
    </div>
  );
}

function NoSuchChat(): ReactNode {
  const words = useWords();
  return (
    <div className="mx-auto w-full max-w-[660px] px-4 pt-[9vh]">
      <h2 className="text-2xl font-semibold tracking-tight">{words.noSuchChatTitle}</h2>
      <p className="mt-2 text-muted">{words.noSuchChatText} <a href={hrefOf({ view: "new" })} className="underline underline-offset-2">{words.newChat}</a></p>
    </div>
  );
}
