// A client that runs in the test's own process, next to a real server.
import { afterEach } from "vitest";
import type { Scene } from "../../../tests/server-fixture.ts";
import { fresh } from "../../../tests/server-fixture.ts";
import { Client, type ClientOptions } from "../src/index.ts";

export interface Executed {
  readonly status: number;
  readonly body: { readonly status?: string; readonly output?: unknown; readonly error?: unknown; readonly title?: string; readonly metadata?: unknown };
}

export interface Program {
  readonly client: Client;
  readonly clientID: string;
  /** Stopped by the test, or at its end. */
  readonly running: Promise<void>;
  readonly call: (tool: string, input: object, more?: object) => Promise<Executed>;
  readonly tools: () => Promise<readonly { readonly id: string }[]>;
}

/** Call it once at the top of a test file. Programs are stopped when their test is done. */
export function programs(scene: Scene): (declare: (client: Client) => void, options?: Partial<ClientOptions>) => Promise<Program> {
  const open: { client: Client; running: Promise<void> }[] = [];
  afterEach(async () => {
    open.forEach(({ client }) => client.stop());
    await Promise.all(open.splice(0).map(({ running }) => running.catch(() => undefined)));
  });
  return async (declare, options = {}) => {
    const clientID = options.clientID ?? fresh("desk");
    const client = new Client({ url: scene.server.url, graceSec: 30, ...options, clientID });
    declare(client);
    const running = client.run();
    open.push({ client, running });
    await Promise.race([client.connected(), running]);
    return {
      client,
      clientID,
      running,
      call: async (tool, input, more = {}) => (await scene.post("/client-tools/execute", { toolID: `client_${clientID}_${tool}`, input, ...more })) as Executed,
      tools: async () => (await fetch(`${scene.server.url}/client-tools/tools/${clientID}`)).json() as Promise<{ id: string }[]>,
    };
  };
}

/** A promise that another function resolves. */
export class Gate {
  open: () => void = () => undefined;
  readonly passed = new Promise<void>((wake) => (this.open = wake));
}

export const TEXT = { type: "object", properties: { text: { type: "string" } }, required: ["text"] } as const;

export function withEcho(client: Client): void {
  client.tool("echo", { description: "Say it again.", parameters: TEXT }, ({ text }) => text);
}
