// A page with `connect()` alone, on a real server: what it runs, what it shows, and what it asks for.
import { afterEach, beforeEach, expect, it } from "vitest";
import { requirement } from "../../../tests/requirement.ts";
import { fresh, scene } from "../../../tests/server-fixture.ts";
import { until } from "../../../tests/until.ts";
import { connect, type ConnectOptions, type Hand } from "../src/index.ts";
import { Memory } from "./page.ts";

const here = scene();
const open: Hand[] = [];

beforeEach(() => Object.defineProperty(navigator, "locks", { value: undefined, configurable: true }));
afterEach(() => open.splice(0).forEach((hand) => hand.close()));

interface Page {
  readonly hand: Hand;
  readonly asked: string[];
}

function page(options: ConnectOptions = {}): Page {
  const asked: string[] = [];
  const lookedOn: typeof fetch = (input, init) => {
    const { pathname, search } = new URL(String(input));
    asked.push(`${pathname}${search}`);
    return fetch(input, init);
  };
  const hand = connect({ url: here.server.url, storage: new Memory(), backOff: () => 50, askAgainMs: 200, ...options, fetch: lookedOn });
  open.push(hand);
  return { hand, asked };
}

/** A call that nobody but a page can run, made by a model. */
async function say(thread: string, text: string): Promise<void> {
  const message = { id: fresh("m"), role: "user", parts: [{ type: "text", text }] };
  const body = JSON.stringify({ id: thread, messages: [message], trigger: "submit-message" });
  await (await fetch(`${here.server.url}/api/chat`, { method: "POST", headers: { "content-type": "application/json" }, body })).text();
}

/** The same without a model and without a run. */
function execute(thread: string, url: string): Promise<unknown> {
  return here.post("/client-tools/execute", { toolID: "open_url", input: { url }, sessionID: thread }).then(({ body }) => body);
}

async function answerOf(thread: string): Promise<string> {
  return JSON.stringify(await here.kept(thread));
}

it("a call that waits already and one that comes later are run once each, with and without a run", async () => {
  requirement("connect:runs");
  const thread = fresh("thread");
  await say(thread, "open first");
  const ran: string[] = [];
  const { hand, asked } = page({ thread });
  hand.handle({ open_url: ({ url }: { url: string }) => (ran.push(url), { url, viewKey: "v" }) });
  await until(async () => (await answerOf(thread)).includes("open_url gave"), "the answer to the first");
  const other = fresh("thread");
  const elsewhere = execute(other, "elsewhere");
  const alone = fresh("alone");
  expect(await execute(thread, alone)).toMatchObject({ status: "success", output: { url: alone, viewKey: "v" } });
  expect(ran).toEqual(["first", alone]);
  // once; then only events
  expect(asked.filter((each) => each.startsWith("/api/inbox")).length).toBeLessThanOrEqual(2);
  expect(asked.filter((each) => each.startsWith("/api/inbox") || each.startsWith("/api/events")).every((each) => each.endsWith(`?thread=${thread}`))).toBe(true);
  await until(() => hand.state.calls.size === 0, "no open call");
  // a page of all threads runs what this one must not
  page().hand.handle({ open_url: ({ url }: { url: string }) => ({ url, viewKey: "all" }) });
  expect(await elsewhere).toMatchObject({ output: { viewKey: "all" } });
});

it("an approval is shown and never given by the page itself; once it is given, the call is run", async () => {
  requirement("connect:approvals");
  const thread = fresh("thread");
  const ran: unknown[] = [];
  const { hand } = page({ thread });
  hand.handle({ take_photo: (input: { camera: string }) => (ran.push(input.camera), { name: "photo.png" }) });
  await until(() => hand.state.connection.state === "open", "the connection");
  await say(thread, "photo lamp");
  await until(() => [...hand.state.calls.values()][0]?.phase === "asking", "the question");
  const [call] = [...hand.state.calls.values()];
  expect(call).toMatchObject({ tool: "take_photo", phase: "asking", input: { camera: "front", subject: "lamp" } });
  expect(hand.state.facts.get(call?.id ?? "")).toMatchObject({ threadId: thread, executor: "frontend", phase: "asking" });
  expect(ran).toEqual([]);
  expect(call?.phase === "asking" && hand.approve(call.approvalId, { approved: true, input: { camera: "back", subject: "lamp" } })).toBe(true);
  await until(async () => (await answerOf(thread)).includes("take_photo gave"), "the answer");
  expect(ran).toEqual(["back"]);
});

