// A thread in a page, against a real server: messages, handlers, approvals, reloads, two tabs.
import { expect, it } from "vitest";
import { WebSocket as NodeSocket } from "ws";
import { requirement } from "../../../tests/requirement.ts";
import { fresh, scene } from "../../../tests/server-fixture.ts";
import { socketTransport } from "../src/websocket.ts";
import { approvalOf, callOf, lines, pages } from "./page.ts";

const here = scene();
const page = pages(here);

it.concurrent("a message is answered", async () => {
  const { thread, becomes } = page();
  thread.send("hello ann");
  await becomes(({ run }) => run.state === "done", "an answer");
  expect(lines(thread.state)).toEqual(["user: hello ann", "assistant: Hello ann, this is your message number 1."]);
  thread.send("hello ann");
  await becomes(({ messages, run }) => messages.length === 4 && run.state === "done", "the second answer");
  expect(lines(thread.state).at(-1)).toBe("assistant: Hello ann, this is your message number 2.");
});

it.concurrent("a tool with a handler is taken, run once, and its output reaches the model", async () => {
  requirement("client:executes-once");
  const ran: string[] = [];
  const { thread, sees, requests } = page({
    handlers: { open_url: ({ url }: { url: string }) => (ran.push(url), { url, viewKey: "v1" }) },
  });
  const url = fresh("page");
  thread.send(`open ${url}`);
  await sees(`assistant: open_url gave {"url": "${url}", "viewKey": "v1"}.`);
  expect(ran).toEqual([url]);
  const [take, ack] = ["POST /api/tools/take", "POST /api/tools/ack"].map((each) => requests.indexOf(each));
  expect(take).toBeGreaterThan(0);
  expect(ack).toBeGreaterThan(take ?? 0);
  // the answer came on the response that was held
  expect(requests.filter((each) => each.includes("/stream"))).toEqual([]);
});

it.concurrent("a handler that throws, or returns what JSON cannot hold, is a failure for the model", async () => {
  const throwing = page({ handlers: { open_url: () => Promise.reject(new Error("no window")) } });
  throwing.thread.send(`open ${fresh("page")}`);
  await throwing.sees("failure, no window");
  const strange = page({ handlers: { open_url: () => () => 1 } });
  strange.thread.send(`open ${fresh("page")}`);
  await strange.sees("The handler returned a function, which is not JSON.");
  const round: Record<string, unknown> = {};
  round["itself"] = round;
  const circular = page({ handlers: { open_url: () => round } });
  circular.thread.send(`open ${fresh("page")}`);
  await circular.sees("open_url gave nothing: failure, Converting circular structure");
});

it.concurrent("of two tabs one executes, the other shows it", async () => {
  const threadId = fresh("thread");
  const ran: string[] = [];
  let finish = (): void => undefined;
  const open_url = (tab: string) => async () => {
    ran.push(tab);
    await new Promise<void>((done) => (finish = done));
    return { by: tab };
  };
  const first = page({ threadId, handlers: { open_url: open_url("first") } });
  const second = page({ threadId, handlers: { open_url: open_url("second") }, askAgainMs: 50 });
  first.thread.send(`open ${fresh("page")}`);
  await first.becomes(({ running }) => running.size === 1, "a running call");
  await second.thread.open();
  await second.becomes(({ calls }) => [...calls.values()][0]?.phase === "ready", "the call");
  await second.becomes(() => second.requests.filter((each) => each.endsWith("/take")).length > 2, "several takes");
  finish();
  await second.sees('open_url gave {"by": "first"}.');
  await first.sees('open_url gave {"by": "first"}.');
  expect(ran).toEqual(["first"]);
});

