// AI SDK 7's WebSocket transport, where it differs from HTTP: many requests share a line.
import { once } from "node:events";
import { expect, it, onTestFinished } from "vitest";
import { WebSocket } from "ws";
import { socket7 } from "../clients/index.ts";
import { linesOf } from "../message.ts";
import { requirement } from "../requirement.ts";
import { fresh, scene } from "../server-fixture.ts";
import { until } from "../until.ts";

const here = scene();

interface Frame {
  readonly type: string;
  readonly requestId: string;
  readonly sequence?: number;
  readonly chunk?: { readonly type: string };
  readonly errorText?: string;
}

async function line(): Promise<{ socket: WebSocket; frames: Frame[]; send: (frame: object) => void }> {
  const socket = new WebSocket(`${here.server.url.replace("http", "ws")}/api/chat/ws`);
  const frames: Frame[] = [];
  socket.on("message", (text) => frames.push(JSON.parse(String(text)) as Frame));
  onTestFinished(() => socket.terminate());
  await once(socket, "open");
  return { socket, frames, send: (frame) => socket.send(JSON.stringify(frame)) };
}

const sending = (requestId: string, id: string, text: string): object => ({
  type: "send",
  requestId,
  id,
  trigger: "submit-message",
  messages: [{ id: fresh("message"), role: "user", parts: [{ type: "text", text }] }],
  headers: {},
  body: {},
});

it("two chats share a socket, each with its own sequence", async () => {
  const { frames, send } = await line();
  const [one, two] = [fresh("tale"), fresh("tale")];
  send(sending("a", fresh("chat"), `story ${one}`));
  send(sending("b", fresh("chat"), `story ${two}`));
  here.server.openGate(two, "text");
  await until(
    () => frames.some(({ type, requestId }) => type === "end" && requestId === "b"),
    "the end of the second",
  );
  here.server.openGate(one, "text");
  await until(
    () => frames.some(({ type, requestId }) => type === "end" && requestId === "a"),
    "the end of the first",
  );
  for (const id of ["a", "b"]) {
    const sequence = frames
      .filter(({ type, requestId }) => type === "chunk" && requestId === id)
      .map((frame) => frame.sequence);
    expect(sequence).toEqual(sequence.map((_, index) => index));
  }
});

it("an abort closes the request and not the run", async () => {
  const page = here.open(socket7);
  const subject = fresh("tale");
  page.say(`story ${subject}`);
  await page.sees("Once upon a time");
  await page.hands.chat().stop();
  here.server.openGate(subject, "text");
  const told = `assistant: Once upon a time there was ${subject}.`;
  await until(async () => linesOf(await here.kept(page.chatId)).includes(told), "the whole answer");
  page.resume();
  await page.sees(`there was ${subject}.`);
});

it.each([
  "{",
  "[]",
  '{"type":"dance","requestId":"x"}',
  '{"type":"send","requestId":"x","id":"../..","messages":[]}',
])("a frame that cannot be read (%s) gets an error, and the socket stays", async (text) => {
  const { socket, frames, send } = await line();
  socket.send(text);
  await until(() => frames.some(({ type }) => type === "error"), "an error");
  send(sending("good", fresh("chat"), "hello Ada"));
  await until(
    () => frames.some(({ type, requestId }) => type === "end" && requestId === "good"),
    "the answer",
  );
  expect(socket.readyState).toBe(WebSocket.OPEN);
});

it("resuming a chat without an answer in progress gets an error", async () => {
  const { frames, send } = await line();
  send({ type: "resume", requestId: "r", id: fresh("chat"), headers: {}, body: {} });
  await until(() => frames.length > 0, "an answer");
  expect(frames).toEqual([{ type: "no-active", requestId: "r" }]);
});

it("a dropped socket never stops a run", async () => {
  requirement("ui-stream:dropped");
  const { socket, frames, send } = await line();
  const [chat, subject] = [fresh("chat"), fresh("tale")];
  send(sending("a", chat, `story ${subject}`));
  await until(() => frames.some(({ chunk }) => chunk?.type === "text-delta"), "the beginning");
  socket.terminate();
  here.server.openGate(subject, "text");
  const told = `assistant: Once upon a time there was ${subject}.`;
  await until(async () => linesOf(await here.kept(chat)).includes(told), "the whole answer");
});
