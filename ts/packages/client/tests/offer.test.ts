// A page that offers tools of its own, on a real server: asked, answered, closed and opened again.
import { afterEach, expect, it } from "vitest";
import { requirement } from "../../../tests/requirement.ts";
import { fresh, scene } from "../../../tests/server-fixture.ts";
import { until } from "../../../tests/until.ts";
import { offer, type Offer, type OfferOptions } from "../src/index.ts";

const here = scene();
const open: Offer[] = [];
const TEXT = { type: "object", properties: { text: { type: "string" } }, required: ["text"] };

afterEach(async () => {
  await Promise.all(open.splice(0).map((each) => each.stop()));
});

function page(options: Partial<OfferOptions> & Pick<OfferOptions, "tools">): { clientID: string; desk: Offer; call: (tool: string, input: object) => Promise<Record<string, unknown>>; tools: () => Promise<number> } {
  const clientID = options.clientID ?? fresh("tab");
  const desk = offer({ url: here.server.url, ...options, clientID });
  open.push(desk);
  return {
    clientID,
    desk,
    call: async (tool, input) => (await here.post("/client-tools/execute", { toolID: `client_${clientID}_${tool}`, input })).body as Record<string, unknown>,
    tools: async () => ((await (await fetch(`${here.server.url}/client-tools/tools/${clientID}`)).json()) as unknown[]).length,
  };
}

it("a page is asked for the tools that it offers, and says how far it is", async () => {
  requirement("offer:runs");
  const seen: object[] = [];
  const run = (input: { text: string }, { progress, threadId }: { progress: (text: string) => void; threadId: string }): string => {
    progress("half of it");
    seen.push({ input, isThread: threadId.length > 0 });
    return `found ${input.text}`;
  };
  const { desk, call } = page({ tools: { search_notes: { description: "Search.", parameters: TEXT, run } } });
  await until(() => desk.state.state === "offered", "the offer");
  expect(await call("search_notes", { text: "milk" })).toMatchObject({ status: "success", output: "found milk" });
  expect(seen).toEqual([{ input: { text: "milk" }, isThread: true }]);
});

it("a page that is closed takes its tools along at once, and one that the browser shows again offers them again", async () => {
  requirement("offer:runs");
  const { desk, call, tools } = page({ tools: { echo: { description: "A tool.", parameters: TEXT, run: ({ text }: { text: string }) => text } } });
  await until(() => desk.state.state === "offered", "the offer");
  dispatchEvent(new Event("pagehide"));
  await until(async () => (await tools()) === 0, "no tools", 4_000);
  dispatchEvent(Object.assign(new Event("pageshow"), { persisted: true }));
  await until(() => desk.state.state === "offered", "the offer, again");
  expect(await call("echo", { text: "back" })).toMatchObject({ output: "back" });
});

it.each([
  { arrives: "before", error: "the client unregistered this tool" },
  { arrives: "after", error: "The client program was restarted while it had this call. Whether it took effect is unknown; it was not run again." },
])("a page that was reloaded in mid call does not run it again, and its caller is told; its goodbye arrives $arrives the new page", async ({ arrives, error }) => {
  requirement("offer:once");
  const clientID = fresh("tab");
  let runs = 0;
  const tools = { slow: { description: "A tool.", parameters: TEXT, run: () => ((runs += 1), new Promise(() => undefined)) } };
  let offerAgain: () => void = () => undefined;
  const isOfferedAgain = new Promise<void>((resolve) => (offerAgain = resolve));
  let goodbye: Promise<Response> | undefined;
  const held: typeof fetch = (input, init) => (init?.keepalive ? (goodbye ??= isOfferedAgain.then(() => fetch(input, init))) : fetch(input, init));
  const first = page({ clientID, tools, ...(arrives === "after" ? { fetch: held } : {}) });
  await until(() => first.desk.state.state === "offered", "the offer");
  const answer = first.call("slow", { text: "a" });
  await until(() => runs === 1, "the handler");
  dispatchEvent(new Event("pagehide"));
  if (arrives === "before") {
    await until(async () => (await first.tools()) === 0, "no tools");
  }
  const second = page({ clientID, tools });
  expect(await answer).toEqual({ status: "error", error });
  await until(() => second.desk.state.state === "offered", "the offer of the next life");
  offerAgain();
  await goodbye;
  expect(await second.tools()).toBe(1);
  expect(runs).toBe(1);
});

it("of two pages with one name the older one ends", async () => {
  requirement("offer:once");
  const clientID = fresh("tab");
  const tools = { echo: { description: "A tool.", parameters: TEXT, run: ({ text }: { text: string }) => text } };
  const older = page({ clientID, tools });
  await until(() => older.desk.state.state === "offered", "the offer");
  const newer = page({ clientID, tools });
  await until(() => older.desk.state.state === "ended", "the end of the older");
  expect(older.desk.state).toEqual({ state: "ended", end: { kind: "superseded" } });
  expect(await newer.call("echo", { text: "here" })).toMatchObject({ output: "here" });
});