it.concurrent("a server tool is never executed by a page, whatever its handlers are called", async () => {
  const ran: string[] = [];
  const city = fresh("oslo");
  const { thread, sees } = page({ handlers: { weather: () => ran.push("weather"), slow: () => ran.push("slow") } });
  thread.send(`weather ${city}`);
  await sees("weather gave");
  const waiting = page({ handlers: { slow: () => ran.push("slow") }, threadId: fresh("thread") });
  const subject = fresh("trip");
  waiting.thread.send(`journey ${subject}`);
  here.server.openGate(subject, "text");
  await waiting.becomes(() => waiting.requests.includes("POST /api/tools/take"), "a take");
  here.server.openGate(subject, "tool");
  await waiting.becomes(() => callOf(waiting.thread.state, "open_url") !== "", "the next call");
  expect(ran).toEqual([]);
  expect(here.server.executions("weather", city)).toBe(1);
});

it.concurrent("a frontend tool without a handler fails with its name, or is left, as the page wishes", async () => {
  const failing = page();
  failing.thread.send(`open ${fresh("page")}`);
  await failing.sees('open_url gave nothing: failure, This page has no handler for "open_url".');
  for (const onUnknown of ["card", "leave"] as const) {
    const leaving = page({ onUnknown });
    leaving.thread.send(`open ${fresh("page")}`);
    await leaving.becomes(({ facts }) => facts.size === 1, "what the server says of the call");
    const [fact] = leaving.thread.state.facts.values();
    expect(fact).toMatchObject({ tool: "open_url", executor: "frontend", phase: "ready" });
    expect(Date.parse(fact?.deadline ?? "")).toBeGreaterThan(Date.now());
    expect(leaving.requests).not.toContain("POST /api/tools/take");
    leaving.thread.answer(fact?.callId ?? "", { kind: "success", output: "by hand" });
    await leaving.sees('open_url gave "by hand".');
  }
});

it.concurrent("a frontend tool runs only after the approval, and a server tool with what was edited", async () => {
  const ran: string[] = [];
  const photo = page({ handlers: { take_photo: () => (ran.push("photo"), { name: "cat.png" }) } });
  photo.thread.send(`photo ${fresh("cat")}`);
  await photo.becomes((state) => approvalOf(state, "take_photo") !== "", "a question");
  expect(ran).toEqual([]);
  expect(photo.thread.approve(approvalOf(photo.thread.state, "take_photo"), { approved: true })).toBe(true);
  await photo.sees('take_photo gave {"name": "cat.png"}.');
  expect(ran).toEqual(["photo"]);

  const [path, other] = [fresh("file"), fresh("other")];
  const edited = page();
  edited.thread.send(`delete ${path}`);
  await edited.becomes((state) => approvalOf(state, "delete_file") !== "", "a question");
  edited.thread.approve(approvalOf(edited.thread.state, "delete_file"), { approved: true, input: { path: other } });
  await edited.sees(`delete_file gave {"deleted": "${other}"}.`);
  expect(here.server.executions("delete_file", path)).toBe(0);
});

it.concurrent("a no goes back with its reason, and a second answer is not sent", async () => {
  const { thread, sees, becomes, requests } = page();
  thread.send(`delete ${fresh("file")}`);
  await becomes((state) => approvalOf(state, "delete_file") !== "", "a question");
  const id = approvalOf(thread.state, "delete_file");
  expect(thread.approve(id, { approved: false, reason: "not today" })).toBe(true);
  expect(thread.approve(id, { approved: true })).toBe(false);
  await sees("denied: not today");
  expect(requests.filter((each) => each === "POST /api/tools/approve").length).toBe(1);
});

it.concurrent("after a reload the page has its messages and its open calls again, and can answer them", async () => {
  const threadId = fresh("thread");
  const before = page({ threadId, onUnknown: "card" });
  const url = fresh("page");
  before.thread.send(`open ${url}`);
  await before.becomes((state) => callOf(state, "open_url") !== "", "a call");
  before.thread.close();
  const after = page({ threadId, onUnknown: "card" });
  await after.thread.open();
  await after.becomes(({ facts }) => facts.size === 1, "the call");
  expect(lines(after.thread.state)).toEqual([`user: open ${url}`, "assistant: I will open it.", "assistant: open_url ready"]);
  after.thread.answer(callOf(after.thread.state, "open_url"), { kind: "success", output: 1 });
  await after.sees("open_url gave 1.");
});

