// The chat class of `ai`, as it is, on the held WebSocket. It sends nothing while an exchange is open.
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Opening, Page, ToolCall } from "../clients/index.ts";
import { liveChats, type LivePage } from "../clients/plain.ts";
import { fresh, scene } from "../server-fixture.ts";
import { until } from "../until.ts";

const here = scene();
const PHOTO = { name: "photo.png" };

type Open = (typeof liveChats)[number][1];

function begin(open: Open, more: Partial<Opening> = {}): LivePage {
  const url = here.server.url;
  const live = open(url, { url, chatId: fresh("chat"), ...more });
  onTestFinished(() => live.transport.close());
  return live;
}

const isReady = (page: Page): Promise<void> =>
  until(() => page.hands.chat().status === "ready", () => `the end of the exchange; the page is ${page.hands.chat().status}`);

async function asked(page: Page): Promise<string> {
  const subject = fresh("cat");
  page.say(`photo ${subject}`);
  await page.sees("may it run?");
  await isReady(page);
  return subject;
}

function takePhoto(call: ToolCall, page: Page): void {
  if (call.toolName === "take_photo") {
    page.bring(call, PHOTO);
  }
}

describe.each(liveChats)("%s", (_name, open) => {
  it.each([0, 100, 200])("brings an output that the page has %i ms after the approval", async (ms) => {
    const { page, transport } = begin(open);
    await asked(page);
    page.decide("take_photo", true);
    await sleep(ms);
    page.answer("take_photo", PHOTO);
    await page.sees('take_photo gave {"name": "photo.png"}.');
    await isReady(page);
    expect(transport.sent.length).toBeLessThanOrEqual(3);
  });

  it.each([0, 100, 300, 600])("brings the output of a tool that takes %i ms", async (ms) => {
    const later = (call: ToolCall, page: Page): void => void sleep(ms).then(() => takePhoto(call, page));
    const { page, transport } = begin(open, { onToolCall: later });
    await asked(page);
    page.decide("take_photo", true);
    await page.sees('take_photo gave {"name": "photo.png"}.');
    await isReady(page);
    expect(page.toolCalls.length).toBe(1);
    // the message, the yes, the yes again, the output
    expect(transport.sent.length).toBe(4);
  });
});
