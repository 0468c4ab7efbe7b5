// Which answers are sent again, and which a person has to give again.
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { requirement } from "../../../tests/requirement.ts";
import { type Delivery, httpOf, Outbox } from "../src/index.ts";
import { Memory } from "./page.ts";

const YES = { id: "apr_1", path: "/api/tools/approve", body: '{"approvalId":"apr_1","approved":true}' };
const ANSWER = { id: "call_1", path: "/api/tools/ack", body: '{"toolCallId":"call_1","status":"success"}' };

type Reply = number | "away";

class Server {
  readonly asked: string[] = [];
  reply: Reply = 200;
  signIn = "ada";
  readonly http = httpOf({
    signIn: () => this.signIn,
    fetch: async (path) => {
      this.asked.push(String(path));
      if (this.reply === "away") {
        throw new TypeError("Failed to fetch");
      }
      const body = this.reply === 200 ? { ok: true } : { error: { code: "unauthenticated", message: "You are not signed in." } };
      return new Response(JSON.stringify(body), { status: this.reply });
    },
  });
}

let server = new Server();
let storage = new Memory();

beforeEach(() => {
  vi.useFakeTimers();
  server = new Server();
  storage = new Memory();
});
afterEach(() => void vi.useRealTimers());

const open = (url = ""): Outbox => new Outbox({ http: { ...server.http, url }, storage, backOff: () => 5_000, onChange: () => undefined });
const pass = (ms: number): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);
const stateOf = (outbox: Outbox, id: string): Delivery | undefined => outbox.deliveries.get(id);

it("an approval that finds no server is sent again for 60 s, and then asked for again", async () => {
  requirement("approval:same-sign-in");
  server.reply = "away";
  const outbox = open();
  outbox.put(YES);
  await pass(58_000);
  expect(stateOf(outbox, "apr_1")?.state).toBe("undelivered");
  expect(server.asked.length).toBe(12);
  await pass(10_000);
  expect(stateOf(outbox, "apr_1")).toEqual({ state: "refused", status: 0, reason: "The answer did not arrive." });
  server.reply = 200;
  outbox.retry("apr_1");
  outbox.retryAll();
  await pass(600_000);
  expect(server.asked.length).toBe(12);
  expect(storage.length).toBe(0);
  // another press is another answer
  expect(outbox.put(YES)).toBe(true);
  await pass(0);
  expect(stateOf(outbox, "apr_1")).toEqual({ state: "settled", mine: true });
});

it("an approval that comes through within 60 s is delivered once", async () => {
  requirement("approval:same-sign-in");
  server.reply = "away";
  const outbox = open();
  outbox.put(YES);
  await pass(20_000);
  server.reply = 200;
  await pass(20_000);
  expect(stateOf(outbox, "apr_1")).toEqual({ state: "settled", mine: true });
  const { length } = server.asked;
  await pass(100_000);
  expect(server.asked.length).toBe(length);
});

it.each([401, 403, 400, 429])("an approval that was refused with %i is never sent without another press: not by hand, not after a reload", async (status) => {
  requirement("approval:same-sign-in");
  server.reply = status;
  const outbox = open();
  outbox.put(YES);
  await pass(0);
  expect(stateOf(outbox, "apr_1")).toEqual({ state: "refused", status, reason: "You are not signed in.", code: "unauthenticated" });
  expect(storage.length).toBe(0);
  server.reply = 200;
  server.signIn = "ada again";
  outbox.retry("apr_1");
  const reloaded = open();
  reloaded.recover();
  await pass(100_000);
  expect(server.asked.length).toBe(1);
});

it("an approval is not sent under another sign-in, though nobody refused it", async () => {
  requirement("approval:same-sign-in");
  server.reply = "away";
  const outbox = open();
  outbox.put(YES);
  await pass(0);
  server.reply = 200;
  server.signIn = "bob";
  await pass(30_000);
  expect(stateOf(outbox, "apr_1")).toMatchObject({ state: "refused", status: 0 });
  expect(server.asked.length).toBe(1);
});

