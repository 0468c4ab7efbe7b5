// The awaiting wire: its tags as the server writes them, its pauses, and what a page does when one cannot be read.
import { readdirSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, it } from "vitest";
import { fresh, scene } from "../../../tests/server-fixture.ts";
import { type AwaitingEvent, AwaitingThread, readTag } from "../src/awaiting/index.ts";

const here = scene();
const TRANSCRIPTS = resolve(import.meta.dirname, "../../../../schema/transcripts/awaiting");

async function all(events: AsyncIterable<AwaitingEvent>): Promise<AwaitingEvent[]> {
  const seen: AwaitingEvent[] = [];
  for await (const event of events) {
    seen.push(event);
  }
  return seen;
}

const textOf = (events: readonly AwaitingEvent[]): string =>
  events.map((event) => (event.type === "content" ? event.text : "")).join("");

it("every frame of the transcripts is read", () => {
  const frames = readdirSync(TRANSCRIPTS)
    .flatMap((name) => readFileSync(resolve(TRANSCRIPTS, name), "utf8").trim().split("\n"))
    .flatMap((line) => (JSON.parse(line) as { frame?: { data: string } }).frame?.data ?? []);
  const read = frames.filter((data) => data !== "[DONE]").map(readTag);
  const kinds = new Set(read.map(({ type }) => type));
  expect([...kinds].sort()).toEqual(expect.arrayContaining(["content", "error", "ignored", "meta", "pause"]));
  expect(kinds).not.toContain("unreadable");
  const pause = read.find((event) => event.type === "pause");
  const errors = read.filter((event) => event.type === "error");
  expect(errors).toEqual([{ type: "error", code: "model_fault", message: "The model failed. Try again later. The server's log has the details." }]);
  expect(pause?.type === "pause" && pause.calls[0]?.input).toEqual({ message: 'Delete "all" <drafts> & go on?' });
});

it("a pause that cannot be read is an event the page can show, never a call", () => {
  const named = (data: string): string => `<awaiting_frontend_tools data="${data}"></awaiting_frontend_tools>`;
  const entry = "{&quot;tool_use_id&quot;:&quot;a&quot;,&quot;name&quot;:&quot;n&quot;,&quot;input&quot;:{}}";
  expect(readTag(named(`[${entry}]`)).type).toBe("pause");
  for (const data of ["[", "{}", "[]", "[1]", `[${entry},${entry}]`, "[{&quot;name&quot;:&quot;n&quot;,&quot;input&quot;:{}}]"]) {
    expect(readTag(named(data)), data).toMatchObject({ type: "unreadable" });
  }
  expect(readTag('<awaiting_frontend_tools data="[')).toMatchObject({ type: "unreadable" });
});

it("a pause is answered by handlers and the answer continues, over several of them", async () => {
  const ran: string[] = [];
  const thread = new AwaitingThread({
    url: here.server.url,
    handlers: {
      open_url: ({ url }: { url: string }) => (ran.push(url), { url, viewKey: "v" }),
      take_photo: () => (ran.push("photo"), { name: "cat.png" }),
    },
    approve: ({ name }) => name === "take_photo",
  });
  const url = fresh("page");
  expect(textOf(await all(thread.run(`two ${url}`)))).toContain('"viewKey": "v"');
  expect(ran.sort()).toEqual([`${url}/1`, `${url}/2`]);
  const subject = fresh("cat");
  const both = textOf(await all(thread.run(`photo-and-delete ${subject}`)));
  expect(both).toContain("cat.png");
  expect(both).toContain("delete_file gave nothing: denied");
  expect(here.server.executions("delete_file", subject)).toBe(0);
});

it("a tool without a handler is an error that names it", async () => {
  const thread = new AwaitingThread({ url: here.server.url, handlers: {} });
  const said = textOf(await all(thread.run(`open ${fresh("page")}`)));
  expect(said).toContain('This page has no handler for \\"open_url\\".');
});

it("a run that was left at its pause is read again after a reload, and answered", async () => {
  const handlers = { open_url: () => "shown" };
  const before = new AwaitingThread({ url: here.server.url, handlers });
  for await (const event of before.run(`open ${fresh("page")}`)) {
    if (event.type === "pause") {
      break;
    }
  }
  expect(before.threadId).toBeDefined();
  const threadId = before.threadId ?? "";
  const after = new AwaitingThread({ url: here.server.url, handlers, threadId });
  expect(textOf(await all(after.retry()))).toContain('open_url gave "shown".');
});

it("a cut is read on from its position", async () => {
  const plug = await here.plug();
  const subject = fresh("fox");
  const thread = new AwaitingThread({ url: plug.url, handlers: {}, backOff: () => 30 });
  let said = "";
  for await (const event of thread.run(`story ${subject}`)) {
    said += event.type === "content" ? event.text : "";
    if (said.endsWith("time ") && event.type === "content") {
      plug.pull();
      here.server.openGate(subject, "text");
    }
  }
  expect(said).toBe(`<content-block-text>Once upon a time there was ${subject}.</content-block-text>`);
});
