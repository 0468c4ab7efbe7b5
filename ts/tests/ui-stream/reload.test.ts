// The reload as the docs have it, with every version of the peer range: the record up to the answer under way, then the stream.
import { expect, it } from "vitest";
import { type Client, clients, type Opening, type Page, type ToolCall } from "../clients/index.ts";
import { versions } from "../clients/versions.tsx";
import type { Message } from "../message.ts";
import { ends, fresh, scene } from "../server-fixture.ts";

const here = scene();
const everyVersion: readonly Client[] = [...versions, ...clients];

const openUrl = (call: ToolCall, page: Page): void => {
  if (call.toolName === "open_url") {
    page.bring(call, "opened");
  }
};

/** The page is left, and opened again with what the docs say: `GET /api/chat/{id}?resume=true`. */
async function reload(client: Client, page: Page, opening: Partial<Opening> = {}): Promise<Page> {
  page.close();
  const response = await fetch(`${here.server.url}/api/chat/${page.chatId}?resume=true`);
  const { messages, resume } = (await response.json()) as { messages: Message[]; resume: boolean };
  return here.open(client, { ...opening, chatId: page.chatId, messages, resume });
}

const journey = (subject: string): string[] => [
  `user: journey ${subject}`,
  "assistant: First the server. ",
  `assistant: slow {"subject":"${subject}"} = {"waited":"${subject}"}`,
  `assistant: open_url {"url":"${subject}"} = "opened"`,
  `assistant: And slow gave {"waited": "${subject}"}. open_url gave "opened".`,
];

it.concurrent.for(everyVersion)("$name, reloaded in the middle of a text, shows it once and continues", async (client) => {
  const first = here.open(client);
  const subject = fresh("trip");
  first.say(`journey ${subject}`);
  await first.sees("First");
  const page = await reload(client, first, { onToolCall: openUrl });
  await page.sees("First");
  here.server.openGate(subject, "text");
  here.server.openGate(subject, "tool");
  here.server.openGate(subject, "end");
  await ends(page, { seen: journey(subject), posts: 1 });
  expect(here.server.executions("slow", subject)).toBe(1);
});

it.concurrent.for(everyVersion)("$name, reloaded after steps that are done, shows each of them once", async (client) => {
  const first = here.open(client, { onToolCall: openUrl });
  const subject = fresh("trip");
  first.say(`journey ${subject}`);
  here.server.openGate(subject, "text");
  here.server.openGate(subject, "tool");
  await first.sees("And");
  const page = await reload(client, first, { onToolCall: openUrl });
  await page.sees("And");
  here.server.openGate(subject, "end");
  await ends(page, { seen: journey(subject), posts: 0 });
  expect(page.toolCalls).toEqual([]);
});

it.concurrent.for(everyVersion)("$name, reloaded at a call of the page, posts the person's answer once", async (client) => {
  const first = here.open(client);
  const url = fresh("page");
  first.say(`open ${url}`);
  await first.sees("is to run");
  await first.rests();
  const page = await reload(client, first);
  await page.sees("is to run");
  await page.rests();
  page.answer("open_url", "opened");
  await ends(page, {
    seen: [
      `user: open ${url}`,
      "assistant: I will open it.",
      `assistant: open_url {"url":"${url}"} = "opened"`,
      'assistant: open_url gave "opened".',
    ],
    posts: 1,
  });
  expect(page.toolCalls.length).toBe(1);
});

it.concurrent.for(everyVersion)("$name, reloaded at an approval, posts the approval once and the tool runs once", async (client) => {
  const { page, path } = await reloadedAtApproval(client);
  page.decide("delete_file", true);
  await ends(page, {
    seen: [
      `user: delete ${path}`,
      `assistant: delete_file {"path":"${path}"} = {"deleted":"${path}"}`,
      `assistant: delete_file gave {"deleted": "${path}"}.`,
    ],
    posts: 1,
  });
  expect(here.server.executions("delete_file", path)).toBe(1);
});

it.concurrent.for(everyVersion)("$name, reloaded at an approval, posts the no once and nothing runs", async (client) => {
  const { page, path } = await reloadedAtApproval(client);
  page.decide("delete_file", false);
  await page.quiet();
  expect(page.seen().slice(0, 2)).toEqual([`user: delete ${path}`, `assistant: delete_file {"path":"${path}"} denied`]);
  expect(page.seen().length).toBe(3);
  expect(page.wire.posts.length).toBe(1);
  expect(here.server.executions("delete_file", path)).toBe(0);
});

it.concurrent.for(everyVersion)("$name, reloaded after the answer has ended, has it from the record and resumes nothing", async (client) => {
  const first = here.open(client, { onToolCall: openUrl });
  const url = fresh("page");
  first.say(`open ${url}`);
  await first.sees("open_url gave");
  await first.rests();
  const seen = first.seen();
  const page = await reload(client, first, { onToolCall: openUrl });
  expect(page.seen()).toEqual(seen);
  expect(page.wire.exchanges).toEqual([]);
  page.say(`hello ${url}`);
  await page.sees("this is your message number 2");
  expect(page.seen().length).toBe(seen.length + 2);
});

async function reloadedAtApproval(client: Client): Promise<{ page: Page; path: string }> {
  const first = here.open(client);
  const path = fresh("file");
  first.say(`delete ${path}`);
  await first.sees("may it run?");
  await first.rests();
  const page = await reload(client, first);
  await page.sees("may it run?");
  await page.rests();
  return { page, path };
}
