// How the page says that an answer is needed to somebody who does not look at it: its title, its icon, and a notification of the
// browser for those who want one.
import type { OpenCall } from "@farhand/client";
import { useEffect, useRef, useState } from "react";
import dotted from "../theme/icon-dot.svg";
import icon from "../theme/icon.svg";
import { go } from "./route.ts";
import { useWords } from "./words.ts";

export function titleWith(count: number, chat: string, name: string): string {
  return `${count > 0 ? `(${count}) ` : ""}${chat === "" ? name : `${chat} · ${name}`}`;
}

export function useAttention(inbox: readonly OpenCall[], chat: string, name: string): void {
  const count = inbox.length;
  useEffect(() => void (document.title = titleWith(count, chat, name)), [count, chat, name]);
  useEffect(() => document.querySelector('link[rel="icon"]')?.setAttribute("href", count > 0 ? dotted : icon), [count]);
  useNotifications(inbox);
}

const KEPT = "farhand:notify";

export type Notify = "off" | "on" | "blocked";

/** Undefined in a browser that has no notifications. */
export function useNotify(): [Notify, () => void] | undefined {
  const [how, setHow] = useState<Notify>(currentNotify);
  if (!("Notification" in globalThis)) {
    return undefined;
  }
  const press = async (): Promise<void> => {
    const isOn = how === "on" ? false : (await Notification.requestPermission()) === "granted";
    isOn ? localStorage.setItem(KEPT, "on") : localStorage.removeItem(KEPT);
    setHow(currentNotify());
  };
  return [how, () => void press()];
}

function currentNotify(): Notify {
  if (!("Notification" in globalThis) || Notification.permission === "denied") {
    return "blocked";
  }
  try {
    return Notification.permission === "granted" && localStorage.getItem(KEPT) === "on" ? "on" : "off";
  } catch {
    return "off";
  }
}

/** Of questions that come while nobody looks at the page; those that were there before are no news. */
function useNotifications(inbox: readonly OpenCall[]): void {
  const words = useWords();
  const seen = useRef<ReadonlySet<string> | undefined>(undefined);
  useEffect(() => {
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

/** By the same tag, several tabs of this page make one notification. Nothing in a browser that shows those of service workers
 * alone, as Chrome on Android does: its constructor throws. */
function notify(title: string, options: NotificationOptions): Notification | undefined {
  try {
    return new Notification(title, options);
  } catch {
    return undefined;
  }
}
