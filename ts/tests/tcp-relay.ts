// A plug in the line between a client and the server that a test can pull: a plain TCP relay.
import { once } from "node:events";
import { type AddressInfo, type Server, type Socket, connect, createServer } from "node:net";

export class Plug {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  /** How many pieces have come from the server. */
  pieces = 0;
  /** How many connections were made. */
  connections = 0;

  static async into(port: number): Promise<Plug> {
    const plug = new Plug(port);
    plug.#server.listen(0, "127.0.0.1");
    await once(plug.#server, "listening");
    return plug;
  }

  private constructor(port: number) {
    this.#server = createServer((client) => {
      this.connections += 1;
      const server = connect(port, "127.0.0.1");
      server.on("data", () => (this.pieces += 1));
      for (const [one, other] of [
        [client, server],
        [server, client],
      ] as const) {
        this.#sockets.add(one);
        one.on("error", () => other.destroy());
        one.on("close", () => {
          this.#sockets.delete(one);
          other.destroy();
        });
        one.pipe(other);
      }
    });
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Cuts every connection; new ones are let through again. */
  pull(): void {
    for (const socket of this.#sockets) {
      socket.resetAndDestroy();
    }
  }

  /** Every connection stays open and nothing comes through any more, as behind a proxy that lost its server. New ones work. */
  hush(): void {
    for (const socket of this.#sockets) {
      socket.unpipe();
      // what comes is swallowed
      socket.resume();
    }
  }

  async close(): Promise<void> {
    this.pull();
    this.#server.close();
    await once(this.#server, "close");
  }
}
