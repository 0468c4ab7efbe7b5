// The files of the next message: chosen, dropped or pasted. Each is uploaded immediately, so that sending is quick.
import type { FileUIPart } from "ai";
import { useCallback, useRef, useState } from "react";
import { BASE } from "../base.ts";
import { HTTP } from "../server.ts";
import { untilLoaded } from "./parts.tsx";

export type Attachment =
  | { readonly key: string; readonly name: string; readonly state: "uploading"; readonly share: number }
  | { readonly key: string; readonly name: string; readonly state: "ready"; readonly part: FileUIPart }
  | { readonly key: string; readonly name: string; readonly state: "failed"; readonly reason: string };

export interface Attachments {
  readonly list: readonly Attachment[];
  readonly isUploading: boolean;
  readonly hasFailed: boolean;
  readonly parts: readonly FileUIPart[];
  readonly add: (files: Iterable<File>) => void;
  /** Restores the files of a message that did not reach the server: they are uploaded already. */
  readonly restore: (parts: readonly FileUIPart[]) => void;
  readonly remove: (key: string) => void;
  /** Removes the files that were sent; those that failed stay. */
  readonly clear: () => void;
}

export function useAttachments(): Attachments {
  const [list, setList] = useState<readonly Attachment[]>([]);
  const number = useRef(0);
  const put = useCallback((next: Attachment) => setList((before) => before.map((each) => (each.key === next.key ? next : each))), []);
  const add = useCallback((files: Iterable<File>) => {
    for (const file of files) {
      const named = { key: `file-${(number.current += 1)}`, name: file.name || "file" };
      setList((before) => [...before, { ...named, state: "uploading", share: 0 }]);
      // loaded on demand, since few people need it
      void untilLoaded(() => import("./attachment-list.tsx")).then(({ upload }) => upload(HTTP, file, (share) => put({ ...named, state: "uploading", share }))).then(
        ({ ref, name, type }) => put({ ...named, state: "ready", part: { type: "file", url: `${BASE}/api/files/${ref}`, mediaType: type, filename: name } }),
        (error: unknown) => put({ ...named, state: "failed", reason: error instanceof Error ? error.message : String(error) }),
      );
    }
  }, [put]);
  return {
    list,
    isUploading: list.some(({ state }) => state === "uploading"),
    hasFailed: list.some(({ state }) => state === "failed"),
    parts: list.flatMap((each) => (each.state === "ready" ? [each.part] : [])),
    add,
    restore: useCallback((parts: readonly FileUIPart[]) => {
      const others = (before: readonly Attachment[]): readonly Attachment[] => before.filter((each) => each.state !== "ready" || !parts.some(({ url }) => url === each.part.url));
      setList((before) => [...parts.map((part) => ({ key: part.url, name: part.filename ?? "file", state: "ready" as const, part })), ...others(before)]);
    }, []),
    remove: useCallback((key: string) => setList((before) => before.filter((each) => each.key !== key)), []),
    clear: useCallback(() => setList((before) => before.filter(({ state }) => state === "failed")), []),
  };
}
