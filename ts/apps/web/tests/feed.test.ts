// The feed of two tabs: one reads, both hear, and the second reads on when the first is gone.
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { requirement } from "../../../tests/requirement.ts";
import { until } from "../../../tests/until.ts";

/** The browser's part: locks in order, and sources that a test can speak through. */
class Source extends EventTarget {
  static readonly CLOSED = 2;
  static readonly all: Source[] = [];
  onopen: (() => void) | undefined;
  onerror: (() => void) | undefined;
  readyState = 1;

  constructor(readonly url: string) {
    super();
    Source.all.push(this);
  }

  say(type: string, data: object): void {
    this.dispatchEvent(new MessageEvent(type, { data: JSON.stringify({ type, ...data }) }));
  }
}

const queue: (() => unknown)[] = [];
const locks = { request: (_name: string, hold: () => unknown) => (queue.push(hold), queue.length === 1 && hold(), new Promise(() => undefined)) };

beforeEach(() => {
  Source.all.length = queue.length = 0;
  vi.stubGlobal("EventSource", Source);
  Object.defineProperty(navigator, "locks", { value: locks, configurable: true });
});

afterEach(() => vi.useRealTimers());

const open = async (): Promise<{ heard: string[]; feed: import("../src/feed.ts").Feed }> => {
  const { Feed } = await import("../src/feed.ts");
  const feed = new Feed();
  const heard: string[] = [];
  feed.listen(({ type, threadId }) => heard.push(`${type} ${threadId ?? ""}`.trim()));
  return { heard, feed };
};

it("one tab reads the news, and both hear them", async () => {
  requirement("chat:news");
  const [first, second] = [await open(), await open()];
  expect(Source.all.map(({ url }) => url)).toEqual(["/api/events"]);
  Source.all[0]?.onopen?.();
  Source.all[0]?.say("call-settled", { threadId: "t1" });
  await until(() => second.heard.length === 2, "the news in the other tab");
  expect(first.heard).toEqual(["again", "call-settled t1"]);
  expect(second.heard).toEqual(first.heard);
  expect([first.feed.isLive, second.feed.isLive]).toEqual([true, true]);
});

it("a tab that comes later is told at once how things stand", async () => {
  requirement("chat:news");
  await open();
  Source.all[0]?.onopen?.();
  const later = await open();
  await until(() => later.feed.isLive, "word from the tab that reads");
  expect(Source.all.length).toBe(1);
});

it("the next tab reads on when the first is gone, and begins by looking at everything", async () => {
  requirement("chat:news");
  await open();
  const second = await open();
  queue[1]?.();
  expect(Source.all.length).toBe(2);
  Source.all[1]?.onopen?.();
  expect(second.heard).toEqual(["again"]);
});

it("what may have been missed is looked at anew; a server that refuses is asked again later", async () => {
  requirement("chat:news");
  vi.useFakeTimers();
  const { heard, feed } = await open();
  const [source] = Source.all;
  source?.onopen?.();
  source?.say("gap", {});
  expect(heard).toEqual(["again", "again"]);
  source!.readyState = Source.CLOSED;
  source?.onerror?.();
  expect(feed.isLive).toBe(false);
  vi.advanceTimersByTime(3_000);
  expect(Source.all.length).toBe(2);
});
