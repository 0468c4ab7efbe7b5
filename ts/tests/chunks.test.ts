import { readdirSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { type Chunk, faultsOf } from "./chunks.ts";

const FOLDER = resolve(import.meta.dirname, "../../schema/transcripts/ui_stream");

const start: Chunk = { type: "start", messageId: "m" };
const finish: Chunk = { type: "finish", finishReason: "stop" };
const [opened, closed]: Chunk[] = [{ type: "start-step" }, { type: "finish-step" }];
const words = (move: string, id = "t"): Chunk => ({ type: `text-${move}`, id, delta: "" });
const tool = (move: string): Chunk => ({ type: `tool-${move}`, toolCallId: "c" });

describe("a response is at fault", () => {
  const PLANTED: readonly [string, (Chunk | undefined)[]][] = [
    ["without a start", [finish]],
    ["with two starts", [start, start, finish]],
    ["without an end", [start]],
    ["with something after its end", [start, finish, opened]],
    ["with an empty step", [start, opened, closed, finish]],
    ["with a step that does not end", [start, opened, tool("input-start"), finish]],
    ["with a step in a step", [start, opened, opened, tool("input-start"), closed, finish]],
    ["with words outside a step", [start, words("start"), words("end"), finish]],
    ["with words that never began", [start, opened, words("delta"), closed, finish]],
    ["with words that stay open", [start, opened, words("start"), closed, finish]],
    [
      "with words in the step of an output",
      [start, opened, tool("output-available"), words("start"), words("end"), closed, finish],
    ],
    [
      "with a call that begins twice",
      [start, opened, tool("input-start"), tool("input-start"), closed, finish],
    ],
    ["with input for a call that never began", [start, opened, tool("input-delta"), closed, finish]],
    ["with a finish without a reason", [start, { type: "finish" }]],
    ["with a start that names no message", [{ type: "start" }, finish]],
  ];
  it.each(PLANTED)("%s", (_where, chunks) => {
    expect(faultsOf(chunks.filter((chunk) => chunk !== undefined))).not.toEqual([]);
  });
});

it.each(readdirSync(FOLDER))("every answer in the transcript %s is well-formed", (file) => {
  const lines = readFileSync(resolve(FOLDER, file), "utf8").trimEnd().split("\n");
  const answers: Chunk[][] = [];
  for (const line of lines.map((text) => JSON.parse(text) as { chunk?: Chunk; done?: number })) {
    if (line.chunk !== undefined) {
      answers.at(-1)?.push(line.chunk);
    } else if (line.done === undefined) {
      answers.push([]);
    }
  }
  expect(answers.length).toBeGreaterThan(0);
  expect(answers.flatMap(faultsOf)).toEqual([]);
});
