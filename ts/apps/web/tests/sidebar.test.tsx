// The list of chats: a search goes on as far as somebody scrolls, and a change that failed says so.
import type { ThreadPage } from "@farhand/client";
import { act, cleanup, configure, fireEvent, render, screen } from "@testing-library/react";
import type { ReactNode } from "react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { ThreadItem } from "../src/chat/chats.tsx";
import { Drafts } from "../src/chat/drafts.ts";
import type { Lists } from "../src/chat/lists.ts";
import { Sidebar } from "../src/chat/sidebar.tsx";
import { type Site, SiteProvider } from "../src/chat/site.ts";
import { HTTP } from "../src/server.ts";

// as long as any other wait: the machine may be busy
configure({ asyncUtilTimeout: 20_000 });

type Row = ThreadPage["threads"][number];

const nothing = (): (() => void) => () => undefined;
const row = (id: string): Row => ({ id, title: `Lamp ${id}`, state: "done", updatedAt: "2026-11-01T08:00:00.000Z", openCalls: 0 });
const site = {
  drafts: new Drafts(undefined), feed: { watch: nothing, isLive: true },
  hands: { subscribe: nothing, deliveries: new Map(), running: new Set() },
} as unknown as Site;
const shown = (what: ReactNode): void => void render(<SiteProvider value={site}>{what}</SiteProvider>);

let seeEnd: () => void = nothing;

beforeEach(() => {
  class Watcher {
    constructor(onSeen: (seen: readonly { isIntersecting: boolean }[]) => void) {
      seeEnd = () => onSeen([{ isIntersecting: true }]);
    }
    readonly observe = nothing;
    readonly disconnect = nothing;
  }
  vi.stubGlobal("IntersectionObserver", Watcher);
});

afterEach(() => {
  cleanup();
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

const LISTS: Lists = { threads: [row("0")], inbox: [], isLoaded: true, refresh: nothing, more: undefined, forget: nothing };

it("a search goes on beyond its first page when somebody scrolls to its end", async () => {
  const asked: string[] = [];
  vi.spyOn(HTTP, "fetch").mockImplementation(async (input) => {
    const query = new URL(String(input), "http://h").searchParams;
    asked.push(`${query.get("q")} ${query.get("after")}`);
    const pages: Readonly<Record<string, ThreadPage>> = { null: { threads: [row("1")], next: "p2" }, p2: { threads: [row("2")], next: "p3" }, p3: { threads: [row("3")] } };
    return Response.json(pages[String(query.get("after"))]);
  });
  shown(<Sidebar route={{ view: "new" }} lists={LISTS} starters={[]} onStarter={nothing} />);
  fireEvent.change(screen.getByRole("searchbox"), { target: { value: "lamp" } });
  await screen.findByText("Lamp 1");
  act(() => seeEnd());
  await screen.findByText("Lamp 2");
  fireEvent.click(screen.getByRole("button", { name: "Older chats" }));
  await screen.findByText("Lamp 3");
  expect(screen.queryByRole("button", { name: "Older chats" })).toBeNull();
  expect(asked).toEqual(["lamp null", "lamp p2", "lamp p3"]);
});

function serverThatSays(...statuses: readonly number[]): string[] {
  const asked: string[] = [];
  const left = [...statuses];
  vi.spyOn(HTTP, "fetch").mockImplementation(async (_, init) => {
    asked.push(`${init?.method} ${typeof init?.body === "string" ? init.body : ""}`.trim());
    const status = left.shift() ?? 0;
    return status === 0 ? Promise.reject(new TypeError("away")) : new Response("{}", { status });
  });
  return asked;
}

it.each([
  [0, "Not renamed. The server does not answer. Try again"],
  [503, "Not renamed. The server does not answer. Try again"],
  [401, "Not renamed. Sign in above, then try again."],
  [429, "Not renamed. The server refused it. Try again in a minute."],
])("a chat that could not be renamed (%d) says why, keeps its title and is tried again with the same one", async (status, words) => {
  const asked = serverThatSays(status, 200);
  shown(<ThreadItem row={row("1")} isHere={false} isWaiting={false} lists={LISTS} />);
  fireEvent.click(screen.getByRole("button", { name: "Rename Lamp 1" }));
  fireEvent.change(screen.getByRole("textbox"), { target: { value: "Mill Lane" } });
  fireEvent.keyDown(screen.getByRole("textbox"), { key: "Enter" });
  expect((await screen.findByRole("alert")).textContent).toContain(words);
  expect(screen.getByText("Lamp 1")).toBeDefined();
  fireEvent.click(screen.getByRole("button", { name: "Try again" }));
  await vi.waitFor(() => expect(screen.queryByRole("alert")).toBeNull(), 20_000);
  expect(asked).toEqual([`PATCH {"title":"Mill Lane"}`, `PATCH {"title":"Mill Lane"}`]);
});

it("a chat that is gone is not renamed another time", async () => {
  serverThatSays(404);
  shown(<ThreadItem row={row("1")} isHere={false} isWaiting={false} lists={LISTS} />);
  fireEvent.click(screen.getByRole("button", { name: "Rename Lamp 1" }));
  fireEvent.change(screen.getByRole("textbox"), { target: { value: "Mill Lane" } });
  fireEvent.keyDown(screen.getByRole("textbox"), { key: "Enter" });
  expect((await screen.findByRole("alert")).textContent?.trim()).toBe("Not renamed. This chat does not exist any more.");
  expect(screen.queryByRole("button", { name: "Try again" })).toBeNull();
});

it("a chat that could not be deleted stays and says why; one that is gone already goes", async () => {
  const forget = vi.fn();
  const asked = serverThatSays(0, 404);
  vi.stubGlobal("confirm", vi.fn(() => true));
  shown(<ThreadItem row={row("1")} isHere={false} isWaiting={false} lists={{ ...LISTS, forget }} />);
  fireEvent.click(screen.getByRole("button", { name: "Delete Lamp 1" }));
  expect((await screen.findByRole("alert")).textContent).toContain("Not deleted. The server does not answer. Try again");
  expect(forget).not.toHaveBeenCalled();
  fireEvent.click(screen.getByRole("button", { name: "Try again" }));
  await vi.waitFor(() => expect(forget).toHaveBeenCalledWith("1"), 20_000);
  expect(confirm).toHaveBeenCalledOnce();
  expect(asked).toEqual(["DELETE", "DELETE"]);
});
