// The held wait: the response stays open, and answers come beside it, through the ack face.
import { expect, it } from "vitest";
import { clients, type Page } from "../clients/index.ts";
import { requirement } from "../requirement.ts";
import { ends, fresh, scene } from "../server-fixture.ts";
import { expectTranscript } from "../transcript.ts";

const here = scene();

const callOf = (page: Page, tool: string): string | undefined => page.parts(tool)[0]?.toolCallId;

it.concurrent.for(clients)(
  "$name starts a call on the chat stream that is answered through ack",
  async (client) => {
    const page = here.open(client);
    const url = fresh("page");
    page.say(`open ${url}`);
    await page.sees("is to run");
    await page.rests();
    const ack = { toolCallId: callOf(page, "open_url"), status: "success", output: "by ack" };
    expect(await here.post("/api/tools/ack", ack)).toMatchObject({ status: 200, body: { ok: true } });
    expect(await here.post("/api/tools/ack", ack)).toMatchObject({
      status: 200,
      body: { ok: true, ignored: true },
    });
    const follower = await here.reopen(client, page, {
      alter: (kept) => kept.filter(({ role }) => role === "user"),
    });
    follower.resume();
    const seen = [
      `user: open ${url}`,
      "assistant: I will open it.",
      `assistant: open_url {"url":"${url}"} = "by ack"`,
      'assistant: open_url gave "by ack".',
    ];
    await ends(follower, { seen, posts: 0 });
    // the first page still has the call open; its own late answer is told the winner
    page.answer("open_url", "by the page");
    await ends(page, { seen, posts: 2 });
  },
);

it.concurrent.for(clients)(
  "$name holds its response open until the ack, and goes on in it",
  async (client) => {
    requirement("ack:hold");
    const page = here.open(client, { wait: "hold" });
    const url = fresh("page");
    page.say(`open ${url}`);
    await page.sees("is to run");
    await here.post("/api/tools/ack", {
      toolCallId: callOf(page, "open_url"),
      status: "failed",
      errorText: "no window",
    });
    await ends(page, {
      seen: [
        `user: open ${url}`,
        "assistant: I will open it.",
        `assistant: open_url {"url":"${url}"} ! no window`,
        "assistant: open_url gave nothing: failure, no window.",
      ],
      posts: 1,
    });
    expectTranscript("held", { client, page, subject: url });
  },
);

it.concurrent.for(clients)(
  "$name runs a frontend tool that was approved out of band on its held response",
  async (client) => {
    const page = here.open(client, {
      wait: "hold",
      onToolCall: ({ toolCallId }) =>
        void here.post("/api/tools/ack", { toolCallId, status: "success", output: { name: "photo.png" } }),
    });
    const subject = fresh("cat");
    page.say(`photo ${subject}`);
    await page.sees("may it run?");
    expect(page.toolCalls).toEqual([]);
    const early = {
      toolCallId: callOf(page, "take_photo"),
      status: "success",
      output: { name: "forged.png" },
    };
    expect((await here.post("/api/tools/ack", early)).status).toBe(409);
    const approvalId = page.parts("take_photo")[0]?.approval?.id;
    expect((await here.post("/api/tools/approve", { approvalId, approved: true })).status).toBe(200);
    await ends(page, {
      seen: [
        `user: photo ${subject}`,
        `assistant: take_photo {"camera":"front","subject":"${subject}"} = {"name":"photo.png"}`,
        'assistant: take_photo gave {"name": "photo.png"}.',
      ],
      posts: 1,
    });
    expect(page.toolCalls.length).toBe(1);
    expectTranscript("out-of-band", { client, page, subject });
  },
);

it.concurrent.for(clients)("$name is held at an approval that is denied out of band", async (client) => {
  const page = here.open(client, { wait: "hold" });
  const subject = fresh("cat");
  page.say(`photo ${subject}`);
  await page.sees("may it run?");
  const approvalId = page.parts("take_photo")[0]?.approval?.id;
  await here.post("/api/tools/approve", { approvalId, approved: false, reason: "not today" });
  await ends(page, {
    seen: [
      `user: photo ${subject}`,
      `assistant: take_photo {"camera":"front","subject":"${subject}"} denied`,
      "assistant: take_photo gave nothing: denied, denied: not today.",
    ],
    posts: 1,
  });
  expect(page.toolCalls).toEqual([]);
});

it.concurrent.for(clients)("$name runs what a person edited before the approval", async (client) => {
  const page = here.open(client, { wait: "hold" });
  const path = fresh("file");
  const other = fresh("other");
  page.say(`delete ${path}`);
  await page.sees("may it run?");
  const approvalId = page.parts("delete_file")[0]?.approval?.id;
  await here.post("/api/tools/approve", { approvalId, approved: true, input: { path: other } });
  await page.sees("delete_file gave");
  await page.quiet();
  expect(page.seen().at(-1)).toBe(`assistant: delete_file gave {"deleted": "${other}"}.`);
  expect(here.server.executions("delete_file", other)).toBe(1);
  expect(here.server.executions("delete_file", path)).toBe(0);
  expect(page.wire.posts.length).toBe(1);
  expect(page.wire.faults).toEqual([]);
});

it.concurrent.for(clients)("$name is not asked again after an approval for the whole thread", async (client) => {
  requirement("calls:always-in-thread");
  const page = here.open(client);
  const path = fresh("file");
  page.say(`delete ${path}`);
  await page.sees("may it run?");
  await page.rests();
  const approvalId = page.parts("delete_file")[0]?.approval?.id;
  await here.post("/api/tools/approve", { approvalId, approved: true, scope: "thread" });
  page.resume();
  if (client.resumesFromEmptyOnly !== true) {
    await page.sees("delete_file gave");
  }
  await page.rests();
  page.say(`delete ${path}/again`);
  await page.sees(`delete_file gave {"deleted": "${path}/again"}.`);
  await page.quiet();
  expect(page.wire.posts.length).toBe(2);
  expect(here.server.executions("delete_file", path)).toBe(2);
});

it.concurrent.for(clients)("$name holds a call that a second tab answers with a post", async (client) => {
  const page = here.open(client, { wait: "hold" });
  const url = fresh("page");
  page.say(`open ${url}`);
  await page.sees("is to run");
  const tab = await here.reopen(client, page);
  tab.answer("open_url", "by the other tab");
  const seen = [
    `user: open ${url}`,
    "assistant: I will open it.",
    `assistant: open_url {"url":"${url}"} = "by the other tab"`,
    'assistant: open_url gave "by the other tab".',
  ];
  await ends(tab, { seen, posts: 1 });
  await ends(page, { seen, posts: 1 });
});
