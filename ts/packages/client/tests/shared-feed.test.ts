// The feed of two tabs, on a real server: one reads, both hear, and the second reads on when the first is gone.
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { fresh, scene } from "../../../tests/server-fixture.ts";
import { until } from "../../../tests/until.ts";
import { httpOf, SharedFeed } from "../src/index.ts";

const here = scene({ FARHAND_TIMEOUTS__KEEP_ALIVE: "0.3" });
const open: SharedFeed[] = [];

/** The browser's part that is missing here: a lock is held by one tab at a time, in the order in which they asked. */
let queue: (() => unknown)[] = [];
const locks = {
  request: (_name: string, hold: () => unknown) => (queue.push(hold), queue.length === 1 && hold(), new Promise(() => undefined)),
};
const firstTabGoes = (): void => void (queue.shift(), queue[0]?.());

beforeEach(() => {
  queue = [];
  Object.defineProperty(navigator, "locks", { value: locks, configurable: true });
});

afterEach(() => open.splice(0).forEach((feed) => feed.close()));

interface Tab {
  readonly feed: SharedFeed;
  readonly heard: string[];
  readonly asked: string[];
}

function tab(url = here.server.url, thread?: string): Tab {
  const asked: string[] = [];
  const lookedOn: typeof fetch = (input, init) => {
    asked.push(`${new URL(String(input)).search} ${(init?.headers as Record<string, string>)["last-event-id"] ?? "from now on"}`.trim());
    return fetch(input, init);
  };
  const feed = new SharedFeed(httpOf({ url, fetch: lookedOn, silenceMs: 1_500 }), thread);
  const heard: string[] = [];
  feed.listen(({ type, threadId, isResumed }) => heard.push(`${type} ${threadId ?? (isResumed === true ? "resumed" : "")}`.trim()));
  open.push(feed);
  return { feed, heard, asked };
}

/** Something that happens in a chat. */
async function somethingHappens(threadId = fresh("chat")): Promise<string> {
  const message = { id: fresh("m"), role: "user", parts: [{ type: "text", text: "hello ann" }] };
  const body = JSON.stringify({ id: threadId, messages: [message], trigger: "submit-message" });
  await (await fetch(`${here.server.url}/api/chat`, { method: "POST", headers: { "content-type": "application/json" }, body })).text();
  return threadId;
}

it("one tab reads the feed, and both get its events", async () => {
  const [first, second] = [tab(), tab()];
  await until(() => first.feed.isLive && second.feed.isLive, "the news");
  const chat = await somethingHappens();
  for (const { heard } of [first, second]) {
    await until(() => heard.includes(`run-finished ${chat}`), "the end of the run");
    expect(heard.filter((each) => each.endsWith(chat))).toEqual([`run-started ${chat}`, `run-finished ${chat}`]);
  }
  expect([first.asked.length, second.asked.length]).toEqual([1, 0]);
});

it("a tab that comes later gets the state of the connection at once", async () => {
  const first = tab();
  await until(() => first.feed.isLive, "the news");
  const later = tab();
  await until(() => later.feed.isLive, "word from the tab that reads");
  expect(later.asked).toEqual([]);
});

it("the next tab reads on when the first is gone, from where the first stood", async () => {
  const [first, second] = [tab(), tab()];
  await until(() => first.heard.includes("again") && second.heard.includes("again"), "the news");
  const before = await somethingHappens();
  await until(() => second.heard.includes(`run-finished ${before}`), "the end of the first run");
  first.feed.close();
  second.heard.length = 0;
  const between = await somethingHappens();
  firstTabGoes();
  await until(() => second.heard.includes(`run-finished ${between}`), "what happened while nobody read");
  expect(second.heard).toEqual(["again resumed", `run-started ${between}`, `run-finished ${between}`]);
  const chat = await somethingHappens();
  await until(() => second.heard.includes(`run-finished ${chat}`), "the end of the run");
});

