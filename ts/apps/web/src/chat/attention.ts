// Tells a person who is not looking at the page that an answer is needed: by its title, its icon and, for those who want it, a browser
// notification.
import type { OpenCall } from "@farhand/client";
import { useEffect, useRef, useState } from "react";
import { choiceOf, choose } from "../storage.ts";
import { showTabIcon } from "../theme/tab-icon.ts";
import { go } from "./route.ts";
import { useWords } from "./words.ts";

export function titleWith(count: number, chat: string, name: string): string {
  return `${count > 0 ? `(${count}) ` : ""}${chat === "" ? name : `${chat} · ${name}`}`;
}

/** `inbox` is undefined until it is loaded. */
export function useAttention(inbox: readonly OpenCall[] | undefined, chat: string, { name, logo }: { readonly name: string; readonly logo?: string | undefined }): void {
  const count = inbox?.length ?? 0;
  useEffect(() => void (document.title = titleWith(count, chat, name)), [count, chat, name]);
  const isNeeded = count > 0;
  useEffect(() => showTabIcon(logo, isNeeded), [logo, isNeeded]);
  useNotifications(inbox);
}

const KEPT = "farhand:notify";

export type Notify = "off" | "on" | "blocked";

/** Undefined in a browser without notifications. */
export function useNotify(): [Notify, () => void] | undefined {
  const [how, setHow] = useState<Notify>(currentNotify);
  if (!("Notification" in globalThis)) {
    return undefined;
  }
  const press = async (): Promise<void> => {
    const isOn = how === "on" ? false : (await Notification.requestPermission()) === "granted";
    choose(KEPT, isOn ? "on" : undefined);
    setHow(currentNotify());
  };
  return [how, () => void press()];
}

function currentNotify(): Notify {
  if (!("Notification" in globalThis) || Notification.permission === "denied") {
    return "blocked";
  }
  return Notification.permission === "granted" && choiceOf(KEPT) === "on" ? "on" : "off";
}

/** Notifies of questions that arrive while the page is hidden; those that were there before are not new. */
function useNotifications(inbox: readonly OpenCall[] | undefined): void {
  const words = useWords();
  const seen = useRef<ReadonlySet<string> | undefined>(undefined);
  useEffect(() => {
    if (inbox === undefined) {
      return;
    }
    const before = seen.current;
    seen.current = new Set([...(before ?? []), ...inbox.map(({ callId }) => callId)]);
    if (before === undefined || document.visibilityState === "visible" || currentNotify() !== "on") {
      return;
    }
    for (const { callId, threadId, title } of inbox.filter((call) => !before.has(call.callId))) {
      const note = notify(words.answerNeeded, { body: title, tag: callId });
      if (note === undefined) {
        return;
      }
      note.onclick = () => {
        focus();
        go({ view: "chat", id: threadId });
        note.close();
      };
    }
  }, [inbox, words]);
}

/** The tag makes several tabs show one notification. Does nothing in browsers that show only notifications of service workers, such as
 * Chrome on Android, where the constructor throws. */
function notify(title: string, options: NotificationOptions): Notification | undefined {
  try {
    return new Notification(title, options);
  } catch {
    return undefined;
  }
}
