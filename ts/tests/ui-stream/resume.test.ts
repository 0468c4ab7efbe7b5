import { expect, it } from "vitest";
import { type Client, clients, type Page, type ToolCall } from "../clients/index.ts";
import type { Message } from "../message.ts";
import type { Plug } from "../tcp-relay.ts";
import { requirement } from "../requirement.ts";
import { ends, fresh, scene } from "../server-fixture.ts";
import { until } from "../until.ts";

const here = scene();

const whole = (subject: string): string[] => [
  `user: journey ${subject}`,
  "assistant: First the server. ",
  `assistant: slow {"subject":"${subject}"} = {"waited":"${subject}"}`,
  `assistant: open_url {"url":"${subject}"} = "opened"`,
  `assistant: And slow gave {"waited": "${subject}"}. open_url gave "opened".`,
];

const openUrl = (call: ToolCall, page: Page): void => {
  if (call.toolName === "open_url") {
    page.bring(call, "opened");
  }
};

interface Traveller {
  readonly subject: string;
  readonly plug: Plug;
  readonly page: Page;
}

async function onTheWay(client: Client, opening = {}): Promise<Traveller> {
  const plug = await here.plug();
  const page = here.open(client, { url: plug.url, ...opening });
  const subject = fresh("trip");
  page.say(`journey ${subject}`);
  return { subject, plug, page };
}

/** The connection breaks, and the page comes back: as it is, or reloaded where its client can do no better. */
async function cut(client: Client, { page, plug }: Traveller, onToolCall = openUrl): Promise<Page> {
  plug.pull();
  await until(() => page.error !== undefined, "the client noticing the cut");
  if (client.resumesFromEmptyOnly !== true) {
    return page;
  }
  const known = page.messages.filter((message) => message.role === "user");
  return here.open(client, { url: plug.url, chatId: page.chatId, messages: known, onToolCall });
}

it.concurrent.for(clients)("$name is cut before the first chunk and resumes", async (client) => {
  requirement("streams:resume");
  const traveller = await onTheWay(client, { onToolCall: openUrl });
  await until(() => traveller.page.wire.posts.length === 1, "the post");
  await until(
    async () => (await fetch(`${here.server.url}/api/chat/${traveller.page.chatId}`)).ok,
    "the chat",
  );
  const page = await cut(client, traveller);
  page.resume();
  here.server.openGate(traveller.subject, "text");
  here.server.openGate(traveller.subject, "tool");
  here.server.openGate(traveller.subject, "end");
  await ends(page, { seen: whole(traveller.subject), posts: postsOf(client, { before: 1, after: 1 }) });
  expect(here.server.executions("slow", traveller.subject)).toBe(1);
});

it.concurrent.for(clients)("$name is cut in the middle of a text and resumes", async (client) => {
  requirement("streams:resume");
  const traveller = await onTheWay(client, { onToolCall: openUrl });
  await traveller.page.sees("First");
  const page = await cut(client, traveller);
  page.resume();
  await page.sees("First");
  here.server.openGate(traveller.subject, "text");
  here.server.openGate(traveller.subject, "tool");
  here.server.openGate(traveller.subject, "end");
  await ends(page, { seen: whole(traveller.subject), posts: postsOf(client, { before: 1, after: 1 }) });
  expect(here.server.executions("slow", traveller.subject)).toBe(1);
  expect(page.toolCalls.filter((call) => call.toolName === "open_url").length).toBe(1);
});

it.concurrent.for(clients)("$name is cut while a server tool runs and resumes", async (client) => {
  requirement("streams:resume");
  const traveller = await onTheWay(client, { onToolCall: openUrl });
  here.server.openGate(traveller.subject, "text");
  await until(() => here.server.executions("slow", traveller.subject) === 1, "the tool running");
  await traveller.page.sees("is to run");
  const page = await cut(client, traveller);
  page.resume();
  here.server.openGate(traveller.subject, "tool");
  here.server.openGate(traveller.subject, "end");
  await ends(page, { seen: whole(traveller.subject), posts: postsOf(client, { before: 1, after: 1 }) });
  expect(here.server.executions("slow", traveller.subject)).toBe(1);
});