it("a line that goes silent is given up and read on after the last event", async () => {
  const plug = await here.plug();
  const { feed, heard, asked } = tab(plug.url);
  await until(() => feed.isLive, "the news");
  const before = await somethingHappens();
  await until(() => heard.includes(`run-finished ${before}`), "the end of the first run");
  plug.hush();
  const missed = await somethingHappens();
  await until(() => !feed.isLive, "the loss");
  await until(() => heard.includes(`run-finished ${missed}`), "what happened meanwhile");
  expect(heard.filter((each) => each.endsWith(missed))).toEqual([`run-started ${missed}`, `run-finished ${missed}`]);
  expect(heard.filter((each) => each.startsWith("again"))).toEqual(["again", "again resumed"]);
  expect(asked[1]).not.toBe("from now on");
});

it("a server that is away is asked again", async () => {
  const plug = await here.plug();
  const { feed, asked } = tab(plug.url);
  await until(() => feed.isLive, "the news");
  plug.pull();
  await until(() => asked.length === 2 && feed.isLive, "the news again");
});

it("a tab of one thread gets the events of that thread alone, until another tab wants more", async () => {
  const thread = fresh("chat");
  const first = tab(here.server.url, thread);
  await until(() => first.feed.isLive, "the news");
  await somethingHappens();
  await somethingHappens(thread);
  await until(() => first.heard.includes(`run-finished ${thread}`), "the end of the run");
  expect(first.heard).toEqual(["again", `run-started ${thread}`, `run-finished ${thread}`]);
  const second = tab();
  await until(() => second.heard.includes("again"), "one stream for both");
  const chat = await somethingHappens();
  await until(() => second.heard.includes(`run-finished ${chat}`), "the end of the other run");
  expect([first.asked.map((each) => each.startsWith("?thread=")), second.asked]).toEqual([[true, false], []]);
});

it("tabs that sign in by different headers do not share", () => {
  const names: string[] = [];
  Object.defineProperty(navigator, "locks", { value: { request: (name: string) => (names.push(name), Promise.resolve()) }, configurable: true });
  for (const token of ["ada", "bob"]) {
    open.push(new SharedFeed(httpOf({ url: here.server.url, headers: { authorization: `Bearer ${token}` } })));
  }
  expect(new Set(names).size).toBe(2);
  expect(names.join()).not.toContain("ada");
});

it("a tab that does not read knows that the server is away, why, and can have it tried at once", async () => {
  const statuses = [503, 401];
  const refusing: typeof fetch = (input, init) => {
    const status = statuses.shift();
    return status === undefined ? fetch(input, init) : Promise.resolve(Response.json({ error: { message: "No." } }, { status }));
  };
  const reading = new SharedFeed(httpOf({ url: here.server.url, fetch: refusing }));
  const hearing = tab().feed;
  open.push(reading);
  expect([reading.connection, hearing.connection]).toEqual([{ state: "closed" }, { state: "closed" }]);
  for (const feed of [reading, hearing]) {
    await until(() => feed.connection.state === "lost", "the loss");
  }
  hearing.retryNow();
  for (const feed of [reading, hearing]) {
    await until(() => feed.connection.state === "refused", "the refusal");
    expect(feed.connection).toEqual({ state: "refused", status: 401, reason: "No." });
  }
  hearing.retryNow();
  await until(() => hearing.connection.state === "open" && reading.connection.state === "open", "the connection");
});

it("a browser that forbids locks or channels for a site lets each tab read for itself", async () => {
  const forbidden = (): never => {
    throw new DOMException("The request was denied.", "SecurityError");
  };
  Object.defineProperty(navigator, "locks", { value: { request: async () => forbidden() }, configurable: true });
  const [first, second] = [tab(), tab()];
  vi.stubGlobal("BroadcastChannel", class { constructor() { forbidden(); } });
  const third = tab();
  vi.unstubAllGlobals();
  await until(() => [first, second, third].every(({ feed }) => feed.isLive), "the news");
  expect([first, second, third].map(({ asked }) => asked.length)).toEqual([1, 1, 1]);
});
