// AI SDK's chat and the page's hands over a line that goes silent without an end: the chat never knows, and nothing comes twice.
import { Chat } from "@ai-sdk/react";
import type { UIMessage } from "ai";
import { afterAll, expect, it } from "vitest";
import { linesOf, type Message } from "../../../tests/message.ts";
import { fresh, scene } from "../../../tests/server-fixture.ts";
import { until } from "../../../tests/until.ts";
import { FarHands, LiveTransport } from "../src/index.ts";

// keep-alives and patience as they are, in small
const here = scene({ FARHAND_TIMEOUTS__KEEP_ALIVE: "0.3" });
const silenceMs = 1_500;
const closing: (() => unknown)[] = [];
afterAll(() => closing.forEach((close) => close()));

const seen = (chat: Chat<UIMessage>): string[] => linesOf(chat.messages as unknown as Message[]);

function open(url: string, id = fresh("chat"), hands?: FarHands): { chat: Chat<UIMessage>; line: LiveTransport; sees: (text: string) => Promise<void> } {
  const line = new LiveTransport({ url, silenceMs, backOff: () => 50 });
  const chat = new Chat<UIMessage>({ id, transport: line, ...(hands === undefined ? {} : { onToolCall: hands.onToolCall }) });
  closing.push(() => chat.stop(), () => hands?.close());
  const sees = (text: string): Promise<void> => until(() => seen(chat).join("\n").includes(text), () => `"${text}"; the page is:\n${seen(chat).join("\n")}`);
  return { chat, line, sees };
}

it.concurrent("LiveTransport reads a silent answer on from its position", async () => {
  const plug = await here.plug();
  const subject = fresh("fox");
  const { chat, sees } = open(plug.url);
  void chat.sendMessage({ text: `story ${subject}` });
  await sees("Once upon a time");
  plug.hush();
  here.server.openGate(subject, "text");
  await until(() => chat.status === "ready", "the end");
  expect(seen(chat)).toEqual([`user: story ${subject}`, `assistant: Once upon a time there was ${subject}.`]);
});

it.concurrent("LiveTransport reads a resumed answer on, however often it goes silent", async () => {
  const plug = await here.plug();
  const subject = fresh("fox");
  const first = open(here.server.url);
  void first.chat.sendMessage({ text: `story ${subject}` });
  await first.sees("Once upon a time");
  const second = open(plug.url, first.chat.id);
  const states: string[] = [];
  second.line.subscribe(() => states.push(second.line.connection.state));
  void second.chat.resumeStream();
  await second.sees("Once upon a time");
  // on a busy machine a line may be lost once more, by itself
  const losses = (): number => states.filter((state) => state === "lost").length;
  for (let times = 0; times < 2; times += 1) {
    const before = losses();
    plug.hush();
    await until(() => losses() > before && states.at(-1) === "open", "the line being back");
  }
  here.server.openGate(subject, "text");
  await until(() => second.chat.status === "ready", "the end");
  expect(seen(second.chat)).toEqual([`assistant: Once upon a time there was ${subject}.`]);
});

it.concurrent("FarHands runs a call once and answers it, though the line goes silent while it runs", async () => {
  const plug = await here.plug();
  const url = fresh("page");
  let runs = 0;
  const handlers = {
    open_url: () => {
      runs += 1;
      plug.hush();
      return "opened";
    },
  };
  const hands = new FarHands({ url: plug.url, silenceMs, handlers, backOff: () => 50 });
  const { chat, sees } = open(plug.url, fresh("chat"), hands);
  void chat.sendMessage({ text: `open ${url}` });
  await sees('open_url gave "opened".');
  await until(() => chat.status === "ready", "the end");
  expect(runs).toBe(1);
  expect(seen(chat).filter((line) => line.includes("gave"))).toEqual(['assistant: open_url gave "opened".']);
});

it.concurrent("a stream that is released is released once the server has the message, and the run continues", async () => {
  const plug = await here.plug();
  const subject = fresh("fox");
  const { chat, line, sees } = open(plug.url);
  void chat.sendMessage({ text: `story ${subject}` });
  // before the server has answered: the message must not be lost
  line.release();
  await until(() => chat.status === "ready", "the end of the reading");
  expect(seen(chat)[0]).toBe(`user: story ${subject}`);
  here.server.openGate(subject, "text");
  await until(async () => JSON.stringify(await here.kept(chat.id)).includes(`there was ${subject}.`), "the end of the run");
  void chat.resumeStream();
  await sees(`there was ${subject}.`);
});
