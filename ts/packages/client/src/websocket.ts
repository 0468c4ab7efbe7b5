// The stream over one WebSocket for all threads of a page. It has no positions: a resumed answer comes whole.
import { type Chunk, isChunk } from "@farhand/protocol";
import { Cut, type Frame, type Frames, Refused, type Transport } from "./transport.ts";

export interface SocketOptions {
  /** `wss://…/api/chat/ws`; by default on the page's own server. */
  readonly url?: string;
  readonly webSocket?: typeof WebSocket;
}

export interface SocketTransport extends Transport {
  close(): void;
}

export function socketTransport(options: SocketOptions = {}): SocketTransport {
  const line = new Line(options);
  return {
    async *send({ wait: _, ...request }, signal) {
      yield* framesOf(await line.request({ type: "send", ...request, body: { wait: "hold" } }, signal));
    },
    async resume(threadId, _after, signal) {
      const exchange = await line.request({ type: "resume", id: threadId }, signal);
      const first = await exchange.next();
      return first.type === "no-active" ? undefined : framesOf(exchange, first);
    },
    close: () => line.close(),
  };
}

type ServerFrame =
  | { readonly type: "start" | "end" | "no-active" | "cut" }
  | { readonly type: "chunk"; readonly chunk: Chunk }
  | { readonly type: "error"; readonly errorText: string };

async function* framesOf(exchange: Exchange, first?: ServerFrame): Frames {
  try {
    for (let frame = first ?? (await exchange.next()); frame.type !== "end"; frame = await exchange.next()) {
      if (frame.type === "cut") {
        throw new Cut();
      }
      if (frame.type === "error") {
        throw new Refused(400, frame.errorText);
      }
      if (frame.type === "chunk") {
        yield { chunk: frame.chunk } satisfies Frame;
      }
    }
  } finally {
    exchange.close();
  }
}

/** One request and the frames that came for it. */
class Exchange {
  readonly #frames: ServerFrame[] = [];
  #wake: (() => void) | undefined;

  constructor(readonly close: () => void) {}

  push(frame: ServerFrame): void {
    this.#frames.push(frame);
    this.#wake?.();
  }

  async next(): Promise<ServerFrame> {
    for (;;) {
      const frame = this.#frames.shift();
      if (frame !== undefined) {
        return frame;
      }
      await new Promise<void>((wake) => (this.#wake = wake));
    }
  }
}

/** The connection: opened when it is needed, shared by all exchanges. */
class Line {
  readonly #exchanges = new Map<string, Exchange>();
  #socket: Promise<WebSocket> | undefined;

  constructor(private readonly options: SocketOptions) {}

  async request(frame: object, signal: AbortSignal): Promise<Exchange> {
    const requestId = crypto.randomUUID();
    const socket = await (this.#socket ??= this.#open());
    const leave = (): void => exchange.push({ type: "cut" });
    const exchange = new Exchange(() => {
      signal.removeEventListener("abort", leave);
      if (this.#exchanges.delete(requestId) && socket.readyState === 1) {
        // closes the request, never the run
        socket.send(JSON.stringify({ type: "abort", requestId }));
      }
    });
    this.#exchanges.set(requestId, exchange);
    signal.addEventListener("abort", leave);
    socket.send(JSON.stringify({ ...frame, requestId }));
    return exchange;
  }

  close(): void {
    void this.#socket?.then(
      (socket) => socket.close(),
      () => undefined,
    );
  }

  #open(): Promise<WebSocket> {
    const Socket = this.options.webSocket ?? WebSocket;
    const socket = new Socket(this.options.url ?? new URL("/api/chat/ws", location.href.replace(/^http/, "ws")).href);
    socket.addEventListener("message", ({ data }) => this.#received(String(data)));
    return new Promise((opened, failed) => {
      socket.addEventListener("open", () => opened(socket));
      socket.addEventListener("error", () => failed(new Cut()));
      socket.addEventListener("close", () => {
        this.#socket = undefined;
        this.#exchanges.forEach((exchange) => exchange.push({ type: "cut" }));
        failed(new Cut());
      });
    });
  }

  #received(text: string): void {
    // what a newer server says beside this is none of this page's business
    const told = JSON.parse(text) as { type: string; requestId?: string; chunk?: unknown; errorText?: string };
    const exchange = this.#exchanges.get(told.requestId ?? "");
    switch (told.type) {
      case "start":
      case "end":
      case "no-active":
        return exchange?.push({ type: told.type });
      case "error":
        return exchange?.push({ type: "error", errorText: told.errorText ?? "The server refused it." });
      default:
        return isChunk(told.chunk) ? exchange?.push({ type: "chunk", chunk: told.chunk }) : undefined;
    }
  }
}