it("after a reload an approval is sent within its time and sign-in alone", async () => {
  requirement("approval:same-sign-in");
  const sentAfter = async (change: () => Promise<unknown> | void): Promise<number> => {
    server.signIn = "ada";
    server.reply = "away";
    storage = new Memory();
    const before = open();
    before.put(YES);
    await pass(0);
    before.close();
    const { length } = server.asked;
    server.reply = 200;
    await change();
    const after = open();
    after.recover();
    await pass(200_000);
    expect(storage.length).toBe(0);
    return server.asked.length - length;
  };
  expect(await sentAfter(() => pass(30_000))).toBe(1);
  expect(await sentAfter(() => pass(61_000))).toBe(0);
  expect(await sentAfter(() => void (server.signIn = "bob"))).toBe(0);
  expect(await sentAfter(() => void vi.setSystemTime(Date.now() - 3_600_000))).toBe(0);
});

it("an approval is not sent after a reload by a page that cannot tell one sign-in from another, nor one of an older page", async () => {
  requirement("approval:same-sign-in");
  server.signIn = "";
  server.reply = "away";
  const outbox = open();
  outbox.put(YES);
  await pass(7_000);
  // while the page lives it is the same one
  expect(server.asked.length).toBe(2);
  outbox.close();
  server.reply = 200;
  open().recover();
  storage.setItem("farhand:answer:apr_1", JSON.stringify({ ...YES, url: "" }));
  open().recover();
  await pass(100_000);
  expect(server.asked.length).toBe(2);
  expect(storage.length).toBe(0);
});

it("another answer that was refused is there after a reload, and is sent by a press alone", async () => {
  server.reply = 401;
  const outbox = open();
  outbox.put(ANSWER);
  await pass(0);
  outbox.close();
  server.reply = 200;
  const after = open();
  after.recover();
  await pass(100_000);
  expect(server.asked.length).toBe(1);
  expect(stateOf(after, "call_1")).toEqual({ state: "refused", status: 401, reason: "You are not signed in.", code: "unauthenticated" });
  after.retry("call_1");
  await pass(0);
  expect(stateOf(after, "call_1")).toEqual({ state: "settled", mine: true });
  expect(storage.length).toBe(0);
});

it("another answer that finds no server is sent until it is received, however long that takes", async () => {
  server.reply = "away";
  const outbox = open();
  outbox.put(ANSWER);
  await pass(600_000);
  outbox.close();
  server.signIn = "ada again";
  server.reply = 200;
  const after = open();
  after.recover();
  await pass(0);
  expect(stateOf(after, "call_1")).toEqual({ state: "settled", mine: true });
});

it("an answer that was taken back is not sent by another thread of the page that has found it, too", async () => {
  requirement("approval:same-sign-in");
  server.reply = "away";
  for (const letter of [YES, ANSWER]) {
    const first = open();
    first.put(letter);
    await pass(0);
    const second = open();
    second.recover();
    await pass(0);
    expect(first.discard(letter.id)).toBe(true);
    server.reply = 200;
    const { length } = server.asked;
    await pass(50_000);
    expect(server.asked.length).toBe(length);
    expect(stateOf(second, letter.id)).toBeUndefined();
    server.reply = "away";
  }
});

it("an answer that was changed is not sent as it was by another thread of the page", async () => {
  server.reply = "away";
  const first = open();
  first.put(ANSWER);
  await pass(0);
  const second = open();
  second.recover();
  await pass(0);
  first.discard(ANSWER.id);
  server.reply = 200;
  first.put({ ...ANSWER, body: "another" });
  await pass(0);
  const { length } = server.asked;
  await pass(50_000);
  expect(server.asked.slice(length)).toEqual([]);
});

it("an answer is sent to the server that asked, and to no other one of the page", async () => {
  server.reply = "away";
  open().put(ANSWER);
  await pass(0);
  const { length } = server.asked;
  open("http://127.0.0.2:9").recover();
  await pass(50_000);
  expect(server.asked.slice(length).filter((url) => url.startsWith("http://127.0.0.2"))).toEqual([]);
  expect(storage.length).toBe(1);
});

it("the name of farhand's own sign-in is read from its cookie", () => {
  requirement("approval:same-sign-in");
  vi.stubGlobal("document", { cookie: "theme=dark; farhand_8787_sign_in=abc; x=y" });
  expect(httpOf({}).signIn()).toBe("farhand_8787_sign_in=abc");
  vi.stubGlobal("document", { cookie: "theme=dark" });
  expect(httpOf({}).signIn()).toBe("");
  const sandboxed = { get cookie(): string { throw new DOMException("sandboxed", "SecurityError"); } };
  vi.stubGlobal("document", sandboxed);
  expect(httpOf({}).signIn()).toBe("");
});
