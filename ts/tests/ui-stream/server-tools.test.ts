import { expect, it } from "vitest";
import { allClients } from "../clients/index.ts";
import { requirement } from "../requirement.ts";
import { ends, fresh, scene } from "../server-fixture.ts";
import { expectTranscript } from "../transcript.ts";

const here = scene();

it.concurrent.for(allClients)("$name shows a server tool and the answer after one post", async (client) => {
  requirement("ui-stream:server-tool");
  const page = here.open(client);
  const city = fresh("city");
  page.say(`weather ${city}`);
  await ends(page, {
    seen: [
      `user: weather ${city}`,
      `assistant: weather {"city":"${city}"} = {"city":"${city}","sky":"sunny"}`,
      `assistant: weather gave {"city": "${city}", "sky": "sunny"}.`,
    ],
    posts: 1,
  });
  expect(here.server.executions("weather", city)).toBe(1);
  expectTranscript("server-tool", { client, page, subject: city });
});

it.concurrent.for(allClients)(
  "$name shows why a tool that raised failed, and the model goes on",
  async (client) => {
    const page = here.open(client);
    const subject = fresh("machine");
    page.say(`broken ${subject}`);
    await page.quiet();
    const [, call, answer] = page.seen();
    expect(call).toMatch(`assistant: broken {"subject":"${subject}"} ! `);
    expect(answer).toMatch("assistant: broken gave nothing: failure, ");
    expect(page.wire.posts.length).toBe(1);
    expect(page.wire.faults).toEqual([]);
    expect(here.server.executions("broken", subject)).toBe(1);
    expectTranscript("tool-raises", { client, page, subject });
  },
);

it.concurrent.for(allClients)(
  "$name shows that the model asked for a tool that is not there",
  async (client) => {
    const page = here.open(client);
    const subject = fresh("guest");
    page.say(`unknown ${subject}`);
    await page.quiet();
    const [, call, answer] = page.seen();
    expect(call).toMatch(`assistant: make_coffee {"for":"${subject}"} ! `);
    expect(answer).toMatch("assistant: make_coffee gave nothing: failure, ");
    expect(page.seen().length).toBe(3);
    expect(page.wire.posts.length).toBe(1);
    expect(page.wire.faults).toEqual([]);
    expectTranscript("unknown-tool", { client, page, subject });
  },
);

it.concurrent.for(allClients)(
  "$name shows that the model asked with a bad input, and nothing runs",
  async (client) => {
    const page = here.open(client);
    const city = fresh("city");
    page.say(`wrongly ${city}`);
    await page.quiet();
    const [, call, answer] = page.seen();
    expect(call).toMatch(`assistant: weather {"town":"${city}"} ! `);
    expect(answer).toMatch("assistant: weather gave nothing: failure, ");
    expect(page.wire.posts.length).toBe(1);
    expect(page.wire.faults).toEqual([]);
    expect(here.server.executions("weather", city)).toBe(0);
    expectTranscript("bad-input", { client, page, subject: city });
  },
);
