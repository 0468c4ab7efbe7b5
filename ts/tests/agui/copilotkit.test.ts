// CopilotKit's core with farhand as its runtime.
import { expect, it } from "vitest";
import { requirement } from "../requirement.ts";
import { fresh, scene } from "../server-fixture.ts";
import { until } from "../until.ts";
import { frontendTool, Kit, transports } from "./copilotkit.ts";

const here = scene();

it.concurrent.for(transports)("text over $transport", async ({ transport }) => {
  requirement("agui:copilotkit");
  const kit = await Kit.open({ url: here.server.url, transport });
  await kit.say("hello Ada");
  expect(kit.lines).toEqual(["user: hello Ada", "assistant: Hello Ada, this is your message number 1."]);
  expect(kit.errors).toEqual([]);
});

it.concurrent.for(transports)("a frontend tool runs by itself over $transport", async ({ transport }) => {
  requirement("agui:copilotkit");
  const subject = fresh("page");
  const opened: unknown[] = [];
  const open = frontendTool("open_url", (args) => {
    opened.push(args);
    return { viewKey: "v" };
  });
  const kit = await Kit.open({ url: here.server.url, transport, tools: [open] });
  await kit.say(`open ${subject}`);
  expect(opened).toEqual([{ url: subject }]);
  expect(kit.lines.slice(1)).toEqual([
    "assistant: I will open it.",
    `open_url {"url":"${subject}"}`,
    '= {"viewKey":"v"}',
    'assistant: open_url gave {"viewKey": "v"}.',
  ]);
  expect(kit.errors).toEqual([]);
});

it.concurrent.for(transports)("a reloaded page connects to its thread over $transport", async ({ transport }) => {
  requirement("agui:copilotkit");
  const first = await Kit.open({ url: here.server.url, transport });
  await first.say("hello Ada");
  await first.say("weather oslo");
  const second = await Kit.open({ url: here.server.url, transport, threadId: first.threadId });
  await second.connect();
  expect(second.lines).toEqual(first.lines);
  await second.say("hello Bob");
  expect(second.lines.at(-1)).toBe("assistant: Hello Bob, this is your message number 3.");
  expect(second.errors).toEqual([]);
});

it.concurrent.for(transports)("an approval and a frontend tool in one step over $transport", async ({ transport }) => {
  requirement("agui:copilotkit");
  const subject = fresh("file");
  const opened: unknown[] = [];
  const open = frontendTool("open_url", (args) => {
    opened.push(args);
    return { viewKey: "v" };
  });
  const kit = await Kit.open({ url: here.server.url, transport, tools: [open] });
  await kit.say(`delete-and-open ${subject}`);
  expect(opened).toEqual([]);
  const [asked] = kit.agent.pendingInterrupts;
  await kit.run({ resume: [{ interruptId: asked!.id, status: "resolved", payload: { approved: true } }] });
  expect(opened).toEqual([{ url: subject }]);
  expect(here.server.executions("delete_file", subject)).toBe(1);
  expect(kit.lines.at(-1)).toBe(
    `assistant: delete_file gave {"deleted": "${subject}"}. open_url gave {"viewKey": "v"}.`,
  );
  expect(kit.errors).toEqual([]);
});

it.concurrent.for(transports)("a stop ends the run and the next message is answered, over $transport", async ({ transport }) => {
  requirement("agui:copilotkit");
  const subject = fresh("tale");
  const kit = await Kit.open({ url: here.server.url, transport });
  const told = kit.say(`story ${subject}`);
  await kit.sees("Once upon");
  kit.stop();
  await told;
  await kit.say("hello Ada");
  expect(kit.lines.at(-1)).toBe("assistant: Hello Ada, this is your message number 2.");
  expect(kit.errors).toEqual([]);
});

