// The chat stream over one WebSocket for all threads of a page. It has no positions: a resumed answer is sent from its start.
import { type Chunk, isChunk } from "@farhand/protocol";
import { REFUSED } from "./http.ts";
import { randomId } from "./random-id.ts";
import { Cut, type Frame, type Frames, Refused, type Transport } from "./transport.ts";
import { SILENCE_MS } from "./wait.ts";

export interface SocketOptions {
  /** `wss://…/api/chat/ws`; by default, that of the page's own server. */
  readonly url?: string;
  readonly webSocket?: typeof WebSocket;
  /** A connection without data for this long counts as lost. */
  readonly silenceMs?: number;
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
  | { readonly type: "start" | "end" | "no-active" }
  | { readonly type: "chunk"; readonly chunk: Chunk }
  | { readonly type: "error"; readonly error: Cut | Refused };

async function* framesOf(exchange: Exchange, first?: ServerFrame): Frames {
  try {
    for (let frame = first ?? (await exchange.next()); frame.type !== "end"; frame = await exchange.next()) {
      if (frame.type === "error") {
        throw frame.error;
      }
      if (frame.type === "chunk") {
        yield { chunk: frame.chunk } satisfies Frame;
      }
    }
  } finally {
    exchange.close();
  }
}

/** One request, and the frames that arrived for it. */
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

/** Close codes after which the same request would be refused again, with the equivalent HTTP status. */
const STATUSES: Readonly<Record<number, number>> = { 1009: 413, 4401: 401, 4403: 403 };

/** Too many connections or frames. A close frame has no `Retry-After`, so this is the server's usual value. */
const TOO_MANY = 4429;
const TOO_MANY_RETRY_MS = 5_000;

/** The error for a closed connection. A browser hides the status of a refused handshake, so the server accepts it first and then closes. */
function closedWith({ code, reason }: CloseEvent): Cut | Refused {
  const status = STATUSES[code];
  if (status !== undefined) {
    return new Refused(status, reason || REFUSED);
  }
  return new Cut(code === TOO_MANY ? TOO_MANY_RETRY_MS : 0);
}

/** One ping may be lost or late, but not two. */
const PINGS_IN_A_SILENCE = 3;

/** The connection: opened on demand, shared by all exchanges. */
class Line {
  readonly #exchanges = new Map<string, Exchange>();
  #socket: Promise<WebSocket> | undefined;
  #heardAt = 0;

  constructor(private readonly options: SocketOptions) {}

  async request(frame: object, signal: AbortSignal): Promise<Exchange> {
    const requestId = randomId();
    const socket = await (this.#socket ??= this.#open());
    const leave = (): void => exchange.push({ type: "error", error: new Cut() });
    const exchange = new Exchange(() => {
      signal.removeEventListener("abort", leave);
      if (this.#exchanges.delete(requestId) && socket.readyState === 1) {
        // ends the request, never the run
        socket.send(JSON.stringify({ type: "abort", requestId }));
      }
    });
    if (this.#exchanges.size === 0) {
      // the connection was idle, so its silence was not checked
      this.#heardAt = Date.now();
    }
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
    const silence = this.options.silenceMs ?? SILENCE_MS;
    this.#heardAt = Date.now();
    return new Promise((opened, failed) => {
      const drop = (error: Cut | Refused): void => {
        clearInterval(watch);
        failed(error);
        if (isCurrent) {
          isCurrent = false;
          this.#socket = undefined;
          this.#exchanges.forEach((exchange) => exchange.push({ type: "error", error }));
          this.#exchanges.clear();
        }
        // on a dead connection, the close handshake would never complete
        socket.close();
      };
      let isCurrent = true;
      const lost = (): void => drop(new Cut());
      const watch = setInterval(() => this.#look(socket, silence, lost), silence / PINGS_IN_A_SILENCE);
      socket.addEventListener("message", ({ data }) => isCurrent && this.#received(String(data)));
      socket.addEventListener("open", () => opened(socket));
      socket.addEventListener("error", lost);
      socket.addEventListener("close", (event) => drop(closedWith(event)));
    });
  }

  /** A page cannot see WebSocket pings, so it sends its own while requests are open. */
  #look(socket: WebSocket, silence: number, drop: () => void): void {
    const isAwaited = this.#exchanges.size > 0 || socket.readyState === 0;
    if (isAwaited && Date.now() - this.#heardAt >= silence) {
      drop();
    } else if (isAwaited && socket.readyState === 1) {
      socket.send(JSON.stringify({ type: "ping" }));
    }
  }

  #received(text: string): void {
    this.#heardAt = Date.now();
    // frames of newer servers are ignored
    const told = JSON.parse(text) as { type: string; requestId?: string; chunk?: unknown; errorText?: string };
    const exchange = this.#exchanges.get(told.requestId ?? "");
    switch (told.type) {
      case "start":
      case "end":
      case "no-active":
        return exchange?.push({ type: told.type });
      case "error":
        return exchange?.push({ type: "error", error: new Refused(400, told.errorText ?? REFUSED) });
      default:
        return isChunk(told.chunk) ? exchange?.push({ type: "chunk", chunk: told.chunk }) : undefined;
    }
  }
}
