// What was said in a scenario, kept in schema/transcripts: the posts of `ai` 7 and the chunks of every answer.
// Ids and the subject of the test are normalised, deltas joined, so that every client and every run must come to
// the same text. UPDATE_TRANSCRIPTS=1 writes them anew.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect } from "vitest";
import type { Chunk } from "./chunks.ts";
import type { Client, Page } from "./clients/index.ts";
import type { Exchange } from "./wire.ts";

const FOLDER = resolve(import.meta.dirname, "../../schema/transcripts/ui_stream");
/** The client whose posts are written down; the others word theirs a little differently. */
const WRITER = "ai 7";
const OUR_ID = /\b(?:call|apr|run|thr)_[0-9a-f]{32}\b/g;

export function expectTranscript(
  scenario: string,
  { client, page, subject }: { client: Client; page: Page; subject: string },
): void {
  const lines = normalised(page, subject);
  const file = resolve(FOLDER, `${scenario}.jsonl`);
  if (process.env["UPDATE_TRANSCRIPTS"] === "1" && client.name === WRITER) {
    mkdirSync(FOLDER, { recursive: true });
    writeFileSync(file, `${lines.join("\n")}\n`);
  }
  if (process.env["UPDATE_TRANSCRIPTS"] === "1") {
    return;
  }
  expect(existsSync(file), `${file} is missing: run the tests with UPDATE_TRANSCRIPTS=1 and look at it`).toBe(
    true,
  );
  const kept = readFileSync(file, "utf8").trimEnd().split("\n");
  const compared = client.name === WRITER ? (all: string[]) => all : answersIn;
  expect(compared(lines)).toEqual(compared(kept));
}

function answersIn(lines: readonly string[]): string[] {
  return lines.filter((line) => !line.startsWith('{"post":'));
}

function normalised(page: Page, subject: string): string[] {
  const lines = page.wire.exchanges.flatMap((exchange) => linesOf(exchange));
  const text = lines.map((line) => JSON.stringify(line)).join("\n");
  return inOrderOfCalls(renamed(text, page, subject).split("\n"));
}

/** Neighbouring outputs in the order of their calls: which of two tools is done first is nobody's promise. */
function inOrderOfCalls(lines: readonly string[]): string[] {
  const call = (line: string): string =>
    /^\{"chunk":\{"type":"tool-output-[a-z]+","toolCallId":"(\w+)"/.exec(line)?.[1] ?? "";
  const result: string[] = [];
  for (const line of lines) {
    const earlier = result.findLastIndex((other) => call(other) === "" || call(other) < call(line));
    result.splice(call(line) === "" ? result.length : earlier + 1, 0, line);
  }
  return result;
}

function linesOf(exchange: Exchange): object[] {
  const request =
    exchange.kind === "post"
      ? { post: { ...exchange.body, messages: exchange.body?.messages.slice(-1) } }
      : { resume: { id: exchange.body?.id ?? "" } };
  return [request, ...joined(exchange.chunks).map((chunk) => ({ chunk })), { done: exchange.dones }];
}

/** Neighbouring deltas of one block as one: how a text is cut is nobody's promise. */
function joined(chunks: readonly Chunk[]): Chunk[] {
  const result: Chunk[] = [];
  for (const chunk of chunks) {
    const last = result.at(-1);
    const field = chunk.type === "tool-input-delta" ? "inputTextDelta" : "delta";
    const same =
      last?.type === chunk.type && last["id"] === chunk["id"] && last["toolCallId"] === chunk["toolCallId"];
    if (last !== undefined && same && chunk.type.endsWith("-delta")) {
      result[result.length - 1] = { ...last, [field]: `${String(last[field])}${String(chunk[field])}` };
    } else {
      result.push(chunk);
    }
  }
  return result;
}

function renamed(text: string, page: Page, subject: string): string {
  const names = new Map<string, string>([
    [page.chatId, "chat"],
    [subject, "subject"],
  ]);
  const counts = new Map<string, number>();
  const name = (id: string, kind: string): void => {
    if (!names.has(id)) {
      const count = (counts.get(kind) ?? 0) + 1;
      counts.set(kind, count);
      names.set(id, `${kind}_${count}`);
    }
  };
  for (const [id] of text.matchAll(OUR_ID)) {
    name(id, id.split("_")[0] ?? "");
  }
  const posted = page.wire.posts.flatMap((post) => post.body?.messages ?? []);
  for (const message of posted.filter(({ role }) => role === "user")) {
    name(message.id, "message");
  }
  return [...names].reduce((result, [id, short]) => result.replaceAll(id, short), text);
}
