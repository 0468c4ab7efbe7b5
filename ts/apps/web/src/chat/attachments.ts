// The files of the next message: chosen, dropped or pasted. Each is uploaded immediately, so that sending is quick, and the upload
// continues while another chat is open.
import type { UploadError } from "@farhand/react";
import type { FileUIPart } from "ai";
import { useCallback } from "react";
import { BASE } from "../base.ts";
import { HTTP } from "../server.ts";
import { type Attachment, type Drafts, readyFile } from "./drafts.ts";
import { untilLoaded } from "./parts.tsx";

export interface Attachments {
  readonly list: readonly Attachment[];
  readonly isUploading: boolean;
  readonly hasFailed: boolean;
  readonly parts: readonly FileUIPart[];
  readonly add: (files: Iterable<File>) => void;
  /** Restores the files of a message that did not reach the server: they are uploaded already. */
  readonly restore: (parts: readonly FileUIPart[]) => void;
  /** Cancels the upload if it is not complete. */
  readonly remove: (key: string) => void;
  /** Removes the files that were sent; those that failed stay. */
  readonly clear: () => void;
}

const UPLOADS = new Map<string, AbortController>();
let number = 0;

/** The files of this chat's draft. */
export function useAttachments(drafts: Drafts, chat: string): Attachments {
  const list = drafts.get(chat).files;
  const change = useCallback((next: (before: readonly Attachment[]) => readonly Attachment[]) => drafts.change(chat, ({ files }) => ({ files: next(files) })), [drafts, chat]);
  const add = useCallback((files: Iterable<File>) => {
    for (const file of files) {
      const named = { key: `file-${(number += 1)}`, name: file.name || "file" };
      const gone = new AbortController();
      UPLOADS.set(named.key, gone);
      change((before) => [...before, { ...named, state: "uploading", share: 0 }]);
      const onProgress = (share: number): void => drafts.changeFile({ ...named, state: "uploading", share });
      // in a chunk of its own, since few people need it
      void untilLoaded(() => import("./attachment-list.tsx")).then(({ upload }) => upload(HTTP, file, onProgress, gone.signal)).then(
        ({ ref, name, type }) => drafts.changeFile({ ...named, state: "ready", part: { type: "file", url: `${BASE}/api/files/${ref}`, mediaType: type, filename: name } }),
        ({ message, code }: UploadError) => drafts.changeFile({ ...named, state: "failed", reason: message, code }),
      ).finally(() => UPLOADS.delete(named.key));
    }
  }, [change, drafts]);
  return {
    list,
    isUploading: list.some(({ state }) => state === "uploading"),
    hasFailed: list.some(({ state }) => state === "failed"),
    parts: list.flatMap((each) => (each.state === "ready" ? [each.part] : [])),
    add,
    restore: useCallback((parts: readonly FileUIPart[]) => {
      change((before) => [...parts.map(readyFile), ...before.filter((each) => each.state !== "ready" || !parts.some(({ url }) => url === each.part.url))]);
    }, [change]),
    remove: useCallback((key: string) => {
      UPLOADS.get(key)?.abort();
      change((before) => before.filter((each) => each.key !== key));
    }, [change]),
    clear: useCallback(() => change((before) => before.filter(({ state }) => state === "failed")), [change]),
  };
}