it.concurrent.for(clients)(
  "$name is cut in the middle of a continuation and resumes with the first steps",
  async (client) => {
    requirement("streams:resume");
    const traveller = await onTheWay(client, { onToolCall: openUrl });
    here.server.openGate(traveller.subject, "text");
    here.server.openGate(traveller.subject, "tool");
    await traveller.page.sees("And");
    const page = await cut(client, traveller);
    const before = page.toolCalls.length;
    page.resume();
    await page.sees("And");
    expect(page.seen().slice(0, 4)).toEqual(whole(traveller.subject).slice(0, 4));
    here.server.openGate(traveller.subject, "end");
    await ends(page, { seen: whole(traveller.subject), posts: postsOf(client, { before: 2, after: 0 }) });
    // both calls are settled: the replay gives nobody a reason to run them
    expect(page.toolCalls.length).toBe(before);
  },
);

it.concurrent.for(clients)("$name is cut while an approved tool runs and resumes", async (client) => {
  requirement("streams:resume");
  const plug = await here.plug();
  const first = here.open(client, { url: plug.url });
  const path = fresh("file");
  first.say(`shred ${path}`);
  await first.sees("may it run?");
  await first.rests();
  first.decide("shred", true);
  await until(() => here.server.executions("shred", path) === 1, "the tool running");
  // cut before the head of the response, AI SDK 6 adds the replay to what it has: its fault, and a yes posted again mends it
  await until(() => client.transport === "socket" || first.wire.posts.at(-1)?.status === 200, "the head of the response");
  const page = await cut(client, { page: first, plug, subject: path });
  page.resume();
  here.server.openGate(path, "tool");
  await ends(page, {
    seen: [
      `user: shred ${path}`,
      `assistant: shred {"path":"${path}"} = {"shredded":"${path}"}`,
      `assistant: shred gave {"shredded": "${path}"}.`,
    ],
    posts: postsOf(client, { before: 2, after: 0 }),
  });
  expect(here.server.executions("shred", path)).toBe(1);
});

it.concurrent.for(clients)("$name posts an approval again whose answer was lost, and nothing runs twice", async (client) => {
  requirement("streams:resume");
  const plug = await here.plug();
  const page = here.open(client, { url: plug.url });
  const path = fresh("file");
  page.say(`shred ${path}`);
  await page.sees("may it run?");
  await page.rests();
  page.decide("shred", true);
  await until(() => here.server.executions("shred", path) === 1, "the tool running");
  plug.pull();
  await until(() => page.error !== undefined, "the client noticing the cut");
  page.post();
  await until(() => page.wire.posts.length === 3, "the repeated post");
  here.server.openGate(path, "tool");
  await ends(page, {
    seen: [
      `user: shred ${path}`,
      `assistant: shred {"path":"${path}"} = {"shredded":"${path}"}`,
      `assistant: shred gave {"shredded": "${path}"}.`,
    ],
    posts: 3,
  });
  expect(here.server.executions("shred", path)).toBe(1);
});

it.concurrent.for(clients)("$name posts an output again whose answer was lost", async (client) => {
  requirement("streams:resume");
  const { page, plug, subject } = await onTheWay(client, { onToolCall: openUrl });
  here.server.openGate(subject, "text");
  here.server.openGate(subject, "tool");
  await page.sees("And");
  plug.pull();
  await until(() => page.error !== undefined, "the client noticing the cut");
  page.post();
  await until(() => page.wire.posts.length === 3, "the repeated post");
  here.server.openGate(subject, "end");
  await page.sees("slow gave");
  await page.quiet();
  // the client adds to the message it has: what it saw of the cut step stays, the steps before it come once
  const seen = page.seen().filter((line) => line !== "assistant: And ");
  expect(seen).toEqual(whole(subject));
  expect(page.wire.posts.length).toBe(3);
  expect(page.wire.faults).toEqual([]);
});

