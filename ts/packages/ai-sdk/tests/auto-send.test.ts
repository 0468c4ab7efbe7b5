import { expect, it } from "vitest";
import { type AnswerablePart, sendWhenAnswered } from "../src/index.ts";

const send = sendWhenAnswered({ frontendTools: ["take_photo", "open_url"] });

const sends = (...parts: AnswerablePart[]): boolean => send({ messages: [{ role: "assistant", parts }] });
const step: AnswerablePart = { type: "step-start" };
const photo = (state: string, approved?: boolean): AnswerablePart => ({
  type: "tool-take_photo",
  state,
  approval: { approved },
});
const remove = (state: string, approved?: boolean): AnswerablePart => ({
  type: "tool-delete_file",
  state,
  approval: { approved },
});

const CASES: readonly [string, boolean, AnswerablePart[]][] = [
  ["waits for the person", false, [step, photo("approval-requested")]],
  [
    "waits for the output after a yes to a tool of the page",
    false,
    [step, photo("approval-responded", true)],
  ],
  ["sends the yes together with the output", true, [step, photo("output-available", true)]],
  ["sends the yes together with the error", true, [step, photo("output-error", true)]],
  ["sends a no at once", true, [step, photo("approval-responded", false)]],
  ["sends a yes to a server tool at once", true, [step, remove("approval-responded", true)]],
  [
    "waits for the other approval of the step",
    false,
    [step, remove("approval-responded", true), remove("approval-requested")],
  ],
  [
    "waits for the output beside an answered approval",
    false,
    [step, remove("approval-responded", true), photo("approval-responded", true)],
  ],
  [
    "sends when the step is answered as a whole",
    true,
    [step, remove("approval-responded", false), photo("output-available", true)],
  ],
  [
    "waits for a tool of the page that is still running",
    false,
    [step, { type: "tool-open_url", state: "input-available" }],
  ],
  [
    "waits while an output is preliminary",
    false,
    [step, { type: "tool-open_url", state: "output-available", preliminary: true }],
  ],
  [
    "sends the output of a tool without approval",
    true,
    [step, { type: "tool-open_url", state: "output-available" }],
  ],
  [
    "knows a dynamic tool by its name",
    true,
    [step, { type: "dynamic-tool", toolName: "open_url", state: "output-error" }],
  ],
  ["sends nothing for a server tool that is done", false, [step, remove("output-available", true)]],
  ["sends nothing for a server tool that was denied", false, [step, remove("output-denied", false)]],
  ["looks at the last step alone", false, [step, photo("output-available", true), step, { type: "text" }]],
  ["sends nothing for a message without tools", false, [{ type: "text" }]],
];

it.each(CASES)("%s", (_sentence, expected, parts) => {
  expect(sends(...parts)).toBe(expected);
});

it("sends nothing for a user's message or an empty chat", () => {
  expect(send({ messages: [{ role: "user", parts: [{ type: "text" }] }] })).toBe(false);
  expect(send({ messages: [] })).toBe(false);
});
