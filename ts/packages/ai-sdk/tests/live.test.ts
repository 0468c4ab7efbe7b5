// AI SDK's chat over a line that breaks: it notices nothing, and nothing comes twice.
import { Chat } from "@ai-sdk/react";
import type { UIMessage } from "ai";
import { afterAll, expect, it } from "vitest";
import { linesOf, type Message } from "../../../tests/message.ts";
import { fresh, scene } from "../../../tests/server-fixture.ts";
import { until } from "../../../tests/until.ts";
import { type LiveOptions, LiveTransport, Replay } from "../src/index.ts";

const here = scene();
const closing: (() => unknown)[] = [];
afterAll(() => closing.forEach((close) => close()));

interface Page {
  readonly chat: Chat<UIMessage>;
  readonly line: LiveTransport;
  readonly requests: string[];
  /** Every state of the line, in order. */
  readonly states: string[];
  readonly seen: () => string[];
  readonly sees: (text: string) => Promise<void>;
}

function open({ id = fresh("chat"), ...options }: LiveOptions & { id?: string } = {}): Page {
  const [requests, states]: [string[], string[]] = [[], []];
  const lookedOn: typeof fetch = (input, init) => {
    const { pathname, search } = new URL(String(input));
    requests.push(`${init?.method ?? "GET"} ${pathname}${search}`);
    return fetch(input, init);
  };
  const line = new LiveTransport({ url: here.server.url, backOff: () => 50, ...options, fetch: lookedOn });
  line.subscribe(() => states.at(-1) !== line.connection.state && states.push(line.connection.state));
  const chat = new Chat<UIMessage>({ id, transport: line });
  closing.push(() => chat.stop());
  const seen = (): string[] => linesOf(chat.messages as unknown as Message[]);
  const sees: Page["sees"] = (text) =>
    until(() => seen().join("\n").includes(text), () => `"${text}"; the page is:\n${seen().join("\n")}\n${chat.status} ${String(chat.error)}\n${requests.join("\n")}`);
  return { chat, line, requests, states, seen, sees };
}

it.concurrent("a stream that is cut is read on from there, and the chat never knows", async () => {
  const plug = await here.plug();
  const subject = fresh("fox");
  const { chat, requests, seen, sees, states } = open({ url: plug.url });
  void chat.sendMessage({ text: `story ${subject}` });
  await sees("Once upon a time");
  plug.pull();
  await until(() => states.includes("lost") && states.at(-1) === "open", "the line being back");
  expect(chat.status).toBe("streaming");
  here.server.openGate(subject, "text");
  await until(() => chat.status === "ready", "the end");
  expect(seen()).toEqual([`user: story ${subject}`, `assistant: Once upon a time there was ${subject}.`]);
  expect(requests.filter((each) => each.startsWith("POST")).length).toBe(1);
  expect(states).toEqual(["open", "lost", "open", "closed"]);
});

it.concurrent("a lost line is tried at once when somebody asks", async () => {
  const plug = await here.plug();
  const subject = fresh("fox");
  const { chat, line, sees, states } = open({ url: plug.url, backOff: () => 3_600_000 });
  void chat.sendMessage({ text: `story ${subject}` });
  await sees("Once upon a time");
  plug.pull();
  await until(() => line.connection.state === "lost", "the loss");
  here.server.openGate(subject, "text");
  line.retryNow();
  await sees(`there was ${subject}.`);
  expect(states.slice(0, 3)).toEqual(["open", "lost", "open"]);
});

it.concurrent("a post that nobody answered is posted again, and said once", async () => {
  let refusals = 2;
  const id = fresh("chat");
  const { chat, line, seen } = open({ id });
  const patient = new LiveTransport({
    url: here.server.url,
    backOff: () => 30,
    fetch: async (input, init) => {
      const response = await fetch(input, init);
      if (refusals-- > 0) {
        // the server has it, the page does not know
        await response.body?.cancel();
        throw new TypeError("fetch failed");
      }
      return response;
    },
  });
  const other = new Chat<UIMessage>({ id, transport: patient });
  await other.sendMessage({ text: "hello ann" });
  expect(linesOf(other.messages as unknown as Message[])).toEqual(["user: hello ann", "assistant: Hello ann, this is your message number 1."]);
  await chat.resumeStream();
  expect(seen()).toEqual(["assistant: Hello ann, this is your message number 1."]);
  expect(line.connection.state).toBe("closed");
});

it.concurrent("a page that comes later gets the whole message, once", async () => {
  const subject = fresh("fox");
  const first = open();
  void first.chat.sendMessage({ text: `story ${subject}` });
  await first.sees("Once upon a time");
  const second = open({ id: first.chat.id });
  const resumed = second.chat.resumeStream();
  await second.sees("Once upon a time");
  here.server.openGate(subject, "text");
  await resumed;
  await second.chat.resumeStream();
  expect(second.seen()).toEqual([`assistant: Once upon a time there was ${subject}.`]);
});

it.concurrent("a place that the server does not know is reported, so that the message is read again", async () => {
  const gap = 'data: {"type":"data-gap","data":{}}\n\ndata: [DONE]\n\n';
  const frames = ['id: 1.0\ndata: {"type":"start","messageId":"run_1"}\n\n', gap, gap];
  const answers = frames.map((text) => () => Promise.resolve(new Response(text)));
  const line = new LiveTransport({ url: "http://127.0.0.1:9", backOff: () => 1, fetch: () => (answers.shift() ?? Promise.reject)() });
  const chat = new Chat<UIMessage>({ transport: line });
  await chat.sendMessage({ text: "hello" });
  expect(chat.error).toBeInstanceOf(Replay);
});

it.concurrent("a refusal ends it with the server's words", async () => {
  const { chat, requests } = open({ id: "no spaces please" });
  await chat.sendMessage({ text: "hello" });
  expect(chat.status).toBe("error");
  expect(chat.error?.message).toContain("id must be");
  expect(requests.length).toBe(1);
});
