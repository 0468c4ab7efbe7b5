// Cards when the line breaks, when somebody else was first, and when no form can be made of an output.
import { expect, it } from "vitest";
import { fresh, scene } from "../../../tests/server-fixture.ts";
import { openPage, type Page } from "./page.tsx";

const here = scene();
const page = (): Page => openPage({ url: here.server.url, threadId: fresh("chat"), storage: null, backOff: () => 300 });

it("a tool that promises nothing of its output is answered with text or JSON", async () => {
  const chat = page();
  chat.say(`open ${fresh("page")}`);
  await chat.sees("Open a page beside the chat.");
  chat.type("Answer", "{broken");
  await chat.sees("Sent as text.");
  chat.type("Answer", '{"shown": true}');
  await chat.sees("Sent as JSON.");
  chat.press("Send answer");
  await chat.sees('open_url gave {"shown": true}.');
});

it("text of a tool is never HTML", async () => {
  const chat = page();
  chat.say("open <img/src=x/onerror=alert(1)><b>bold</b>");
  await chat.sees("Open a page beside the chat.");
  expect(chat.all("img, b")).toEqual([]);
  expect(chat.text()).toContain("<img/src=x/onerror=alert(1)>");
});

it("who is second sees that it was answered in another tab", async () => {
  const chat = page();
  chat.say(`open ${fresh("page")}`);
  await chat.sees("Waiting for 1 answer.");
  const [id] = chat.host().state.calls.keys();
  await here.post("/api/tools/ack", { toolCallId: id, status: "success", output: "first" });
  await chat.sees("Answered in another tab");
});

it("an answer that does not reach the server is kept, said so, and delivered when the server is back", async () => {
  const chat = page();
  chat.say(`open ${fresh("page")}`);
  await chat.sees("Waiting for 1 answer.");
  await chat.sees("Open a page beside the chat.");
  await here.server.end("SIGKILL");
  chat.type("Answer", '"late"');
  chat.press("Send answer");
  await chat.sees("Your answer did not reach the server");
  await chat.sees(/Still here and not lost\. Trying again in \d+ s\./);
  await chat.sees("Connection lost. Trying again.");
  // gone for a moment whenever it is tried again by itself
  await chat.presses("Try now");
  await here.server.start();
  await chat.sees('open_url gave "late".');
});