it.concurrent.for(clients)("$name gets an answer that ended while nobody was listening", async (client) => {
  const traveller = await onTheWay(client, { onToolCall: openUrl });
  here.server.openGate(traveller.subject, "text");
  here.server.openGate(traveller.subject, "tool");
  await traveller.page.sees("And");
  const page = await cut(client, traveller);
  here.server.openGate(traveller.subject, "end");
  await until(
    async () => JSON.stringify(await here.kept(page.chatId)).includes("open_url gave"),
    "the end of the run",
  );
  page.resume();
  await ends(page, { seen: whole(traveller.subject), posts: postsOf(client, { before: 2, after: 0 }) });
});

it.concurrent.for(clients)(
  "$name, reloaded while a call is open, is told to run it and finishes",
  async (client) => {
    requirement("ui-stream:resume");
    const first = here.open(client);
    const url = fresh("page");
    first.say(`open ${url}`);
    await first.sees("is to run");
    await first.rests();
    first.close();
    const page = await reloaded(client, first, openUrl);
    page.resume();
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
  },
);

it.concurrent.for(clients)(
  "$name, reloaded while an approval is open, asks again and finishes",
  async (client) => {
    requirement("ui-stream:resume");
    const first = here.open(client);
    const path = fresh("file");
    first.say(`delete ${path}`);
    await first.sees("may it run?");
    await first.rests();
    first.close();
    const page = await reloaded(client, first);
    page.resume();
    await page.sees("may it run?");
    await page.rests();
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
  },
);

it.concurrent.for(clients)(
  "$name, reloaded after everything is settled, runs nothing again",
  async (client) => {
    const first = here.open(client, { onToolCall: openUrl });
    const url = fresh("page");
    first.say(`open ${url}`);
    await first.sees("open_url gave");
    await first.rests();
    const page = await reloaded(client, first, openUrl);
    page.resume();
    await ends(page, { seen: first.seen(), posts: 0 });
    expect(page.toolCalls).toEqual([]);
  },
);

it.concurrent.for(clients)("$name finds nothing to resume in a chat that nobody began", async (client) => {
  const page = here.open(client);
  page.resume();
  await ends(page, { seen: [], posts: 0 });
  expect(page.wire.exchanges.map((exchange) => exchange.status)).toEqual([204]);
});

it.concurrent.for(clients)(
  "$name shows an answer in a second tab while it is written in the first",
  async (client) => {
    requirement("ui-stream:resume");
    const first = here.open(client);
    const subject = fresh("tale");
    first.say(`story ${subject}`);
    await first.sees("Once upon a time");
    const second = await reloaded(client, first);
    second.resume();
    await second.sees("Once upon a time");
    here.server.openGate(subject, "text");
    const seen = [`user: story ${subject}`, `assistant: Once upon a time there was ${subject}.`];
    await ends(second, { seen, posts: 0 });
    await ends(first, { seen, posts: 1 });
  },
);

it.concurrent.for(clients)(
  "$name answers in a tab what another tab has answered already, and is shown the winner",
  async (client) => {
    const first = here.open(client);
    const url = fresh("page");
    first.say(`open ${url}`);
    await first.sees("is to run");
    await first.rests();
    const second = await reloaded(client, first);
    second.resume();
    await second.sees("is to run");
    await second.rests();
    second.answer("open_url", "by the second tab");
    await second.sees("open_url gave");
    first.answer("open_url", "by the first tab");
    const seen = [
      `user: open ${url}`,
      "assistant: I will open it.",
      `assistant: open_url {"url":"${url}"} = "by the second tab"`,
      'assistant: open_url gave "by the second tab".',
    ];
    await ends(second, { seen, posts: 1 });
    await ends(first, { seen, posts: 2 });
  },
);

/** How often the page that came back has posted: a reloaded one begins to count anew. */
function postsOf(client: Client, { before, after }: { before: number; after: number }): number {
  return client.resumesFromEmptyOnly === true ? after : before + after;
}

/** The same chat in a new page, with what the server keeps of it. */
function reloaded(client: Client, page: Page, onToolCall?: typeof openUrl): Promise<Page> {
  const alter = (kept: Message[]): Message[] =>
    client.resumesFromEmptyOnly === true ? kept.filter(({ role }) => role === "user") : kept;
  return here.reopen(client, page, { alter, ...(onToolCall === undefined ? {} : { onToolCall }) });
}
