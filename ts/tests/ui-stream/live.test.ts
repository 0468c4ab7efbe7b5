import { expect, it, onTestFinished } from "vitest";
import { type Chunk, faultsOf } from "../chunks.ts";
import { Live } from "../clients/live.ts";
import { linesOf } from "../message.ts";
import { requirement } from "../requirement.ts";
import { fresh, scene } from "../server-fixture.ts";
import { until } from "../until.ts";

const here = scene();

class Talk {
  readonly id = fresh("chat");
  readonly #live: Live;

  static async begin(): Promise<Talk> {
    const talk = new Talk(await Live.open(here.server.url));
    onTestFinished(() => talk.live.close());
    return talk;
  }

  private constructor(live: Live) {
    this.#live = live;
  }

  get live(): Live {
    return this.#live;
  }

  say(text: string): void {
    const message = { id: fresh("message"), role: "user", parts: [{ type: "text", text }] };
    this.live.send({ type: "message", id: this.id, messages: [message], trigger: "submit-message" });
  }

  /** What a chat in the page would send: the last message with its parts as they stand now. */
  answer(...parts: object[]): void {
    const message = { id: fresh("message"), role: "assistant", parts };
    this.live.send({ type: "message", id: this.id, messages: [message], trigger: "submit-message" });
  }

  /** The next exchange, well-formed and closed. */
  async exchange(): Promise<Chunk[]> {
    const chunks = await this.live.exchange();
    expect(faultsOf(chunks)).toEqual([]);
    return chunks;
  }
}

const types = (chunks: readonly Chunk[]): string[] => [
  ...new Set(chunks.map(({ type }) => type).filter((type) => !/step|start$|delta|text-end/.test(type))),
];
const one = (chunks: readonly Chunk[], type: string): Chunk => {
  const found = chunks.find((chunk) => chunk.type === type);
  if (found === undefined) {
    throw new Error(`there is no ${type} in ${JSON.stringify(chunks)}`);
  }
  return found;
};
const textOf = (chunks: readonly Chunk[]): string =>
  chunks
    .filter(({ type }) => type === "text-delta")
    .map((chunk) => String(chunk["delta"]))
    .join("");
const yesTo = (tool: string, asked: Chunk, approved = true): object => ({
  type: `tool-${tool}`,
  toolCallId: asked["toolCallId"],
  state: "approval-responded",
  approval: { id: asked["approvalId"], approved },
});

it("a text is one exchange", async () => {
  requirement("live:exchanges");
  const talk = await Talk.begin();
  talk.say("hello Ada");
  const chunks = await talk.exchange();
  expect(textOf(chunks)).toBe("Hello Ada, this is your message number 1.");
  expect(one(chunks, "finish")["finishReason"]).toBe("stop");
});

it("a message for a tool behind an approval ends with the request, the approval with output and text", async () => {
  requirement("live:exchanges");
  const talk = await Talk.begin();
  const path = fresh("file");
  talk.say(`delete ${path}`);
  const asked = await talk.exchange();
  expect(types(asked)).toEqual(["tool-input-available", "tool-approval-request", "finish"]);
  expect(one(asked, "finish")["finishReason"]).toBe("tool-calls");
  talk.answer(yesTo("delete_file", one(asked, "tool-approval-request")));
  const answered = await talk.exchange();
  expect(types(answered)).toEqual(["tool-output-available", "finish"]);
  expect(textOf(answered)).toBe(`delete_file gave {"deleted": "${path}"}.`);
  expect(here.server.executions("delete_file", path)).toBe(1);
});

it.each([
  ["message", { name: "photo.png" }, 'take_photo gave {"name": "photo.png"}.'],
  ["tool_result", { name: "photo.png" }, 'take_photo gave {"name": "photo.png"}.'],
] as const)(
  "an output that comes right behind the yes to a frontend tool, as a %s, is answered in the same exchange",
  async (way, output, answer) => {
    const talk = await Talk.begin();
    talk.say(`photo ${fresh("cat")}`);
    const request = one(await talk.exchange(), "tool-approval-request");
    const toolCallId = request["toolCallId"];
    talk.answer(yesTo("take_photo", request));
    if (way === "message") {
      talk.answer({ ...yesTo("take_photo", request), state: "output-available", output });
    } else {
      talk.live.send({ type: "tool_result", toolCallId, result: output });
    }
    expect(textOf(await talk.exchange())).toBe(answer);
  },
);

it("an approval of a frontend tool without output is answered untouched, once, and then with the call", async () => {
  const talk = await Talk.begin();
  talk.say(`photo ${fresh("cat")}`);
  const request = one(await talk.exchange(), "tool-approval-request");
  talk.answer(yesTo("take_photo", request));
  expect((await talk.exchange()).map(({ type }) => type)).toEqual(["start", "finish"]);
  talk.answer(yesTo("take_photo", request));
  const again = await talk.exchange();
  expect(again.map(({ type }) => type)).toEqual(["start", "tool-input-available", "finish"]);
  expect(one(again, "tool-input-available")["toolCallId"]).toBe(request["toolCallId"]);
  talk.live.send({ type: "tool_result", toolCallId: request["toolCallId"], result: { name: "photo.png" } });
  expect(textOf(await talk.exchange())).toBe('take_photo gave {"name": "photo.png"}.');
});

