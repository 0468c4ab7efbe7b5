// Stop always works: a wish is kept until the server has heard it.
import { beforeEach, expect, it, vi } from "vitest";
import { until } from "../../../tests/until.ts";
import { Stops } from "../src/chat/stop-requests.ts";

beforeEach(() => sessionStorage.clear());

it("a stop request is sent at once, and removed when it is confirmed", async () => {
  const tell = vi.fn(async () => true);
  const stops = new Stops(sessionStorage, tell);
  stops.wish("chat_1");
  stops.wish("chat_1");
  expect([stops.has("chat_1"), stops.isLate("chat_1"), stops.has("chat_2")]).toEqual([true, false, false]);
  await until(() => !stops.has("chat_1"), "the wish being heard");
  expect(tell.mock.calls).toEqual([["chat_1"]]);
  expect(sessionStorage.length).toBe(0);
});

it("with the server away a wish stays, over a reload too, and is delivered when the server is back", async () => {
  const before = new Stops(sessionStorage, async () => false);
  before.wish("chat_1");
  await until(() => before.isLate("chat_1"), "a wish that is late");
  let isBack = false;
  const after = new Stops(sessionStorage, async () => isBack);
  expect(after.has("chat_1")).toBe(true);
  await until(() => after.isLate("chat_1"), "a wish that is late");
  isBack = true;
  const heard = vi.fn();
  after.subscribe(heard);
  after.retryNow();
  await until(() => !after.has("chat_1"), "the wish being heard");
  expect(heard).toHaveBeenCalled();
});
