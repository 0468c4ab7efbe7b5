import { expect, it } from "vitest";
import { type Client, clients, type Page } from "../clients/index.ts";
import type { Message } from "../message.ts";
import { requirement } from "../requirement.ts";
import { ends, fresh, scene } from "../server-fixture.ts";
import { expectTranscript } from "../transcript.ts";

const here = scene();
const EIGHT = [1, 2, 3, 4, 5, 6, 7, 8];

/** Eight pages with the same chat and the same messages. */
function eight(client: Client, chatId: string, messages: readonly Message[]): Page[] {
  return EIGHT.map(() => here.open(client, { chatId, messages: structuredClone(messages) }));
}

it.concurrent.for(clients)(
  "$name submits the same message eight times at once: one run, one execution",
  async (client) => {
    requirement("ui-stream:repeated-post");
    const city = fresh("city");
    const message = {
      id: fresh("message"),
      role: "user",
      parts: [{ type: "text", text: `weather ${city}` }],
    };
    const pages = eight(client, fresh("chat"), []);
    pages.forEach((page) => void page.hands.chat().sendMessage(message));
    const seen = [
      `user: weather ${city}`,
      `assistant: weather {"city":"${city}"} = {"city":"${city}","sky":"sunny"}`,
      `assistant: weather gave {"city": "${city}", "sky": "sunny"}.`,
    ];
    await Promise.all(pages.map((page) => ends(page, { seen, posts: 1 })));
    expect(here.server.executions("weather", city)).toBe(1);
  },
);

it.concurrent.for(clients)(
  "$name posts the same yes eight times at once: the tool runs once",
  async (client) => {
    requirement("ui-stream:repeated-post");
    const first = here.open(client, { autoSend: "never" });
    const path = fresh("file");
    first.say(`delete ${path}`);
    await first.sees("may it run?");
    await first.rests();
    first.decide("delete_file", true);
    await first.sees("may run");
    const pages = eight(client, first.chatId, first.messages);
    pages.forEach((page) => page.post());
    const seen = [
      `user: delete ${path}`,
      `assistant: delete_file {"path":"${path}"} = {"deleted":"${path}"}`,
      `assistant: delete_file gave {"deleted": "${path}"}.`,
    ];
    await Promise.all(pages.map((page) => ends(page, { seen, posts: 1 })));
    expect(here.server.executions("delete_file", path)).toBe(1);
  },
);

it.concurrent.for(clients)(
  "$name posts eight different outputs at once: all are shown the one that won",
  async (client) => {
    requirement("ui-stream:repeated-post");
    const first = here.open(client);
    const url = fresh("page");
    first.say(`open ${url}`);
    await first.sees("is to run");
    await first.rests();
    const pages = eight(client, first.chatId, first.messages);
    pages.forEach((page, index) => page.answer("open_url", `tab ${index}`));
    await Promise.all(pages.map((page) => page.sees("open_url gave")));
    const winner = String(pages[0]?.parts("open_url")[0]?.output);
    expect(winner).toMatch(/^tab \d$/);
    const seen = [
      `user: open ${url}`,
      "assistant: I will open it.",
      `assistant: open_url {"url":"${url}"} = "${winner}"`,
      `assistant: open_url gave "${winner}".`,
    ];
    await Promise.all(pages.map((page) => ends(page, { seen, posts: 1 })));
  },
);

it.concurrent.for(clients)("$name moves on with a new message while a call is open", async (client) => {
  const page = here.open(client);
  const url = fresh("page");
  page.say(`open ${url}`);
  await page.sees("is to run");
  await page.rests();
  page.say("hello Bob");
  await ends(page, {
    seen: [
      `user: open ${url}`,
      "assistant: I will open it.",
      `assistant: open_url {"url":"${url}"} is to run`,
      "user: hello Bob",
      "assistant: Hello Bob, this is your message number 2.",
    ],
    posts: 2,
  });
  const [part] = (await here.kept(page.chatId)).flatMap(({ parts }) =>
    parts.filter(({ type }) => type === "tool-open_url"),
  );
  expect(part?.state).toBe("output-error");
  expect(part?.errorText).toMatch("the user moved on");
  const late = await here.post("/api/tools/ack", {
    toolCallId: part?.toolCallId,
    status: "success",
    output: "late",
  });
  expect(late.status).toBe(410);
  expectTranscript("moved-on", { client, page, subject: url });
});

it.concurrent.for(clients)(
  "$name moves on with a new message while an approval is open, and the tool never runs",
  async (client) => {
    const page = here.open(client);
    const path = fresh("file");
    page.say(`delete ${path}`);
    await page.sees("may it run?");
    await page.rests();
    page.say("hello Bob");
    await page.sees("message number 2");
    await page.rests();
    const posts = page.wire.posts.length;
    page.decide("delete_file", true);
    await page.quiet();
    expect(here.server.executions("delete_file", path)).toBe(0);
    expect(page.wire.posts.length).toBeLessThanOrEqual(posts + 1);
    expect(page.seen().filter((line) => line.includes("message number"))).toEqual([
      "assistant: Hello Bob, this is your message number 2.",
    ]);
  },
);

it("a new message while the model writes is refused, and the answer continues", async () => {
  const [client] = clients;
  const page = here.open(client as Client);
  const subject = fresh("tale");
  page.say(`story ${subject}`);
  await page.sees("Once upon a time");
  const message = { id: fresh("message"), role: "user", parts: [{ type: "text", text: "hello Bob" }] };
  const refused = await here.post("/api/chat", {
    id: page.chatId,
    messages: [message],
    trigger: "submit-message",
  });
  expect(refused.status).toBe(409);
  here.server.openGate(subject, "text");
  await ends(page, {
    seen: [`user: story ${subject}`, `assistant: Once upon a time there was ${subject}.`],
    posts: 1,
  });
});