it.concurrent.for(transports)("a person is asked again after a reload over $transport", async ({ transport }) => {
  requirement("agui:copilotkit");
  const subject = fresh("page");
  const never = frontendTool("open_url", () => new Promise(() => undefined), { type: "human-in-the-loop" });
  const first = await Kit.open({ url: here.server.url, transport, tools: [never] });
  void first.say(`open ${subject}`);
  await first.sees("open_url");
  const open = frontendTool("open_url", () => ({ viewKey: "later" }), { type: "human-in-the-loop" });
  const second = await Kit.open({ url: here.server.url, transport, threadId: first.threadId, tools: [open] });
  await second.connect();
  await second.sees("open_url gave");
  await until(() => second.lines.length === 5, () => JSON.stringify(second.lines));
  expect(second.lines.at(-1)).toBe('assistant: open_url gave {"viewKey": "later"}.');
  expect(second.errors).toEqual([]);
});

it.concurrent.for(transports)("a plain tool that a reload left waits, and the next message continues, over $transport", async ({ transport }) => {
  requirement("agui:copilotkit");
  const subject = fresh("page");
  const never = frontendTool("open_url", () => new Promise(() => undefined));
  const first = await Kit.open({ url: here.server.url, transport, tools: [never] });
  void first.say(`open ${subject}`);
  await first.sees("open_url");
  const second = await Kit.open({ url: here.server.url, transport, threadId: first.threadId, tools: [never] });
  await second.connect();
  expect(second.lines.at(-1)).toBe(`open_url {"url":"${subject}"}`);
  await second.say("hello Ada");
  expect(second.lines.at(-1)).toBe("assistant: Hello Ada, this is your message number 2.");
  expect(second.errors).toEqual([]);
});

it.concurrent.for(transports)("an interrupt is there again after a reload over $transport", async ({ transport }) => {
  requirement("agui:copilotkit");
  const subject = fresh("file");
  const first = await Kit.open({ url: here.server.url, transport });
  await first.say(`delete ${subject}`);
  const second = await Kit.open({ url: here.server.url, transport, threadId: first.threadId });
  await second.connect();
  const [asked] = second.agent.pendingInterrupts;
  expect(asked).toEqual(first.agent.pendingInterrupts[0]);
  await second.run({ resume: [{ interruptId: asked!.id, status: "resolved", payload: { approved: true } }] });
  expect(here.server.executions("delete_file", subject)).toBe(1);
  expect(second.lines.at(-1)).toBe(`assistant: delete_file gave {"deleted": "${subject}"}.`);
  expect(second.errors).toEqual([]);
});

it.concurrent.for(transports)("what a page says while it is asked is answered after its approval, over $transport", async ({ transport }) => {
  requirement("agui:resume-and-message");
  const subject = fresh("file");
  const kit = await Kit.open({ url: here.server.url, transport });
  await kit.say(`delete ${subject}`);
  const [asked] = kit.agent.pendingInterrupts;
  // the client keeps the message and refuses to run without an answer
  await kit.say("hello Ada");
  expect(kit.errors).toHaveLength(1);
  await kit.run({ resume: [{ interruptId: asked!.id, status: "resolved", payload: { approved: true } }] });
  expect(here.server.executions("delete_file", subject)).toBe(1);
  expect(kit.lines.at(-1)).toBe("assistant: Hello Ada, this is your message number 2.");
  expect(kit.errors).toHaveLength(1);
});

it("a page that was asked before a restart answers after it", async () => {
  requirement("agui:restart");
  const subject = fresh("file");
  const kit = await Kit.open({ url: here.server.url, transport: "rest" });
  await kit.say(`delete ${subject}`);
  const [asked] = kit.agent.pendingInterrupts;
  await here.server.end("SIGKILL");
  await here.server.start();
  await kit.run({ resume: [{ interruptId: asked!.id, status: "resolved", payload: { approved: true } }] });
  expect(here.server.executions("delete_file", subject)).toBe(1);
  expect(kit.lines.at(-1)).toBe(`assistant: delete_file gave {"deleted": "${subject}"}.`);
});
