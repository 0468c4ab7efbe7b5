// What went over the wire between one client and the server: every request with every chunk of its response.
// The connections are real; this only looks on.
import { WebSocket } from "ws";
import { type Chunk, faultsOf } from "./chunks.ts";

export interface Posted {
  readonly id: string;
  readonly trigger?: string;
  readonly messageId?: string;
  readonly messages: readonly PostedMessage[];
}

export interface PostedMessage {
  readonly id: string;
  readonly role: string;
  readonly parts: readonly Record<string, unknown>[];
}

export class Exchange {
  readonly chunks: Chunk[] = [];
  status: number | undefined;
  /** How many `[DONE]` markers came. */
  dones = 0;
  /** `whole`: the body ended; `cut`: the connection broke; `left`: the client went away. */
  end: "whole" | "cut" | "left" | undefined;
  #rest = "";

  constructor(
    readonly kind: "post" | "resume",
    readonly body: Posted | undefined,
  ) {}

  /** Bytes of a response as they came, frames cut anywhere. */
  readText(text: string): void {
    const frames = (this.#rest + text).split("\n\n");
    this.#rest = frames.pop() ?? "";
    for (const frame of frames) {
      this.#readFrame(frame);
    }
  }

  #readFrame(frame: string): void {
    if (frame.startsWith(":")) {
      return;
    }
    if (frame === "data: [DONE]") {
      this.dones += 1;
      return;
    }
    this.chunks.push(JSON.parse(frame.replace(/^data: /, "")) as Chunk);
  }
}

export class Wire {
  readonly exchanges: Exchange[] = [];
  readonly #awaited = new Map<number, () => void>();
  #lastEvent = performance.now();
  /** Lines that are being opened: what is to be sent over them has not left yet. */
  #opening = 0;

  get posts(): Exchange[] {
    return this.exchanges.filter((exchange) => exchange.kind === "post");
  }

  /** Resolves in the very turn in which the client's nth post leaves: before anything can come back. */
  posted(nth: number): Promise<void> {
    return this.posts.length >= nth
      ? Promise.resolve()
      : new Promise((leaves) => this.#awaited.set(nth, leaves));
  }

  /** For how many milliseconds nothing has come or gone; 0 while a response is open, or a line is being opened. */
  get quietFor(): number {
    const busy = this.#opening > 0 || this.exchanges.some((exchange) => exchange.end === undefined);
    return busy || this.exchanges.length === 0 ? 0 : performance.now() - this.#lastEvent;
  }

  /** What is wrong with the responses that came whole. */
  get faults(): string[] {
    return this.exchanges.flatMap((exchange, index) => {
      if (exchange.end !== "whole" || exchange.status !== 200) {
        return [];
      }
      const faults = faultsOf(exchange.chunks);
      const dones = exchange.dones === 1 ? [] : [`[DONE] came ${exchange.dones} times`];
      return [...faults, ...dones].map((fault) => `response ${index + 1}: ${fault}`);
    });
  }

  /** Node's fetch, looked on at. */
  readonly fetch: typeof fetch = async (input, init) => {
    const post = init?.method === "POST";
    const body = post ? (JSON.parse(String(init.body)) as Posted) : undefined;
    const exchange = this.open(post ? "post" : "resume", body);
    const response = await fetch(input, init).catch((error: unknown) => {
      this.end(exchange, "cut");
      throw error;
    });
    exchange.status = response.status;
    if (response.body === null) {
      this.end(exchange, "whole");
      return response;
    }
    const { status, statusText, headers } = response;
    return new Response(this.#watched(exchange, response.body), { status, statusText, headers });
  };

  open(kind: "post" | "resume", body: Posted | undefined): Exchange {
    const exchange = new Exchange(kind, body);
    this.exchanges.push(exchange);
    this.#awaited.get(this.posts.length)?.();
    this.touch();
    return exchange;
  }

  end(exchange: Exchange, how: "whole" | "cut" | "left"): void {
    exchange.end ??= how;
    this.touch();
  }

  /** To be told when the line is open, or will never be. */
  opens(): () => void {
    this.#opening += 1;
    let isOpening = true;
    return () => {
      this.#opening -= isOpening ? 1 : 0;
      isOpening = false;
      this.touch();
    };
  }

  touch(): void {
    this.#lastEvent = performance.now();
  }

  #watched(exchange: Exchange, body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
    const reader = body.getReader();
    const decoder = new TextDecoder();
    return new ReadableStream({
      pull: async (controller) => {
        const read = await reader.read().catch((error: unknown) => {
          this.end(exchange, "cut");
          throw error;
        });
        if (read.done) {
          this.end(exchange, "whole");
          controller.close();
          return;
        }
        this.touch();
        if (exchange.status === 200) {
          exchange.readText(decoder.decode(read.value, { stream: true }));
        }
        controller.enqueue(read.value);
      },
      cancel: (reason) => {
        this.end(exchange, "left");
        return reader.cancel(reason);
      },
    });
  }
}

interface ClientFrame extends Posted {
  readonly type: "send" | "resume" | "abort";
  readonly requestId: string;
}

interface ServerFrame {
  readonly type: "start" | "chunk" | "end" | "error" | "no-active";
  readonly requestId: string;
  readonly chunk?: Chunk;
}

/** A WebSocket of the `ws` package, looked on at. */
export function socketOn(
  wire: Wire,
): new (address: string | URL, protocols?: string | string[]) => WebSocket {
  return class extends WebSocket {
    readonly #exchanges = new Map<string, Exchange>();

    constructor(address: string | URL, protocols?: string | string[]) {
      super(address, protocols);
      const opened = wire.opens();
      this.on("open", opened);
      this.on("close", opened);
      this.on("message", (text) => this.#received(JSON.parse(String(text)) as ServerFrame));
      this.on("close", () => this.#exchanges.forEach((exchange) => wire.end(exchange, "cut")));
      this.on("error", () => this.#exchanges.forEach((exchange) => wire.end(exchange, "cut")));
    }

    override send(text: string): void {
      const frame = JSON.parse(text) as ClientFrame;
      if (frame.type === "abort") {
        this.#end(frame.requestId, "left");
      } else {
        const kind = frame.type === "send" ? "post" : "resume";
        this.#exchanges.set(frame.requestId, wire.open(kind, frame));
      }
      super.send(text);
    }

    #received(frame: ServerFrame): void {
      wire.touch();
      const exchange = this.#exchanges.get(frame.requestId);
      if (frame.type === "chunk" && frame.chunk !== undefined) {
        exchange?.chunks.push(frame.chunk);
      }
      if (frame.type === "end" || frame.type === "error" || frame.type === "no-active") {
        this.#status(exchange, frame.type);
        this.#end(frame.requestId, "whole");
      }
    }

    #status(exchange: Exchange | undefined, type: "end" | "error" | "no-active"): void {
      if (exchange !== undefined) {
        exchange.status = { end: 200, error: 500, "no-active": 204 }[type];
        exchange.dones = 1;
      }
    }

    #end(requestId: string, how: "whole" | "left"): void {
      const exchange = this.#exchanges.get(requestId);
      if (exchange !== undefined) {
        wire.end(exchange, how);
      }
    }
  };
}