it.concurrent("a message that is sent while the page still loads comes after what is stored", async () => {
  const threadId = fresh("thread");
  const before = page({ threadId });
  before.thread.send("hello ann");
  await before.becomes(({ run }) => run.state === "done", "an answer");
  const after = page({ threadId });
  const opened = after.thread.open();
  after.thread.send("hello bob");
  await opened;
  await after.becomes(({ run }) => run.state === "done", "an answer");
  expect(lines(after.thread.state)).toEqual([
    "user: hello ann",
    "assistant: Hello ann, this is your message number 1.",
    "user: hello bob",
    "assistant: Hello bob, this is your message number 2.",
  ]);
});

it.concurrent("a stopped run says so, and aborts what runs in the page", async () => {
  let aborted = false;
  const { thread, becomes } = page({
    handlers: {
      open_url: (_: unknown, { signal }: { signal: AbortSignal }) =>
        new Promise((done) => signal.addEventListener("abort", () => ((aborted = true), done(1)))),
    },
  });
  thread.send(`open ${fresh("page")}`);
  await becomes(({ running }) => running.size === 1, "a running call");
  expect(await thread.stop()).toBe(true);
  await becomes(({ run }) => run.state === "stopped", "the end");
  expect(aborted).toBe(true);
  expect(thread.state.deliveries.size).toBe(0);
});

it.concurrent("a new message while a call is open takes its place", async () => {
  const { thread, sees, becomes } = page({ onUnknown: "card" });
  thread.send(`open ${fresh("page")}`);
  await becomes(({ facts }) => facts.size === 1, "a call");
  thread.send("hello ann");
  await sees("Hello ann, this is your message number 2.");
});

it.concurrent("the same thread over a WebSocket", async () => {
  // the socket of Node's own world: the page's is an imitation that names another origin
  const webSocket = NodeSocket as unknown as typeof WebSocket;
  const transport = socketTransport({ url: `${here.server.url.replace("http", "ws")}/api/chat/ws`, webSocket });
  const url = fresh("page");
  const { thread, sees, becomes, requests } = page({ transport, handlers: { open_url: () => "shown" } });
  thread.send(`open ${url}`);
  await sees('open_url gave "shown".');
  // an answer that is still being written is not kept yet
  await becomes(({ run }) => run.state === "done", "the end");
  expect(requests).not.toContain("POST /api/chat");
  await thread.open();
  expect(lines(thread.state).at(-1)).toBe('assistant: open_url gave "shown".');
  transport.close();
});

it.concurrent("a refused message is shown with its reason and not repeated", async () => {
  const { thread, becomes, requests } = page({ threadId: "not a good id / at all" });
  thread.send("hello ann");
  await becomes(({ connection }) => connection.state === "refused", "a refusal");
  expect(thread.state.connection).toMatchObject({ status: 400 });
  expect(thread.state.run).toMatchObject({ state: "failed" });
  expect(requests).toEqual(["POST /api/chat?after=0.0"]);
});

it.concurrent("a parked thread that is answered elsewhere continues in a page that nobody touches", async () => {
  const threadId = fresh("thread");
  const url = fresh("page");
  const message = { id: fresh("m"), role: "user", parts: [{ type: "text", text: `open ${url}` }] };
  const body = JSON.stringify({ id: threadId, messages: [message], trigger: "submit-message" });
  // turn by turn, so that the run parks at once
  await (await fetch(`${here.server.url}/api/chat`, { method: "POST", headers: { "content-type": "application/json" }, body })).text();
  const { thread, becomes, sees, requests } = page({ threadId, onUnknown: "card" });
  await thread.open();
  await becomes(({ run, facts }) => run.state === "parked" && facts.size === 1, "the open call");
  await becomes(() => requests.includes(`GET /api/events?thread=${threadId}`), "the feed");
  await here.post("/api/tools/ack", { toolCallId: callOf(thread.state, "open_url"), status: "success", output: "from afar" });
  await sees('open_url gave "from afar".');
  await becomes(({ run }) => run.state === "done", "the end");
  // a thread that goes on needs no news
  expect(requests.filter((each) => each.startsWith("GET /api/events")).length).toBe(1);
});