it("a call without a handler is left to a card, whose answer goes out once", async () => {
  const thread = fresh("thread");
  const { hand } = page({ thread });
  await say(thread, "open page");
  await until(() => hand.state.calls.size === 1, "the call");
  const [id = ""] = hand.state.calls.keys();
  expect(hand.answer(id, { kind: "success", output: { by: "hand" } })).toBe(true);
  expect(hand.answer(id, { kind: "failure", error: "late" })).toBe(false);
  await until(async () => (await answerOf(thread)).includes('open_url gave {\\"by\\": \\"hand\\"}.'), "the answer");
  await until(() => hand.state.calls.size === 0, "the end of the call");
});

it("a call that is taken elsewhere is shown as taken, and run here when the other page lets go", async () => {
  requirement("connect:runs");
  const thread = fresh("thread");
  const first = page({ thread });
  let begun = 0;
  first.hand.handle({ open_url: () => new Promise(() => (begun += 1)) });
  const answer = execute(thread, "page");
  await until(() => begun === 1, "the first page at work");
  const second = page({ thread });
  await until(() => [...second.hand.state.facts.values()][0]?.phase === "taken", "taken");
  let ran = 0;
  second.hand.handle({ open_url: ({ url }: { url: string }) => ((ran += 1), { url, viewKey: "second" }) });
  await until(() => second.asked.filter((each) => each === "/api/tools/take").length > 1, "a second try");
  expect(ran).toBe(0);
  // the person answers it by a card in the first page
  const [id = ""] = first.hand.state.calls.keys();
  await here.post("/api/tools/ack", { toolCallId: id, status: "success", output: { url: "page", viewKey: "person" } });
  expect(await answer).toMatchObject({ output: { viewKey: "person" } });
  await until(() => first.hand.state.running.size === 0 && second.hand.state.calls.size === 0, "both at rest");
  expect(ran).toBe(0);
});

it("events continue after a cut from where the page stands, without asking for everything again", async () => {
  requirement("connect:runs");
  const thread = fresh("thread");
  const plug = await here.plug();
  const { hand, asked } = page({ thread, url: plug.url });
  hand.handle({ open_url: ({ url }: { url: string }) => ({ url, viewKey: "v" }) });
  expect(await execute(thread, "one")).toMatchObject({ status: "success" });
  await until(() => hand.state.calls.size === 0, "no open call");
  const inboxes = (): number => asked.filter((each) => each.startsWith("/api/inbox")).length;
  const before = inboxes();
  plug.pull();
  // made while nobody listens
  expect(await execute(thread, "two")).toMatchObject({ status: "success", output: { url: "two", viewKey: "v" } });
  expect(inboxes()).toBe(before);
});

it("a server that is away is lost and tried again, and only a page that has let go is closed", async () => {
  requirement("connect:runs");
  const plug = await here.plug();
  const { hand } = page({ thread: fresh("thread"), url: plug.url });
  expect(hand.state.connection).toEqual({ state: "closed" });
  await until(() => hand.state.connection.state === "open", "the connection");
  const states: string[] = [];
  hand.subscribe(() => states.push(hand.state.connection.state));
  plug.pull();
  await until(() => states.includes("lost"), "the loss");
  // not only after its delay
  hand.retryNow();
  await until(() => states.at(-1) === "open", "the connection again");
  expect(new Set(states)).toEqual(new Set(["lost", "open"]));
  hand.close();
  expect(hand.state.connection).toEqual({ state: "closed" });
  expect(states.at(-1)).toBe("closed");
});

it("a server that was never there is lost, with the time of the next attempt", async () => {
  requirement("connect:runs");
  const { hand } = page({ url: "http://127.0.0.1:9" });
  await until(() => hand.state.connection.state === "lost", "the loss");
  expect(hand.state.connection).toMatchObject({ retryAt: expect.any(Number) });
});

it("who may not ask gets an error", async () => {
  requirement("connect:runs");
  const { hand } = page({ thread: "not a good id" });
  await until(() => hand.state.connection.state === "refused", "a refusal");
  expect(hand.state.connection).toMatchObject({ status: 400, reason: expect.stringContaining("`thread`") });
});
