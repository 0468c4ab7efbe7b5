// The draft of each chat's message box, with its files, and messages that the server may not have received. Owns both while
// other chats are open and across a reload. Cards store their own drafts.
import type { AnswerStorage } from "@farhand/client";
import type { FileUIPart, UIMessage } from "ai";
import { BASE } from "../base.ts";
import { keep, readKept } from "../storage.ts";

export type Attachment =
  | { readonly key: string; readonly name: string; readonly state: "uploading"; readonly share: number }
  | { readonly key: string; readonly name: string; readonly state: "ready"; readonly part: FileUIPart }
  | { readonly key: string; readonly name: string; readonly state: "failed"; readonly reason: string; readonly code: string | undefined };

export interface Draft {
  readonly text: string;
  readonly files: readonly Attachment[];
  /** The person pressed Enter before the answer was complete: the message is sent when it is. */
  readonly isDue: boolean;
}

/** `isEdit`: a changed text for an older message. `isFromStorage`: stored before the page was reloaded. */
export interface Unsent {
  readonly id: string;
  readonly parts: UIMessage["parts"];
  readonly at: number;
  readonly isEdit?: boolean;
  readonly isFromStorage?: boolean;
}

/** The key of the draft for a chat without messages. */
export const NEW = "new";

const EMPTY: Draft = { text: "", files: [], isDue: false };
const DRAFT = `farhand:composer:${BASE} `;
const UNSENT = `farhand:message:${BASE} `;

export class Drafts {
  readonly #drafts = new Map<string, Draft>();
  readonly #unsent = new Map<string, Unsent | undefined>();
  readonly #listeners = new Set<() => void>();

  constructor(private readonly storage: AnswerStorage | undefined) {}

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  /** Returns the same object until the draft changes. */
  get(chat: string): Draft {
    const known = this.#drafts.get(chat) ?? draftOf(readKept(this.storage, DRAFT + chat));
    this.#drafts.set(chat, known);
    return known;
  }

  change(chat: string, change: (before: Draft) => Partial<Draft>): void {
    const before = this.get(chat);
    this.#set(chat, { ...before, ...change(before) });
  }

  /** Updates a file in whichever draft has it; a file that was removed is ignored. */
  changeFile(next: Attachment): void {
    for (const [chat, { files }] of this.#drafts) {
      if (files.some(({ key }) => key === next.key)) {
        this.change(chat, () => ({ files: files.map((each) => (each.key === next.key ? next : each)) }));
      }
    }
  }

  /** Moves what is left in the box to the chat that has begun. */
  move(from: string, to: string): void {
    this.#set(to, this.get(from));
    this.#set(from, EMPTY);
  }

  /** Removes everything of a deleted chat. */
  forget(chat: string): void {
    this.#set(chat, EMPTY);
    this.keepUnsent(chat, undefined);
  }

  unsent(chat: string): Unsent | undefined {
    if (!this.#unsent.has(chat)) {
      this.#unsent.set(chat, unsentOf(readKept(this.storage, UNSENT + chat)));
    }
    return this.#unsent.get(chat);
  }

  keepUnsent(chat: string, message: Unsent | undefined): void {
    this.#unsent.set(chat, message);
    keep(this.storage, UNSENT + chat, message && JSON.stringify(message));
  }

  #set(chat: string, draft: Draft): void {
    this.#drafts.set(chat, draft);
    // a file that is not uploaded cannot be stored, and a message is not sent automatically without one of its files
    const files = draft.files.flatMap((each) => (each.state === "ready" ? [each.part] : []));
    const isEmpty = draft.text === "" && files.length === 0;
    keep(this.storage, DRAFT + chat, isEmpty ? undefined : JSON.stringify({ text: draft.text, files, isDue: draft.isDue && files.length === draft.files.length }));
    this.#listeners.forEach((listener) => listener());
  }
}

export function readyFile(part: FileUIPart): Attachment {
  return { key: part.url, name: part.filename ?? "file", state: "ready", part };
}

function draftOf(kept: unknown): Draft {
  const { text, files, isDue } = (kept ?? {}) as { text?: unknown; files?: unknown; isDue?: unknown };
  const parts = Array.isArray(files) ? files.filter(isOwnFile) : [];
  return typeof text === "string" ? { text, files: parts.map(readyFile), isDue: isDue === true } : EMPTY;
}

function unsentOf(kept: unknown): Unsent | undefined {
  const { id, parts, at, isEdit } = (kept ?? {}) as Partial<Unsent>;
  if (typeof id !== "string" || typeof at !== "number" || !Array.isArray(parts)) {
    return undefined;
  }
  const known = parts.filter((part: unknown) => isOwnFile(part) || isText(part)) as UIMessage["parts"];
  return { id, parts: known, at, isEdit: isEdit === true, isFromStorage: true };
}

function isText(part: unknown): boolean {
  const { type, text } = (part ?? {}) as { type?: unknown; text?: unknown };
  return type === "text" && typeof text === "string";
}

/** Only files of this server: the storage must not be able to name another address. */
function isOwnFile(part: unknown): part is FileUIPart {
  const { type, url, mediaType } = (part ?? {}) as Partial<FileUIPart>;
  return type === "file" && typeof url === "string" && typeof mediaType === "string" && url.startsWith(`${BASE}/api/files/`);
}
