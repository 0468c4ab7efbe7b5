// An AI SDK transport that survives lost connections: a post is repeated until the server has it, and a stream is continued where it was
// cut. Owns the connection and what a page shows of it; must not know the parts of messages.
import { type Connection, Cut, type Frames, httpOf, type HttpOptions, sseTransport, Timers, type Transport, backOff } from "@farhand/client";
import type { ChatTransport, UIMessage, UIMessageChunk } from "ai";

export interface LiveOptions extends HttpOptions {
  readonly backOff?: (attempt: number) => number;
}

/** The server does not know this position: the message has to be read again from its start, with `resumeStream`. */
export class Replay extends Error {
  override readonly name = "Replay";
}

/** One answer that is being read. `isDelivered`: the server has the message that it answers. */
interface Stream {
  readonly gone: AbortController;
  readonly signal: AbortSignal;
  isDelivered: boolean;
  isReleased: boolean;
}

type Chunks = ReadableStream<UIMessageChunk>;
type Opening = (signal: AbortSignal) => Promise<Frames | undefined>;

const START = "0.0";

/** Deltas are joined before they are stored, a little after they were sent. */
const JOURNALLED_MS = 200;

/** The connection works, but the server does not know the position yet. */
class NotYet extends Cut {}

export class LiveTransport<Message extends UIMessage = UIMessage> implements ChatTransport<Message> {
  /** The stream of `reconnectToStream` repeats the whole message. */
  readonly resumeStreamIsReplay = true;
  readonly #transport: Transport;
  readonly #backOff: (attempt: number) => number;
  readonly #listeners = new Set<() => void>();
  readonly #timers = new Timers();
  #connection: Connection = { state: "closed" };
  readonly #streams = new Set<Stream>();
  #wake: (() => void) | undefined;

  constructor(options: LiveOptions = {}) {
    this.#transport = sseTransport(httpOf(options));
    this.#backOff = options.backOff ?? backOff;
  }

  get connection(): Connection {
    return this.#connection;
  }

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  /** Makes the next attempt of every waiting request now. */
  retryNow(): void {
    this.#wake?.();
  }

  /** Stops reading once the server has the message. The run continues; `reconnectToStream` reads it again. */
  release(): void {
    for (const stream of this.#streams) {
      stream.isReleased = true;
      leaveIfReleased(stream);
    }
  }

  sendMessages: ChatTransport<Message>["sendMessages"] = async ({ chatId, messages, trigger, messageId, abortSignal }) => {
    // the server has the history, so it needs only the last message
    const last = messages.slice(-1) as unknown as Parameters<Transport["send"]>[0]["messages"];
    const request = { id: chatId, messages: last, trigger, ...(messageId === undefined ? {} : { messageId }) };
    const stream = this.#stream(abortSignal, { isDelivered: false });
    return this.#follow(chatId, async (signal) => this.#transport.send(request, signal), stream);
  };

  reconnectToStream: ChatTransport<Message>["reconnectToStream"] = async ({ chatId, abortSignal }) => {
    const stream = this.#stream(abortSignal, { isDelivered: true });
    let frames: Frames | undefined;
    try {
      frames = await this.#resumed(chatId, stream.signal);
    } finally {
      frames ?? this.#streams.delete(stream);
    }
    // the frames can be read once; if the connection breaks before the first one, all of them are requested again
    const opening: Opening = async (signal) => {
      const first = frames;
      frames = undefined;
      return first ?? this.#transport.resume(chatId, START, signal);
    };
    return frames === undefined ? null : this.#follow(chatId, opening, stream);
  };

  async #resumed(chatId: string, given: AbortSignal): Promise<Frames | undefined> {
    for (let attempt = 0; ; attempt += 1) {
      try {
        const frames = await this.#transport.resume(chatId, START, given);
        this.#connect({ state: frames === undefined ? "closed" : "open" });
        return frames;
      } catch (error) {
        await this.#afterCut(error, attempt, given);
      }
    }
  }

  #stream(given: AbortSignal | undefined, { isDelivered }: { isDelivered: boolean }): Stream {
    const gone = new AbortController();
    const signal = given === undefined ? gone.signal : AbortSignal.any([given, gone.signal]);
    const stream = { gone, signal, isDelivered, isReleased: false };
    this.#streams.add(stream);
    return stream;
  }

  /** One stream of chunks that continues across lost connections. */
  #follow(chatId: string, first: Opening, stream: Stream): Chunks {
    const chunks = this.#chunks(chatId, first, stream);
    return new ReadableStream<UIMessageChunk>({
      pull: async (controller) => {
        try {
          const { done, value } = await chunks.next();
          done === true ? controller.close() : controller.enqueue(value);
        } catch (error) {
          controller.error(error);
        }
      },
      cancel: () => stream.gone.abort(),
    });
  }

  async *#chunks(chatId: string, first: Opening, stream: Stream): AsyncGenerator<UIMessageChunk, void> {
    let position: string | undefined;
    let unknown: string | undefined;
    let opening = first;
    try {
      for (let attempt = 0; ; ) {
        try {
          for await (const frame of this.#read(opening, stream.signal)) {
            if (frame.chunk.type === "data-gap") {
              // the newest text may not be in the journal yet: the position may be known a moment later
              const isNew = unknown !== position;
              unknown = position;
              throw isNew ? new NotYet(JOURNALLED_MS) : new Replay("The answer has to be read again from its start.");
            }
            position = frame.position ?? position;
            attempt = 0;
            stream.isDelivered = true;
            leaveIfReleased(stream);
            yield frame.chunk as UIMessageChunk;
          }
          this.#connect({ state: "closed" });
          return;
        } catch (error) {
          await this.#afterCut(error, attempt++, stream.signal);
          // a post without a response is sent again; the server recognizes it by its message's id
          opening = position === undefined ? first : this.#rest(chatId, position);
        }
      }
    } finally {
      this.#streams.delete(stream);
    }
  }

  #rest(chatId: string, position: string): Opening {
    return (signal) => this.#transport.resume(chatId, position, signal);
  }

  async *#read(opening: Opening, signal: AbortSignal): Frames {
    const frames = await opening(signal);
    this.#connect({ state: "open" });
    yield* frames ?? [];
  }

  /** Waits until the next attempt is due. Rethrows anything but a lost connection, which another attempt would not fix. */
  async #afterCut(error: unknown, attempt: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted || !(error instanceof Cut)) {
      this.#connect({ state: "closed" });
      throw error;
    }
    const delay = error instanceof NotYet ? error.retryAfterMs : Math.max(this.#backOff(attempt), error.retryAfterMs);
    this.#connect({ state: "lost", retryAt: Date.now() + delay });
    await new Promise<void>((wake) => {
      this.#wake = wake;
      signal.addEventListener("abort", () => wake(), { once: true });
      this.#timers.set("again", delay, wake);
    });
    this.#timers.clear("again");
    this.#wake = undefined;
  }

  #connect(connection: Connection): void {
    this.#connection = connection;
    this.#listeners.forEach((listener) => listener());
  }
}

function leaveIfReleased({ gone, isDelivered, isReleased }: Stream): void {
  if (isDelivered && isReleased) {
    gone.abort();
  }
}
