// Unmodified AG-UI clients on `/ag-ui`.
import { expect, it } from "vitest";
import { fresh, scene } from "../scene.ts";
import { bring, lines, openCalls, run, say, versions } from "./client.ts";

const here = scene();
const url = (): string => `${here.server.url}/ag-ui`;

it.concurrent.for(versions)("$name shows text, turn by turn", async (version) => {
  const agent = version.open(url());
  say(agent, "hello Ada");
  const first = await run(agent);
  expect(first.types).toEqual(["RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_END", "RUN_FINISHED"]);
  say(agent, "hello Bob");
  await run(agent);
  expect(lines(agent)).toEqual([
    "user: hello Ada",
    "assistant: Hello Ada, this is your message number 1.",
    "user: hello Bob",
    "assistant: Hello Bob, this is your message number 2.",
  ]);
});

it.concurrent.for(versions)("$name executes a frontend tool and goes on", async (version) => {
  const agent = version.open(url());
  const subject = fresh("page");
  say(agent, `open ${subject}`);
  await run(agent);
  const [call] = openCalls(agent);
  expect(call).toMatchObject({ name: "open_url", args: { url: subject } });
  bring(agent, call!.id, { viewKey: "v" });
  await run(agent);
  expect(lines(agent)).toEqual([
    `user: open ${subject}`,
    "assistant: I will open it.",
    `open_url {"url":"${subject}"}`,
    '= {"viewKey":"v"}',
    'assistant: open_url gave {"viewKey": "v"}.',
  ]);
});

it.concurrent.for(versions)("$name answers an interrupt", async (version) => {
  const agent = version.open(url());
  const subject = fresh("file");
  say(agent, `delete ${subject}`);
  const paused = await run(agent);
  const [asked] = paused.interrupts;
  expect(asked).toMatchObject({ reason: "tool_call", toolCallId: openCalls(agent)[0]!.id });
  await run(agent, { resume: [{ interruptId: asked!.id, status: "resolved", payload: { approved: true } }] });
  expect(here.server.executions("delete_file", subject)).toBe(1);
  expect(lines(agent).at(-1)).toBe(`assistant: delete_file gave {"deleted": "${subject}"}.`);
  expect(agent.pendingInterrupts).toEqual([]);
});
