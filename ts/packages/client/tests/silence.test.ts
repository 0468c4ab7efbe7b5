// A line that goes silent without an end, as behind a proxy that lost its server: it is given up, and nothing is lost or comes twice.
import { expect, it } from "vitest";
import { WebSocket as NodeSocket } from "ws";
import { fresh, scene } from "../../../tests/server-fixture.ts";
import { until } from "../../../tests/until.ts";
import { AwaitingThread } from "../src/awaiting/index.ts";
import { socketTransport } from "../src/websocket.ts";
import { callOf, lines, pages } from "./page.ts";

// keep-alives and patience as they are, in small
const here = scene({ FARHAND_TIMEOUTS__KEEP_ALIVE: "0.3" });
const page = pages(here);
const silenceMs = 1_500;
/** More keep-alives than fit into the patience. */
const MANY = 12;

it.concurrent("a stream that goes silent is read on from its position", async () => {
  const plug = await here.plug();
  const subject = fresh("fox");
  const { thread, sees, becomes, requests } = page({ url: plug.url, silenceMs });
  thread.send(`story ${subject}`);
  await sees("Once upon a time");
  plug.hush();
  here.server.openGate(subject, "text");
  await becomes(({ run }) => run.state === "done", "the end");
  expect(lines(thread.state)).toEqual([`user: story ${subject}`, `assistant: Once upon a time there was ${subject}.`]);
  expect(requests.filter((each) => each.startsWith("POST /api/chat")).length).toBe(1);
  expect(requests.filter((each) => /stream\?after=(?!0\.0)/.test(each)).length).toBeGreaterThan(0);
});

it.concurrent("a stream that says that it is alive is left alone, however long it carries no events", async () => {
  const plug = await here.plug();
  const subject = fresh("fox");
  const { thread, sees, becomes, requests } = page({ url: plug.url, silenceMs });
  thread.send(`story ${subject}`);
  await sees("Once upon a time");
  const before = plug.pieces;
  await until(() => plug.pieces > before + MANY, "keep-alives");
  expect(requests.filter((each) => each.includes("/stream"))).toEqual([]);
  here.server.openGate(subject, "text");
  await becomes(({ run }) => run.state === "done", "the end");
});

it.concurrent("a message whose line is silent before the head of the answer is posted again, and said once", async () => {
  const plug = await here.plug();
  const name = fresh("ann");
  const { thread, sees, requests } = page({ url: plug.url, silenceMs });
  thread.send(`hello ${name}`);
  await sees(`Hello ${name}, this is your message number 1.`);
  // the next request goes over the connection that the last one left open
  plug.hush();
  thread.send(`hello ${name}`);
  await sees(`Hello ${name}, this is your message number 2.`);
  expect(requests.filter((each) => each.startsWith("POST /api/chat")).length).toBeGreaterThan(1);
  expect((await here.kept(thread.id)).filter(({ role }) => role === "user").length).toBe(2);
});

it.concurrent("an answer whose receipt does not come is sent again, and counts once", async () => {
  const plug = await here.plug();
  const url = fresh("page");
  const { thread, becomes, sees } = page({ url: plug.url, silenceMs, onUnknown: "card" });
  thread.send(`open ${url}`);
  await becomes(({ facts }) => facts.size === 1, "a call");
  plug.hush();
  thread.answer(callOf(thread.state, "open_url"), { kind: "success", output: "mine" });
  await sees('open_url gave "mine".');
  await becomes(({ run }) => run.state === "done", "the end");
  expect(lines(thread.state).filter((line) => line.includes("gave")).length).toBe(1);
});

it.concurrent("the news of a parked thread are read again when their line goes silent", async () => {
  const plug = await here.plug();
  const threadId = fresh("thread");
  const message = { id: fresh("m"), role: "user", parts: [{ type: "text", text: `open ${fresh("page")}` }] };
  const body = JSON.stringify({ id: threadId, messages: [message], trigger: "submit-message" });
  // turn by turn, so that the run parks at once
  await (await fetch(`${here.server.url}/api/chat`, { method: "POST", headers: { "content-type": "application/json" }, body })).text();
  const { thread, becomes, sees, requests } = page({ url: plug.url, threadId, silenceMs, onUnknown: "card" });
  await thread.open();
  await becomes(({ run, facts }) => run.state === "parked" && facts.size === 1, "the open call");
  await becomes(() => requests.some((each) => each.startsWith("GET /api/events")), "the news");
  const before = plug.pieces;
  await until(() => plug.pieces > before + 3, "keep-alives");
  plug.hush();
  await here.post("/api/tools/ack", { toolCallId: callOf(thread.state, "open_url"), status: "success", output: "from afar" });
  await sees('open_url gave "from afar".');
});

it.concurrent("a WebSocket that goes silent is opened again, and one that answers is left alone", async () => {
  const plug = await here.plug();
  const opened: string[] = [];
  class Counted extends NodeSocket {
    constructor(address: string) {
      super(address);
      opened.push(address);
    }
  }
  // the socket of Node's own world: the page's is an imitation that names another origin
  const webSocket = Counted as unknown as typeof WebSocket;
  const transport = socketTransport({ url: `${plug.url.replace("http", "ws")}/api/chat/ws`, webSocket, silenceMs });
  const subject = fresh("fox");
  const { thread, sees, becomes } = page({ url: plug.url, transport });
  thread.send(`story ${subject}`);
  await sees("Once upon a time");
  const before = plug.pieces;
  await until(() => plug.pieces > before + 6, "answers to its pings");
  expect(opened.length).toBe(1);
  plug.hush();
  await until(() => opened.length === 2, "another socket");
  here.server.openGate(subject, "text");
  await becomes(({ run }) => run.state === "done", "the end");
  expect(lines(thread.state)).toEqual([`user: story ${subject}`, `assistant: Once upon a time there was ${subject}.`]);
  transport.close();
});

it.concurrent("the awaiting wire is read on when it goes silent", async () => {
  const plug = await here.plug();
  const subject = fresh("fox");
  const thread = new AwaitingThread({ url: plug.url, handlers: {}, silenceMs, backOff: () => 50 });
  let text = "";
  for await (const event of thread.run(`story ${subject}`)) {
    text += event.type === "content" ? event.text.replaceAll(/<[^>]*>/g, "") : "";
    if (text === "Once upon a time ") {
      plug.hush();
      here.server.openGate(subject, "text");
    }
  }
  expect(text).toBe(`Once upon a time there was ${subject}.`);
});
