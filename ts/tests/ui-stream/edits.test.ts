import { expect, it } from "vitest";
import { clients } from "../clients/index.ts";
import { linesOf } from "../message.ts";
import { requirement } from "../requirement.ts";
import { ends, fresh, scene } from "../server-fixture.ts";
import { expectTranscript } from "../transcript.ts";
import { until } from "../until.ts";

const here = scene();

it.concurrent.for(clients)("$name asks for the last answer again", async (client) => {
  requirement("ui-stream:regenerate");
  const page = here.open(client);
  const city = fresh("city");
  page.say(`weather ${city}`);
  await page.sees("weather gave");
  await page.rests();
  const before = page.messages.at(-1)?.id;
  void page.hands.chat().regenerate();
  await page.rests();
  await page.sees("weather gave");
  await ends(page, {
    seen: [
      `user: weather ${city}`,
      `assistant: weather {"city":"${city}"} = {"city":"${city}","sky":"sunny"}`,
      `assistant: weather gave {"city": "${city}", "sky": "sunny"}.`,
    ],
    posts: 2,
  });
  expect(page.messages.at(-1)?.id).not.toBe(before);
  expect(linesOf(await here.kept(page.chatId))).toEqual(page.seen());
  // what ran is not undone: the new answer has its own execution
  expect(here.server.executions("weather", city)).toBe(2);
  expectTranscript("regenerate", { client, page, subject: city });
});

it.concurrent.for(clients)(
  "$name asks for an earlier answer again: what came later is cut off",
  async (client) => {
    requirement("ui-stream:regenerate");
    const page = here.open(client);
    page.say("hello Ada");
    await page.sees("message number 1");
    await page.rests();
    const { id: messageId } = page.messages.at(-1) ?? { id: "" };
    page.say("hello Bob");
    await page.sees("message number 2");
    await page.rests();
    void page.hands.chat().regenerate({ messageId });
    await ends(page, {
      seen: ["user: hello Ada", "assistant: Hello Ada, this is your message number 1."],
      posts: 3,
    });
    expect(linesOf(await here.kept(page.chatId))).toEqual(page.seen());
  },
);

it.concurrent.for(clients)(
  "$name edits an earlier message: the thread goes on from there",
  async (client) => {
    requirement("ui-stream:regenerate");
    const page = here.open(client);
    page.say("hello Ada");
    await page.sees("message number 1");
    await page.rests();
    const { id: messageId } = page.messages[0] ?? { id: "" };
    page.say("hello Bob");
    await page.sees("message number 2");
    await page.rests();
    void page.hands.chat().sendMessage({ text: "hello Zoe", messageId });
    await ends(page, {
      seen: ["user: hello Zoe", "assistant: Hello Zoe, this is your message number 1."],
      posts: 3,
    });
    expect(linesOf(await here.kept(page.chatId))).toEqual(page.seen());
    expectTranscript("edit", { client, page, subject: "Ada" });
  },
);

it.concurrent.for(clients)(
  "$name asks again while a call is open: the open call is given up",
  async (client) => {
    requirement("ui-stream:regenerate");
    const page = here.open(client);
    const path = fresh("file");
    page.say(`delete ${path}`);
    await page.sees("may it run?");
    await page.rests();
    const old = page.parts("delete_file")[0]?.approval?.id;
    void page.hands.chat().regenerate();
    const asksAnew = (): boolean => ![old, undefined].includes(page.parts("delete_file")[0]?.approval?.id);
    await until(asksAnew, "a new request for approval");
    await page.rests();
    const late = await here.post("/api/tools/approve", { approvalId: old, approved: true });
    expect(late.status).toBe(410);
    page.decide("delete_file", true);
    await page.sees("delete_file gave");
    await page.quiet();
    expect(page.wire.posts.length).toBe(3);
    expect(here.server.executions("delete_file", path)).toBe(1);
  },
);

it.concurrent.for(clients)("$name is stopped while the model writes", async (client) => {
  requirement("ui-stream:stop");
  const page = here.open(client);
  const subject = fresh("tale");
  page.say(`story ${subject}`);
  await page.sees("Once upon a time");
  expect(await here.post(`/api/chat/${page.chatId}/stop`, {})).toEqual({ status: 200, body: { ok: true } });
  await ends(page, { seen: [`user: story ${subject}`, "assistant: Once upon a time "], posts: 1 });
  const again = await here.post(`/api/chat/${page.chatId}/stop`, {});
  expect(again).toEqual({ status: 200, body: { ok: true, ignored: true } });
  expectTranscript("stop", { client, page, subject });
});

it.concurrent.for(clients)("$name is stopped while a server tool runs, and posts no loop", async (client) => {
  requirement("ui-stream:stop");
  const page = here.open(client);
  const subject = fresh("trip");
  here.server.openGate(subject, "text");
  page.say(`journey ${subject}`);
  await until(() => here.server.executions("slow", subject) === 1, "the tool running");
  await here.post(`/api/chat/${page.chatId}/stop`, {});
  await page.sees("stopped by the user");
  await page.quiet();
  expect(page.wire.posts.length).toBeLessThanOrEqual(2);
  expect(page.wire.faults).toEqual([]);
});

it.concurrent.for(clients)(
  "$name answers a call after its run was stopped: it is told so, and posts no loop",
  async (client) => {
    requirement("ui-stream:stop");
    const page = here.open(client);
    const url = fresh("page");
    page.say(`open ${url}`);
    await page.sees("is to run");
    await page.rests();
    await here.post(`/api/chat/${page.chatId}/stop`, {});
    page.answer("open_url", "late");
    await page.quiet();
    expect(page.wire.posts.length).toBeLessThanOrEqual(3);
    expect(page.seen().join("\n")).not.toMatch("open_url gave");
    expect(page.seen().at(-1)).toMatch("stopped by the user");
    expect(linesOf(await here.kept(page.chatId)).at(-1)).toMatch("stopped by the user");
  },
);

it("stopping a chat that is not there is the same 404 as any", async () => {
  requirement("ui-stream:stop");
  expect((await here.post(`/api/chat/${fresh("chat")}/stop`, {})).status).toBe(404);
});
