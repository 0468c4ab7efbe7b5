// AI SDK's chat with farhand's transport, its rule for automatic posts, and hands beside a held stream.
import { Chat } from "@ai-sdk/react";
import type { UIMessage } from "ai";
import { afterAll, expect, it } from "vitest";
import { requirement } from "../../../tests/requirement.ts";
import { fresh, scene } from "../../../tests/server-fixture.ts";
import { linesOf, type Message, type Part } from "../../../tests/message.ts";
import { until } from "../../../tests/until.ts";
import { FarHands, farhandTransport, type FarHandsOptions, sendWhenAnswered } from "../src/index.ts";

const here = scene();
const closing: (() => unknown)[] = [];
afterAll(() => closing.forEach((close) => close()));

interface Page {
  readonly chat: Chat<UIMessage>;
  readonly hands: FarHands;
  readonly posts: { id: string; messages: unknown[]; wait: string }[];
  readonly requests: string[];
  readonly seen: () => string[];
  readonly part: (tool: string) => Part | undefined;
  readonly sees: (text: string) => Promise<void>;
}

interface Opening extends Partial<FarHandsOptions> {
  readonly wait: "turn" | "hold";
  readonly id?: string;
  readonly onToolCall?: (call: { toolCallId: string; toolName: string }, chat: Chat<UIMessage>) => void;
}

function open({ wait, id = fresh("chat"), onToolCall, ...options }: Opening): Page {
  const [posts, requests]: [Page["posts"], string[]] = [[], []];
  const lookedOn: typeof fetch = (input, init) => {
    const { pathname } = new URL(String(input));
    requests.push(`${init?.method ?? "GET"} ${pathname}`);
    if (pathname === "/api/chat" && init?.method === "POST") {
      posts.push(JSON.parse(String(init.body)) as Page["posts"][number]);
    }
    return fetch(input, init);
  };
  const url = here.server.url;
  const hands = new FarHands({
    url,
    fetch: lookedOn,
    handlers: {},
    onReceipt: () => (chat.status === "ready" || chat.status === "error") && void chat.resumeStream(),
    ...options,
  });
  const chat: Chat<UIMessage> = new Chat<UIMessage>({
    id,
    transport: farhandTransport({ url, wait, fetch: lookedOn }),
    ...(wait === "turn" ? { sendAutomaticallyWhen: sendWhenAnswered({ frontendTools: ["open_url", "take_photo"] }) } : {}),
    onToolCall: ({ toolCall }) => (wait === "hold" ? hands.onToolCall({ toolCall }) : onToolCall?.(toolCall, chat)),
  });
  closing.push(() => (hands.close(), chat.stop()));
  const messages = (): Message[] => chat.messages as unknown as Message[];
  const seen = (): string[] => linesOf(messages());
  return {
    chat,
    hands,
    posts,
    requests,
    seen,
    part: (tool) => messages().flatMap(({ parts }) => parts).findLast((part) => part.type === `tool-${tool}`),
    sees: (text) => until(() => seen().join("\n").includes(text), () => `"${text}"; it is:\n${seen().join("\n")}\n${requests.join("\n")}`),
  };
}

it.concurrent("only the last message is sent, however long the chat is", async () => {
  const { chat, sees, posts } = open({ wait: "turn" });
  void chat.sendMessage({ text: "hello ann" });
  await sees("message number 1.");
  await until(() => chat.status === "ready", "the end");
  void chat.sendMessage({ text: "hello ann" });
  await sees("message number 2.");
  await until(() => chat.status === "ready", "the end");
  expect(posts.map(({ messages }) => messages.length)).toEqual([1, 1]);
  await chat.regenerate();
  expect(chat.messages.length).toBe(4);
  expect(posts.length).toBe(3);
});

