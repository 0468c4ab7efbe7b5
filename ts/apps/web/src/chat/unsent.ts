// A message that was being sent when the page was reloaded or another chat was opened: the server has it, or it is sent again, or it
// is put back into the message box. Owns this decision; must not know how a message is sent.
import type { Thread } from "@farhand/client";
import type { UIMessage } from "ai";
import { useEffect, useRef, useState } from "react";
import { useIsReaderKnown } from "./about.ts";
import type { Unsent } from "./drafts.ts";
import { type Chat, textOf } from "./record.ts";
import { useSite } from "./site.ts";

/** A message that was sent this long ago, before a reload, is sent again; an older one is put back into the box. */
const SENT_AGAIN_WITHIN_MS = 60_000;

interface Unsents {
  readonly record: Thread | undefined;
  readonly isUnknown: boolean;
  readonly wasStopped: boolean;
  readonly again: (message: Unsent) => void;
}

export function useUnsent(id: string, { messages, status }: Chat, { record, isUnknown, wasStopped, again }: Unsents): { returned: UIMessage | undefined; isLeft: boolean } {
  const { drafts } = useSite();
  const isReaderKnown = useIsReaderKnown();
  const [left] = useState(() => drafts.unsent(id));
  const [returned, setReturned] = useState<UIMessage>();
  const isDone = useRef(left === undefined);
  const isKept = (message: Unsent): boolean => record?.messages.some((kept) => kept.id === message.id && (message.isEdit !== true || textOf(kept as unknown as UIMessage) === textOf({ ...message, role: "user" }))) === true;
  const isOpen = status === "submitted" || status === "streaming";
  useEffect(() => {
    if (isDone.current || left === undefined || !isReaderKnown || isOpen || (record === undefined && !isUnknown)) {
      return;
    }
    isDone.current = true;
    if (isKept(left)) {
      return;
    }
    const isFresh = left.isFromStorage !== true || Math.abs(Date.now() - left.at) < SENT_AGAIN_WITHIN_MS;
    const isFree = record === undefined || AT_REST_IN_RECORD.has(record.state);
    if (isFresh && isFree && left.isEdit !== true && !wasStopped) {
      again(left);
    } else {
      drafts.keepUnsent(id, undefined);
      setReturned({ id: left.id, role: "user", parts: left.parts });
    }
  });
  const said = messages.findLast(({ role }) => role === "user")?.id;
  useEffect(() => {
    const message = drafts.unsent(id);
    if (message !== undefined && (isKept(message) || (status === "streaming" && said === message.id))) {
      drafts.keepUnsent(id, undefined);
    }
  }, [record, status, said]);
  return { returned, isLeft: left !== undefined };
}

const AT_REST_IN_RECORD: ReadonlySet<string> = new Set(["done", "stopped", "failed"]);
