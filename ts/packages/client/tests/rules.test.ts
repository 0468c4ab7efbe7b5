// Rules that need no server: what a chunk changes, which handler counts, what may be opened, what is believed.
import { readdirSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { Chunk } from "@farhand/protocol";
import { expect, it, vi } from "vitest";
import { requirement } from "../../../tests/requirement.ts";
import { type Call, Executor, httpOf, LiveThread, openable, Outbox, reduce, EMPTY_CONVERSATION, type Conversation } from "../src/index.ts";
import { chunkOf } from "../src/transport.ts";
import { Memory } from "./page.ts";

const TRANSCRIPTS = resolve(import.meta.dirname, "../../../../schema/transcripts/ui_stream");

const told = (...chunks: Chunk[]): Conversation => chunks.reduce(reduce, EMPTY_CONVERSATION);
const start: Chunk = { type: "start", messageId: "run_1" };
const written: Chunk[] = [
  start,
  { type: "tool-input-start", toolCallId: "call_1", toolName: "open_url" },
  { type: "tool-input-delta", toolCallId: "call_1", inputTextDelta: '{"url":' },
];

function executorOf(handlers: object, log: string[]): Executor {
  return new Executor({
    http: httpOf({ url: "http://127.0.0.1:9", fetch: (input, init) => (log.push(String(input)), fetch(input, init)) }),
    handlers: handlers as never,
    onUnknown: "fail",
    clientId: "page_1",
    settle: () => log.push("settled"),
    onChange: () => undefined,
  });
}

it("input that the model is still writing is shown to no handler", () => {
  requirement("client:executes-once");
  const asked: string[] = [];
  const executor = executorOf({ open_url: () => asked.push("ran") }, asked);
  const conversation = told(...written);
  expect(conversation.calls.get("call_1")).toMatchObject({ phase: "writing", text: '{"url":' });
  for (const call of conversation.calls.values()) {
    executor.see(call, { frontend: true });
  }
  const asking = reduce(conversation, { type: "tool-approval-request", approvalId: "apr_1", toolCallId: "call_1" });
  expect(asking.calls.get("call_1")).toEqual({ id: "call_1", tool: "open_url", phase: "asking", input: {}, approvalId: "apr_1" });
  executor.see(asking.calls.get("call_1") as Call, { frontend: true });
  expect(asked).toEqual([]);
  executor.close();
});

it("a call without an id is not shown and not executed", () => {
  requirement("client:executes-once");
  const available: Chunk = { type: "tool-input-available", toolCallId: "", toolName: "open_url", input: {} };
  expect(told(start, available).calls.size).toBe(0);
  const asked: string[] = [];
  const executor = executorOf({ open_url: () => asked.push("ran") }, asked);
  executor.see({ id: "", tool: "open_url", phase: "ready", input: {} }, { frontend: true });
  expect(asked).toEqual([]);
});

it("only handlers of the page's own count", () => {
  const executor = executorOf({ open_url: () => 1, note: "not a function" }, []);
  expect(executor.handles("open_url")).toBe(true);
  for (const name of ["constructor", "toString", "__proto__", "hasOwnProperty", "note"]) {
    expect(executor.handles(name)).toBe(false);
  }
});

it("a replay of a message takes the place of what was there, and a settled call stays settled", () => {
  const whole: Chunk[] = [
    start,
    { type: "text-start", id: "t" },
    { type: "text-delta", id: "t", delta: "Hello." },
    { type: "tool-input-available", toolCallId: "call_1", toolName: "open_url", input: { url: "x" } },
    { type: "tool-output-available", toolCallId: "call_1", output: 1 },
  ];
  const once = told(...whole);
  const twice = [...whole, ...written].reduce(reduce, once);
  expect(told(...whole, ...whole)).toEqual(once);
  expect(twice.calls.get("call_1")).toEqual(once.calls.get("call_1"));
  expect(twice.messages.at(-1)?.parts).toEqual([{ type: "call", callId: "call_1" }]);
});

it("a call that was written out whole and not handed out is somebody else's", () => {
  const whole: Chunk = { type: "tool-input-delta", toolCallId: "call_1", inputTextDelta: '"x"}' };
  const taken = told(...written, whole, { type: "finish-step" }).calls.get("call_1");
  expect(taken).toEqual({ id: "call_1", tool: "open_url", phase: "taken", input: { url: "x" } });
  const asked: string[] = [];
  executorOf({ open_url: () => asked.push("ran") }, asked).see(taken as Call, { frontend: true });
  expect(asked).toEqual([]);
  // one that was cut in the middle was never a call
  const cut = told(...written, { type: "finish-step" }, { type: "finish", finishReason: "stop" });
  expect(cut.calls.size).toBe(0);
});

it("a call of a step that was discarded is gone at the end", () => {
  const first = told(start, { type: "tool-input-available", toolCallId: "call_1", toolName: "open_url", input: {} });
  const replayed = ([start, { type: "finish", finishReason: "stop" }] as Chunk[]).reduce(reduce, first);
  expect([...replayed.calls.keys()]).toEqual([]);
});

it("a call that a crash cut while it was written is gone when its step begins again", () => {
  const again = told(...written, { type: "start-step" }, { type: "tool-input-start", toolCallId: "call_2", toolName: "open_url" });
  expect([...again.calls.keys()]).toEqual(["call_2"]);
});

it("every answer of the transcripts is believed, and ends with no call in the middle of being written", () => {
  const names = readdirSync(TRANSCRIPTS);
  expect(names.length).toBeGreaterThan(10);
  for (const name of names) {
    const lines = readFileSync(resolve(TRANSCRIPTS, name), "utf8").trim().split("\n");
    const texts = lines.filter((line) => line.startsWith('{"chunk":')).map((line) => JSON.stringify((JSON.parse(line) as { chunk: object }).chunk));
    const chunks = texts.flatMap((text) => chunkOf(text) ?? []);
    expect(chunks.length, name).toBe(texts.length);
    const conversation = chunks.reduce(reduce, EMPTY_CONVERSATION);
    expect([...conversation.calls.values()].filter(({ phase }) => phase === "writing"), name).toEqual([]);
    expect(conversation.run.state, name).not.toBe("running");
  }
});

it("what is no chunk is not believed", () => {
  requirement("client:executes-once");
  for (const text of ["{", "null", "[]", '{"type":"constructor"}', '{"type":"text-delta","id":1}', '{"type":"newer"}']) {
    expect(chunkOf(text)).toBeUndefined();
  }
  expect(chunkOf('{"type":"start-step","more":1}')).toEqual({ type: "start-step", more: 1 });
});

it("only absolute http and https addresses can be opened", () => {
  expect(openable("https://example.org/a?b#c")?.host).toBe("example.org");
  expect(openable("http://localhost:1/")?.protocol).toBe("http:");
  for (const text of [
    "javascript:alert(1)", " JaVaScRiPt:alert(1)", "java\nscript:alert(1)", "data:text/html,x", "blob:https://a/b", "file:///etc/passwd",
    "vbscript:x", "//example.org", "/path", "example.org", "", "https://", "https://me:secret@example.org/", "view-source:https://a.b",
  ]) {
    expect(openable(text), text).toBeUndefined();
  }
});

it("a page that was not loaded over https can conversation, too: a browser gives it no `randomUUID`", async () => {
  vi.stubGlobal("crypto", { getRandomValues: (numbers: Uint32Array) => numbers.fill(7) });
  const bodies: string[] = [];
  const thread = new LiveThread({ threadId: "t", storage: null, fetch: (_, init) => (bodies.push(String(init?.body)), Promise.reject(new TypeError("away"))) });
  thread.send("Hello");
  await vi.waitFor(() => expect(bodies).toHaveLength(1), 20_000);
  thread.close();
  expect(JSON.parse(bodies[0] ?? "")).toMatchObject({ messages: [{ id: "7-7-7-7" }] });
});

it("a letter in the storage that is broken, or addressed elsewhere, is not sent", async () => {
  const asked: string[] = [];
  const storage = new Memory();
  storage.setItem("farhand:answer:a", "{broken");
  storage.setItem("farhand:answer:b", JSON.stringify({ id: "b", path: "/api/chat", body: "{}" }));
  storage.setItem("farhand:answer:c", JSON.stringify({ id: "other", path: "/api/tools/ack", body: "{}" }));
  storage.setItem("theme", "dark");
  const http = httpOf({ url: "http://127.0.0.1:9", fetch: (input, init) => (asked.push(String(input)), fetch(input, init)) });
  const outbox = new Outbox({ http, storage, onChange: () => undefined });
  outbox.recover();
  expect(asked).toEqual([]);
});
