// What the tests of a file share: one server, and pages that are closed when the file is done.
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect } from "vitest";
import type { Client, Opening, Page } from "./clients/index.ts";
import type { Message } from "./message.ts";
import { Plug } from "./tcp-relay.ts";
import { Server } from "./server.ts";

export interface Scene {
  readonly server: Server;
  /** A page of this client, with a chat of its own unless told otherwise. */
  readonly open: (client: Client, opening?: Partial<Opening>) => Page;
  /** A way to the server that can be cut. */
  readonly plug: () => Promise<Plug>;
  /** What the server keeps of a chat: what a page is given after a reload. */
  readonly kept: (chatId: string) => Promise<Message[]>;
  /** A page on a chat that is there, with what the server keeps of it, or what a forger makes of that. */
  readonly reopen: (client: Client, page: Page, opening?: Reopening) => Promise<Page>;
  /** A post of a program, without any client. */
  readonly post: (path: string, body: unknown) => Promise<Answer>;
}

export interface Reopening extends Partial<Omit<Opening, "messages">> {
  readonly alter?: (messages: Message[]) => readonly Message[];
}

export interface Answer {
  readonly status: number;
  readonly body: unknown;
}

/** To be called once at the top of a test file. `settings`: `FARHAND_…` variables of its server. */
export function scene(settings: Readonly<Record<string, string>> = {}, options: { asksForToken?: boolean } = {}): Scene {
  const closing: (() => unknown)[] = [];
  let server: Server | undefined;
  const running = (): Server => {
    if (server === undefined) {
      throw new Error("the server does not run yet");
    }
    return server;
  };
  beforeAll(async () => {
    server = await Server.start(settings, options);
  });
  afterAll(async ({}, { tasks }) => {
    await Promise.all(closing.map((close) => close()));
    if (tasks.some((task) => task.result?.state === "fail")) {
      console.error(`the server said, at the end:\n${server?.log.slice(-4_000)}`);
    }
    await server?.close();
  });
  const open: Scene["open"] = (client, opening = {}) => {
    const page = client.open({ url: running().url, chatId: fresh("chat"), ...opening });
    closing.push(() => page.close());
    return page;
  };
  const kept: Scene["kept"] = async (chatId) => {
    const response = await fetch(`${running().url}/api/chat/${chatId}`);
    expect(response.status).toBe(200);
    return ((await response.json()) as { messages: Message[] }).messages;
  };
  return {
    get server() {
      return running();
    },
    open,
    kept,
    reopen: async (client, { chatId }, { alter = (messages: Message[]) => messages, ...opening } = {}) =>
      open(client, { ...opening, chatId, messages: alter(await kept(chatId)) }),
    plug: async () => {
      const plug = await Plug.into(running().port);
      closing.push(() => plug.close());
      return plug;
    },
    post: async (path, body) => {
      const headers = { "content-type": "application/json" };
      const response = await fetch(`${running().url}${path}`, {
        method: "POST",
        headers,
        body: JSON.stringify(body),
      });
      return { status: response.status, body: await response.json() };
    },
  };
}

/** A name that no other test uses. */
export function fresh(kind: string): string {
  return `${kind}-${randomUUID().slice(0, 8)}`;
}

/** The end of a test: what the person sees, how often the client posted, and that nothing else happens. */
export async function ends(
  page: Page,
  { seen, posts }: { seen: readonly string[]; posts: number },
): Promise<void> {
  const last = seen.at(-1);
  // two quiet seconds may also be a busy machine in the middle of an answer
  if (last !== undefined) {
    await page.sees(last);
  }
  await page.quiet();
  expect(page.seen()).toEqual(seen);
  expect(page.error).toBeUndefined();
  expect(page.wire.posts.length).toBe(posts);
  expect(page.wire.faults).toEqual([]);
}
