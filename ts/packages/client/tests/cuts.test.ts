// What breaks between a page and its server, and that nothing is lost by it.
import { expect, it } from "vitest";
import { fresh, scene } from "../../../tests/server-fixture.ts";
import { Server } from "../../../tests/server.ts";
import { callOf, lines, Memory, pages } from "./page.ts";

const here = scene();
const page = pages(here);

it("a stream that is cut is read on from where the page stands, and no text comes twice", async () => {
  const plug = await here.plug();
  const subject = fresh("fox");
  const { thread, sees, becomes, requests } = page({ url: plug.url });
  thread.send(`story ${subject}`);
  await sees("Once upon a time");
  plug.pull();
  const resumes = (): string[] => requests.filter((each) => each.includes("/stream?after="));
  await becomes(({ connection }) => resumes().length === 1 && connection.state === "open", "the first resume");
  await sees("Once upon a time");
  plug.pull();
  await becomes(({ connection }) => resumes().length === 2 && connection.state === "open", "the second resume");
  here.server.openGate(subject, "text");
  await becomes(({ run }) => run.state === "done", "the end");
  expect(lines(thread.state)).toEqual([`user: story ${subject}`, `assistant: Once upon a time there was ${subject}.`]);
  // only the rest is asked for
  expect(resumes().filter((each) => each.endsWith("after=0.0"))).toEqual([]);
  expect(requests.filter((each) => each.startsWith("POST /api/chat")).length).toBe(1);
});

it("a connection that is lost says when it is tried again, and can be resumed by hand", async () => {
  const plug = await here.plug();
  const subject = fresh("fox");
  const { thread, sees, becomes } = page({ url: plug.url, backOff: () => 3_600_000 });
  thread.send(`story ${subject}`);
  await sees("Once upon a time");
  plug.pull();
  await becomes(({ connection }) => connection.state === "lost" && connection.retryAt > Date.now(), "the loss");
  here.server.openGate(subject, "text");
  thread.resume();
  await sees(`there was ${subject}.`);
});

it("an answer that finds no server is kept over a reload and delivered once, unchanged", async () => {
  const server = await Server.start();
  const threadId = fresh("thread");
  const storage = new Memory();
  const options = { url: server.url, threadId, onUnknown: "card" as const, storage };
  const before = page(options);
  before.thread.send(`open ${fresh("page")}`);
  await before.becomes(({ facts }) => facts.size === 1, "a call");
  await server.end("SIGKILL");
  const callId = callOf(before.thread.state, "open_url");
  expect(before.thread.answer(callId, { kind: "success", output: { by: "me" } })).toBe(true);
  await before.becomes(({ deliveries }) => deliveries.get(callId)?.state === "undelivered", "a failed attempt");
  await before.becomes(() => before.requests.filter((each) => each.endsWith("/ack")).length > 2, "more attempts");
  const sent = before.bodies.filter((body) => body.includes(callId));
  expect(new Set(sent).size).toBe(1);
  before.thread.close();
  expect(storage.length).toBe(1);

  const after = page(options);
  const opened = after.thread.open();
  await server.start();
  await opened;
  await after.becomes(({ deliveries }) => deliveries.get(callId)?.state === "settled", "a receipt");
  await after.sees('open_url gave {"by": "me"}.');
  expect(after.thread.state.deliveries.get(callId)).toEqual({ state: "settled", mine: true });
  expect(storage.length).toBe(0);
  after.thread.close();
  await server.close();
});

it("a page stays on its run while the server is stopped and started again", async () => {
  const server = await Server.start();
  const ran: string[] = [];
  const { thread, sees, becomes } = page({ url: server.url, onUnknown: "card" });
  thread.send(`open ${fresh("page")}`);
  await becomes(({ facts }) => facts.size === 1, "a call");
  await server.end("SIGTERM");
  await server.start();
  const callId = callOf(thread.state, "open_url");
  expect(thread.answer(callId, { kind: "failure", error: "skipped by the user" })).toBe(true);
  await sees("open_url gave nothing: failure, skipped by the user.");
  expect(ran).toEqual([]);
  thread.close();
  await server.close();
});

it("what the server refuses is shown and never repeated by itself", async () => {
  const { thread, becomes, requests, storage } = page({ onUnknown: "card" });
  thread.send(`open ${fresh("page")}`);
  await becomes(({ facts }) => facts.size === 1, "a call");
  const callId = callOf(thread.state, "open_url");
  thread.answer(callId, { kind: "failure", error: "x".repeat(5_000) });
  await becomes(({ deliveries }) => deliveries.get(callId)?.state === "refused", "a refusal");
  expect(thread.state.deliveries.get(callId)).toMatchObject({ status: 413, reason: expect.stringContaining("4096 bytes") });
  expect(requests.filter((each) => each.endsWith("/ack")).length).toBe(1);
  // nothing is lost: it may be sent again, or taken back and changed
  expect(storage.length).toBe(1);
  expect(thread.discard(callId)).toBe(true);
  expect(storage.length).toBe(0);
  thread.answer(callId, { kind: "success", output: "short" });
  await becomes(({ run }) => run.state === "done", "the end");
});

it("who answers a call that somebody else has answered gets an error", async () => {
  const { thread, becomes } = page({ onUnknown: "card" });
  thread.send(`two ${fresh("page")}`);
  await becomes(({ facts }) => facts.size === 2, "two calls");
  const callId = callOf(thread.state, "open_url");
  await here.post("/api/tools/ack", { toolCallId: callId, status: "success", output: "elsewhere" });
  thread.answer(callId, { kind: "success", output: "here" });
  await becomes(({ deliveries }) => deliveries.get(callId)?.state === "settled", "a receipt");
  expect(thread.state.deliveries.get(callId)).toEqual({ state: "settled", mine: false, reason: "conflict", outcome: "success" });
  thread.answer("call_of_nobody", { kind: "success", output: 1 });
  await becomes(({ deliveries }) => deliveries.get("call_of_nobody")?.state === "settled", "a receipt");
  expect(thread.state.deliveries.get("call_of_nobody")).toEqual({ state: "settled", mine: false, reason: "unknown" });
});

it("a storage that is full or forbidden does not keep an answer from being sent", async () => {
  const refuse = (): never => {
    throw new DOMException("full", "QuotaExceededError");
  };
  const storage = { length: 0, key: () => null, getItem: () => null, setItem: refuse, removeItem: refuse };
  const { thread, sees } = page({ storage, handlers: { open_url: () => "shown" } });
  thread.send(`open ${fresh("page")}`);
  await sees('open_url gave "shown".');
});