it.concurrent("an approval of a tool of the page and its output go in one post", async () => {
  requirement("ui-stream:frontend-approval");
  const { chat, sees, posts, part } = open({ wait: "turn" });
  void chat.sendMessage({ text: `photo ${fresh("cat")}` });
  await sees("may it run?");
  await until(() => chat.status === "ready", "the end of the turn");
  const photo = part("take_photo");
  await chat.addToolApprovalResponse({ id: photo?.approval?.id ?? "", approved: true });
  await sees("may run");
  await chat.addToolOutput({ tool: "take_photo", toolCallId: photo?.toolCallId ?? "", output: { name: "cat.png" } });
  await sees('take_photo gave {"name": "cat.png"}.');
  expect(posts.length).toBe(2);
  expect(posts.map(({ messages }) => messages.length)).toEqual([1, 1]);
});

it.concurrent("a tool runs in the page and is acked beside the held stream, with one post in all", async () => {
  const url = fresh("page");
  const ran: string[] = [];
  const { chat, sees, posts, requests } = open({
    wait: "hold",
    handlers: { open_url: (input: { url: string }) => (ran.push(input.url), { url: input.url, viewKey: "v" }) },
  });
  void chat.sendMessage({ text: `open ${url}` });
  await sees("open_url gave");
  expect(ran).toEqual([url]);
  expect(posts).toMatchObject([{ wait: "hold" }]);
  // a receipt may come after the end of the stream, and then one more look at it does no harm
  const posted = requests.filter((each) => each.startsWith("POST"));
  expect(posted).toEqual(["POST /api/chat", "POST /api/tools/take", "POST /api/tools/ack"]);
  await sees(`assistant: open_url gave {"url": "${url}", "viewKey": "v"}.`);
});

it.concurrent("an approval is answered beside the held stream, with what the person edited", async () => {
  const [path, other] = [fresh("file"), fresh("other")];
  const { chat, hands, sees, part, posts } = open({ wait: "hold" });
  void chat.sendMessage({ text: `delete ${path}` });
  await sees("may it run?");
  const id = part("delete_file")?.approval?.id ?? "";
  expect(hands.approve(id, { approved: true, input: { path: other } })).toBe(true);
  expect(hands.approve(id, { approved: false })).toBe(false);
  await sees(`delete_file gave {"deleted": "${other}"}.`);
  expect(posts.length).toBe(1);
  expect(here.server.executions("delete_file", path)).toBe(0);
});

it.concurrent("a tool that the page does not have fails with its name; a server tool is left alone", async () => {
  const { chat, sees } = open({ wait: "hold" });
  void chat.sendMessage({ text: `both ${fresh("city")}` });
  await sees('open_url gave nothing: failure, This page has no handler for "open_url".');
  await sees("weather gave");
});

it.concurrent("an answer that comes when nobody reads is followed by a resume", async () => {
  let finish: ((output: string) => void) | undefined;
  const { chat, sees, requests } = open({
    wait: "hold",
    handlers: { open_url: () => new Promise<string>((done) => (finish = done)) },
  });
  void chat.sendMessage({ text: `open ${fresh("page")}` });
  await sees("is to run");
  await until(() => finish !== undefined, "the handler");
  await chat.stop();
  await until(() => chat.status === "ready", "the cut");
  finish?.("late");
  await sees('open_url gave "late".');
  expect(requests.filter((each) => each === "POST /api/chat").length).toBe(1);
});

it.concurrent("a handler whose call was settled elsewhere is aborted", async () => {
  let [begun, aborted] = [false, false];
  const { chat, hands, sees, part } = open({
    wait: "hold",
    handlers: {
      open_url: (_: unknown, { signal }: { signal: AbortSignal }) =>
        new Promise((done) => {
          begun = true;
          signal.addEventListener("abort", () => ((aborted = true), done(1)));
        }),
    },
  });
  void chat.sendMessage({ text: `open ${fresh("page")}` });
  await until(() => begun, "the handler");
  await here.post("/api/tools/ack", { toolCallId: part("open_url")?.toolCallId, status: "success", output: "elsewhere" });
  await sees('open_url gave "elsewhere".');
  hands.watch(chat.messages);
  await until(() => aborted, "the abort");
  expect(hands.deliveries.size).toBe(0);
});