it("the error of a frontend tool ends its exchange like an output", async () => {
  const talk = await Talk.begin();
  talk.say(`photo ${fresh("cat")}`);
  const request = one(await talk.exchange(), "tool-approval-request");
  talk.answer(yesTo("take_photo", request));
  talk.answer({ ...yesTo("take_photo", request), state: "output-error", errorText: "no camera" });
  const answered = await talk.exchange();
  expect(textOf(answered)).toBe("take_photo gave nothing: failure, no camera.");
});

it("a no to a frontend tool brings the model's answer at once", async () => {
  const talk = await Talk.begin();
  talk.say(`photo ${fresh("cat")}`);
  const request = one(await talk.exchange(), "tool-approval-request");
  talk.answer(yesTo("take_photo", request, false));
  const answered = await talk.exchange();
  expect(types(answered)).toEqual(["tool-output-denied", "finish"]);
  expect(textOf(answered)).toMatch("take_photo gave nothing: denied");
});

it("a failed result of a frontend tool without approval reaches the model", async () => {
  const talk = await Talk.begin();
  talk.say(`open ${fresh("page")}`);
  const opened = await talk.exchange();
  expect(one(opened, "finish")["finishReason"]).toBe("tool-calls");
  const { toolCallId } = one(opened, "tool-input-available") as unknown as { toolCallId: string };
  talk.live.send({ type: "tool_result", toolCallId, result: "no window", status: "failed" });
  expect(textOf(await talk.exchange())).toMatch("open_url gave nothing: failure, ");
});

it("two approvals in sequence are two exchanges, the second with the text", async () => {
  requirement("live:exchanges");
  const talk = await Talk.begin();
  const path = fresh("file");
  talk.say(`sequence ${path}`);
  talk.answer(yesTo("delete_file", one(await talk.exchange(), "tool-approval-request")));
  const second = await talk.exchange();
  expect(types(second)).toEqual([
    "tool-output-available",
    "tool-input-available",
    "tool-approval-request",
    "finish",
  ]);
  expect(textOf(second)).toBe("");
  talk.answer(yesTo("delete_file", one(second, "tool-approval-request")));
  const last = await talk.exchange();
  expect(types(last)).toEqual(["tool-output-available", "finish"]);
  expect(textOf(last)).toMatch(`{"deleted": "${path}/2"}`);
  expect(here.server.executions("delete_file", path)).toBe(2);
});

it("a second message during an exchange gets an error, and the exchange continues", async () => {
  const talk = await Talk.begin();
  const subject = fresh("tale");
  talk.say(`story ${subject}`);
  await until(() => talk.live.unread.some((frame) => frame.includes("time")), "the beginning");
  talk.say("hello Bob");
  await until(() => talk.live.unread.some((frame) => frame.includes('"error"')), "the error");
  here.server.openGate(subject, "text");
  const chunks = (await talk.live.exchange()).filter(({ type }) => type !== "error");
  expect(faultsOf(chunks)).toEqual([]);
  expect(textOf(chunks)).toBe(`Once upon a time there was ${subject}.`);
});

it("an interrupt stops the run", async () => {
  const talk = await Talk.begin();
  const subject = fresh("tale");
  talk.say(`story ${subject}`);
  await until(() => talk.live.unread.some((frame) => frame.includes("time")), "the beginning");
  talk.live.send({ type: "interrupt", reason: "enough" });
  const chunks = await talk.exchange();
  expect(one(chunks, "finish")["finishReason"]).toBe("other");
});

it.each([
  "{",
  "[]",
  '{"type":"dance"}',
  '{"type":"message"}',
  '{"type":"tool_result","toolCallId":"call_x"}',
])("a frame that cannot be read (%s) is told so, and the socket stays", async (text) => {
  const talk = await Talk.begin();
  talk.live.sendText(text);
  await until(() => talk.live.unread.some((frame) => frame.includes('"error"')), "an error");
  talk.live.send({ type: "ping", timestamp: 7 });
  await until(() => talk.live.unread.some((frame) => frame.includes('"pong"')), "a pong");
  expect(talk.live.isOpen).toBe(true);
});

it("a dropped socket never stops a run", async () => {
  requirement("ui-stream:dropped");
  const talk = await Talk.begin();
  const subject = fresh("tale");
  talk.say(`story ${subject}`);
  await until(() => talk.live.unread.some((frame) => frame.includes("time")), "the beginning");
  talk.live.close();
  here.server.openGate(subject, "text");
  const told = `assistant: Once upon a time there was ${subject}.`;
  await until(async () => linesOf(await here.kept(talk.id)).includes(told), "the whole answer");
});
