import { expect, it } from "vitest";
import { allClients, type Page, type ToolCall } from "../clients/index.ts";
import { requirement } from "../requirement.ts";
import { ends, fresh, scene } from "../server-fixture.ts";
import { expectTranscript } from "../transcript.ts";

const here = scene();

/** The page's own tool, run by `onToolCall` as AI SDK's manual shows it. */
function openUrl(call: ToolCall, page: Page): void {
  if (call.toolName === "open_url") {
    page.bring(call, { ...(call.input as object), viewKey: "v1" });
  }
}

it.concurrent.for(allClients)(
  "$name runs a frontend tool by onToolCall and posts its output",
  async (client) => {
    requirement("ui-stream:frontend-tool");
    const page = here.open(client, { onToolCall: openUrl });
    const url = fresh("page");
    page.say(`open ${url}`);
    await ends(page, {
      seen: [
        `user: open ${url}`,
        "assistant: I will open it.",
        `assistant: open_url {"url":"${url}"} = {"url":"${url}","viewKey":"v1"}`,
        `assistant: open_url gave {"url": "${url}", "viewKey": "v1"}.`,
      ],
      posts: 2,
    });
    expect(page.toolCalls.length).toBe(1);
    expectTranscript("frontend-tool", { client, page, subject: url });
  },
);

it.concurrent.for(allClients)(
  "$name answers a frontend tool late, when its response has long ended",
  async (client) => {
    requirement("ui-stream:frontend-tool");
    const page = here.open(client);
    const url = fresh("page");
    page.say(`open ${url}`);
    await page.sees("is to run");
    await page.quiet();
    expect(page.wire.posts.length).toBe(1);
    page.answer("open_url", { opened: true });
    await ends(page, {
      seen: [
        `user: open ${url}`,
        "assistant: I will open it.",
        `assistant: open_url {"url":"${url}"} = {"opened":true}`,
        'assistant: open_url gave {"opened": true}.',
      ],
      posts: 2,
    });
    expectTranscript("late-answer", { client, page, subject: url });
  },
);

it.concurrent.for(allClients)("$name tells the model that a frontend tool failed", async (client) => {
  const page = here.open(client, {
    onToolCall: (call, page) => page.bringError(call, "the window was closed"),
  });
  const url = fresh("page");
  page.say(`open ${url}`);
  await ends(page, {
    seen: [
      `user: open ${url}`,
      "assistant: I will open it.",
      `assistant: open_url {"url":"${url}"} ! the window was closed`,
      "assistant: open_url gave nothing: failure, the window was closed.",
    ],
    posts: 2,
  });
  expectTranscript("error-answer", { client, page, subject: url });
});

it.concurrent.for(allClients)("$name answers two frontend calls in reverse, in one post", async (client) => {
  const page = here.open(client);
  const url = fresh("page");
  page.say(`two ${url}`);
  await page.sees(`${url}/2"} is to run`);
  page.answer("open_url", "second", 1);
  page.answer("open_url", "first", 0);
  await ends(page, {
    seen: [
      `user: two ${url}`,
      `assistant: open_url {"url":"${url}/1"} = "first"`,
      `assistant: open_url {"url":"${url}/2"} = "second"`,
      'assistant: open_url gave "first". open_url gave "second".',
    ],
    posts: 2,
  });
  expectTranscript("two-frontend-calls", { client, page, subject: url });
});

it.concurrent.for(allClients)("$name posts the answers of a step one by one", async (client) => {
  const page = here.open(client, { autoSend: "never" });
  const url = fresh("page");
  page.say(`two ${url}`);
  await page.sees(`${url}/2"} is to run`);
  await page.rests();
  page.answer("open_url", "second", 1);
  await page.sees('= "second"');
  page.post();
  await page.rests();
  expect(page.seen().at(-1)).toBe(`assistant: open_url {"url":"${url}/2"} = "second"`);
  page.answer("open_url", "first");
  await page.sees('= "first"');
  page.post();
  await ends(page, {
    seen: [
      `user: two ${url}`,
      `assistant: open_url {"url":"${url}/1"} = "first"`,
      `assistant: open_url {"url":"${url}/2"} = "second"`,
      'assistant: open_url gave "first". open_url gave "second".',
    ],
    posts: 3,
  });
  expectTranscript("partial-answers", { client, page, subject: url });
});

it.concurrent.for(allClients)("$name has a server tool and a frontend tool in one step", async (client) => {
  const page = here.open(client, { onToolCall: openUrl });
  const subject = fresh("both");
  page.say(`both ${subject}`);
  await ends(page, {
    seen: [
      `user: both ${subject}`,
      `assistant: weather {"city":"${subject}"} = {"city":"${subject}","sky":"sunny"}`,
      `assistant: open_url {"url":"${subject}"} = {"url":"${subject}","viewKey":"v1"}`,
      `assistant: weather gave {"city": "${subject}", "sky": "sunny"}. ` +
        `open_url gave {"url": "${subject}", "viewKey": "v1"}.`,
    ],
    posts: 2,
  });
  expect(here.server.executions("weather", subject)).toBe(1);
  expectTranscript("mixed-step", { client, page, subject });
});
