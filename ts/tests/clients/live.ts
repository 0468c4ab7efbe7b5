// A program on the held WebSocket, in both directions: frames are whole server-sent events.
import { once } from "node:events";
import { WebSocket } from "ws";
import type { Chunk } from "../chunks.ts";
import { until } from "../until.ts";

export class Live {
  /** Every frame as it came. */
  readonly frames: string[] = [];
  readonly #socket: WebSocket;
  #read = 0;

  static async open(url: string): Promise<Live> {
    const live = new Live(new WebSocket(`${url.replace("http", "ws")}/api/chat/live`));
    await once(live.#socket, "open");
    return live;
  }

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on("message", (text) => this.frames.push(String(text)));
  }

  get isOpen(): boolean {
    return this.#socket.readyState === WebSocket.OPEN;
  }

  send(frame: object): void {
    this.#socket.send(JSON.stringify(frame));
  }

  sendText(text: string): void {
    this.#socket.send(text);
  }

  /** The chunks of the next exchange, up to its `[DONE]`. */
  async exchange(): Promise<Chunk[]> {
    const end = (): number => this.frames.indexOf("data: [DONE]\n\n", this.#read);
    await until(
      () => end() !== -1,
      () => `[DONE]; the frames are:\n${this.frames.slice(this.#read).join("")}`,
    );
    const frames = this.frames.slice(this.#read, end());
    this.#read = end() + 1;
    return frames.map(chunkOf);
  }

  /** The frames that were not read yet. */
  get unread(): string[] {
    return this.frames.slice(this.#read);
  }

  /** Waits for frames outside an exchange and returns them. */
  async take(count: number): Promise<string[]> {
    await until(
      () => this.unread.length >= count,
      () => `${count} frames; there are:\n${this.unread.join("")}`,
    );
    const taken = this.frames.slice(this.#read, this.#read + count);
    this.#read += count;
    return taken;
  }

  close(): void {
    this.#socket.terminate();
  }
}

interface Sending {
  readonly chatId: string;
  readonly messages: readonly object[];
  readonly trigger: string;
}

/** A page's own transport over this connection, for the chat class of `ai`: one exchange for each message, up to its `[DONE]`. */
export class LiveSocketTransport {
  /** The messages that were sent, in order. */
  readonly sent: object[] = [];
  readonly #url: string;
  #live: Promise<Live> | undefined;

  constructor(url: string) {
    this.#url = url;
  }

  sendMessages = async ({ chatId, messages, trigger }: Sending): Promise<ReadableStream<never>> => {
    const live = await (this.#live ??= Live.open(this.#url));
    this.sent.push(messages);
    live.send({ type: "message", id: chatId, messages, trigger });
    return new ReadableStream({
      start: async (controller) => {
        for (const chunk of await live.exchange()) {
          controller.enqueue(chunk as never);
        }
        controller.close();
      },
    });
  };

  reconnectToStream = (): Promise<null> => Promise.resolve(null);

  async close(): Promise<void> {
    (await this.#live)?.close();
  }
}

export function chunkOf(frame: string): Chunk {
  const [, json] = /^data: (.*)\n\n$/s.exec(frame) ?? [];
  if (json === undefined) {
    throw new Error(`not a whole event: ${JSON.stringify(frame)}`);
  }
  return JSON.parse(json) as Chunk;
}
