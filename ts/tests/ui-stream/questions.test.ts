// A server tool that asks the page while it works, with stock clients of AI SDK.
import { expect, it } from "vitest";
import { allClients, type Page, type ToolCall } from "../clients/index.ts";
import { requirement } from "../requirement.ts";
import { fresh, scene } from "../server-fixture.ts";

const here = scene();

function openUrl(call: ToolCall, page: Page): void {
  if (call.toolName === "open_url") {
    const { url } = call.input as { url: string };
    page.bring(call, { url, viewKey: `view of ${url}` });
  }
}

it.concurrent.for(allClients)("$name answers each question of a server tool by a post of its own", async (client) => {
  requirement("hands:question-on-the-wire");
  const page = here.open(client, { onToolCall: openUrl });
  const subject = fresh("page");
  page.say(`compare ${subject}`);
  const gave = `"compared": ["view of ${subject}/1", "view of ${subject}/2"]`;
  await page.sees(`compare gave {${gave}}.`);
  await page.quiet();
  expect(page.error).toBeUndefined();
  expect(page.wire.faults).toEqual([]);
  expect(page.toolCalls.filter(({ toolName }) => toolName === "open_url").length).toBe(2);
  expect(page.wire.posts.length).toBe(3);
});

it.concurrent.for(allClients)("$name may move on while a server tool asks", async (client) => {
  requirement("hands:question-gives-way");
  const page = here.open(client);
  page.say(`compare ${fresh("page")}`);
  await page.sees("is to run");
  await page.quiet();
  page.say("hello again");
  await page.sees("Hello again, this is your message number 2.");
  await page.quiet();
  expect(page.error).toBeUndefined();
});
