import { describe, expect, it } from "vitest";
import { clients, type Page, type ToolCall } from "../clients/index.ts";
import { requirement } from "../requirement.ts";
import { ends, fresh, scene } from "../server-fixture.ts";
import { expectTranscript } from "../transcript.ts";

const here = scene();
const PHOTO = { name: "photo.png" };

const seenAt = (subject: string, call: string, answer: string): string[] => [
  `user: photo ${subject}`,
  `assistant: take_photo {"camera":"front","subject":"${subject}"} ${call}`,
  `assistant: take_photo gave ${answer}.`,
];

/** A page that asks its person for a photo, up to the point where the person is asked. */
async function asked(page: Page): Promise<string> {
  const subject = fresh("cat");
  page.say(`photo ${subject}`);
  await page.sees(`take_photo {"camera":"front","subject":"${subject}"} may it run?`);
  await page.rests();
  // nobody was told to run it: the request for approval is all there is
  expect(page.toolCalls).toEqual([]);
  return subject;
}

describe("joint: our own helper posts the approval and the output together", () => {
  it.concurrent.for(clients)("$name brings a photo", async (client) => {
    requirement("ui-stream:frontend-approval");
    const page = here.open(client, { autoSend: "joint" });
    const subject = await asked(page);
    page.decide("take_photo", true);
    await page.sees("may run");
    page.answer("take_photo", PHOTO);
    await ends(page, { seen: seenAt(subject, '= {"name":"photo.png"}', '{"name": "photo.png"}'), posts: 2 });
    expect(page.toolCalls).toEqual([]);
    expectTranscript("joint", { client, page, subject });
  });

  it.concurrent.for(clients)("$name brings an error", async (client) => {
    requirement("ui-stream:frontend-approval");
    const page = here.open(client, { autoSend: "joint" });
    const subject = await asked(page);
    page.decide("take_photo", true);
    await page.sees("may run");
    page.fail("take_photo", "no camera");
    await ends(page, { seen: seenAt(subject, "! no camera", "nothing: failure, no camera"), posts: 2 });
    expectTranscript("joint-error", { client, page, subject });
  });

  it.concurrent.for(clients)("$name says no", async (client) => {
    requirement("ui-stream:frontend-approval");
    const page = here.open(client, { autoSend: "joint" });
    const subject = await asked(page);
    page.decide("take_photo", false, { reason: "not today" });
    await ends(page, { seen: seenAt(subject, "denied", "nothing: denied, denied: not today"), posts: 2 });
    expectTranscript("joint-denied", { client, page, subject });
  });
});

describe("split: the stock helpers post the approval alone", () => {
  /** Runs the tool when it is told to, as every page does that knows nothing of approvals. */
  function takePhoto(call: ToolCall, page: Page): void {
    if (call.toolName === "take_photo") {
      page.bring(call, PHOTO);
    }
  }

  it.concurrent.for(clients)("$name is told to run the tool after the approval", async (client) => {
    const page = here.open(client, { onToolCall: takePhoto });
    const subject = await asked(page);
    page.decide("take_photo", true);
    await page.sees("take_photo gave");
    await ends(page, {
      seen: seenAt(subject, '= {"name":"photo.png"}', '{"name": "photo.png"}'),
      posts: page.wire.posts.length,
    });
    expect(page.wire.posts.length).toBeLessThanOrEqual(4);
    expect(page.toolCalls.map((call) => call.input)).toEqual([{ camera: "front", subject }]);
    expectTranscript("split", { client, page, subject });
  });

  it.concurrent.for(clients)("$name brings an error", async (client) => {
    const page = here.open(client, { onToolCall: (call, page) => page.bringError(call, "no camera") });
    const subject = await asked(page);
    page.decide("take_photo", true);
    await page.sees("take_photo gave");
    await ends(page, {
      seen: seenAt(subject, "! no camera", "nothing: failure, no camera"),
      posts: page.wire.posts.length,
    });
    expect(page.wire.posts.length).toBeLessThanOrEqual(4);
    expect(page.toolCalls.length).toBe(1);
    expectTranscript("split-error", { client, page, subject });
  });

  it.concurrent.for(clients)("$name says no, in one post", async (client) => {
    const page = here.open(client, { onToolCall: takePhoto });
    const subject = await asked(page);
    page.decide("take_photo", false, { reason: "not today" });
    await ends(page, { seen: seenAt(subject, "denied", "nothing: denied, denied: not today"), posts: 2 });
    expect(page.toolCalls).toEqual([]);
    expectTranscript("split-denied", { client, page, subject });
  });

  it.concurrent.for(clients)(
    "$name, eager, brings the output while its yes is being posted",
    async (client) => {
      const page = here.open(client);
      const subject = await asked(page);
      page.decide("take_photo", true);
      await page.wire.posted(2);
      page.answer("take_photo", PHOTO);
      await page.sees("take_photo gave");
      await ends(page, {
        seen: seenAt(subject, '= {"name":"photo.png"}', '{"name": "photo.png"}'),
        posts: page.wire.posts.length,
      });
      expect(page.wire.posts.length).toBeLessThanOrEqual(4);
      expect(page.toolCalls).toEqual([]);
      expectTranscript("eager-split", { client, page, subject });
    },
  );

  it.concurrent.for(clients)(
    "$name, eager and failing, brings the error while its yes is being posted",
    async (client) => {
      const page = here.open(client);
      const subject = await asked(page);
      page.decide("take_photo", true);
      await page.wire.posted(2);
      page.fail("take_photo", "no camera");
      await page.sees("take_photo gave");
      await ends(page, {
        seen: seenAt(subject, "! no camera", "nothing: failure, no camera"),
        posts: page.wire.posts.length,
      });
      expect(page.wire.posts.length).toBeLessThanOrEqual(4);
    },
  );

  it.concurrent.for(clients)("$name, slow, brings the output long after its approval", async (client) => {
    const page = here.open(client);
    const subject = await asked(page);
    page.decide("take_photo", true);
    await page.sees("is to run");
    await page.quiet();
    expect(page.toolCalls.length).toBe(1);
    page.answer("take_photo", PHOTO);
    await ends(page, { seen: seenAt(subject, '= {"name":"photo.png"}', '{"name": "photo.png"}'), posts: 4 });
    expectTranscript("slow-split", { client, page, subject });
  });

  it.concurrent.for(clients)("$name has a photo and a server tool to approve in one step", async (client) => {
    const page = here.open(client, { onToolCall: takePhoto });
    const subject = fresh("cat");
    page.say(`photo-and-delete ${subject}`);
    await page.sees(`delete_file {"path":"${subject}"} may it run?`);
    await page.rests();
    page.decide("take_photo", true);
    await page.sees("may run");
    page.decide("delete_file", true);
    await page.sees("take_photo gave");
    await ends(page, {
      seen: [
        `user: photo-and-delete ${subject}`,
        `assistant: take_photo {"camera":"back","subject":"${subject}"} = {"name":"photo.png"}`,
        `assistant: delete_file {"path":"${subject}"} = {"deleted":"${subject}"}`,
        `assistant: take_photo gave {"name": "photo.png"}. delete_file gave {"deleted": "${subject}"}.`,
      ],
      posts: page.wire.posts.length,
    });
    expect(page.wire.posts.length).toBeLessThanOrEqual(4);
    expect(here.server.executions("delete_file", subject)).toBe(1);
  });
});
