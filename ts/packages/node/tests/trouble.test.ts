// @vitest-environment node
// The Client when the connection breaks: it comes back, registers again, and no call is lost or run twice.
import { expect, it } from "vitest";
import { requirement } from "../../../tests/requirement.ts";
import { fresh, scene } from "../../../tests/server-fixture.ts";
import { Server } from "../../../tests/server.ts";
import { until } from "../../../tests/until.ts";
import { Client, Rejected } from "../src/index.ts";
import { Gate, programs, TEXT, withEcho } from "./program.ts";

const here = scene();
const program = programs(here);

it("a cut stream is opened again, and the handler that runs continues", async () => {
  requirement("node:reconnect");
  const plug = await here.plug();
  const runs: unknown[] = [];
  const begun = new Gate();
  const goOn = new Gate();
  const { client, call } = await program(
    (client) =>
      client.tool("slow", { description: "Be slow.", parameters: TEXT }, async ({ text }) => {
        runs.push(text);
        begun.open();
        await goOn.passed;
        return text;
      }),
    { url: plug.url },
  );
  const answer = call("slow", { text: "a" });
  await begun.passed;
  for (let cut = 0; cut < 3; cut += 1) {
    const before = plug.connections;
    plug.pull();
    // the loss itself may be over before anybody looks
    await until(() => plug.connections > before && client.isConnected, "another connection");
  }
  goOn.open();
  expect((await answer).body.output).toBe("a");
  expect(runs).toEqual(["a"]);
});

it("a result finds its server after a restart, and a client that is started first waits for its server", async () => {
  requirement("node:reconnect");
  const server = await Server.start();
  const clientID = fresh("desk");
  const begun = new Gate();
  const goOn = new Gate();
  const runs: unknown[] = [];
  const client = new Client({ url: server.url, clientID, graceSec: 60 });
  client.tool("slow", { description: "Be slow.", parameters: TEXT, timeoutSec: 120 }, async ({ text }) => {
    runs.push(text);
    begun.open();
    await goOn.passed;
    return text;
  });
  await server.end("SIGKILL");
  const running = client.run();
  await server.start();
  await client.connected();
  const execute = (): Promise<Response> =>
    fetch(`${server.url}/client-tools/execute`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ toolID: `client_${clientID}_slow`, input: { text: "a" }, requestID: "job-1" }),
    });
  const lost = execute().catch(() => "lost");
  await begun.passed;
  await server.end("SIGKILL");
  goOn.open();
  expect(await lost).toBe("lost");
  await server.start();
  await client.connected();
  let told: { status?: string; output?: unknown } = {};
  await until(async () => (told = (await (await execute()).json()) as typeof told).status === "success", () => JSON.stringify(told));
  expect(told.output).toBe("a");
  expect(runs).toEqual(["a"]);
  client.stop();
  await running;
  await server.close();
});

it("a handler whose call ended while the line was down stops when it reports", async () => {
  requirement("node:progress");
  const server = await Server.start();
  const clientID = fresh("desk");
  const begun = new Gate();
  const ended = new Gate();
  const client = new Client({ url: server.url, clientID, graceSec: 60 });
  client.tool("slow", { description: "Be slow.", parameters: TEXT, timeoutSec: 1 }, async (_, { signal, progress }) => {
    begun.open();
    signal.addEventListener("abort", ended.open);
    while (!signal.aborted) {
      progress("still at it");
      await new Promise((wake) => setTimeout(wake, 20));
    }
  });
  const running = client.run();
  await client.connected();
  const body = JSON.stringify({ toolID: `client_${clientID}_slow`, input: { text: "a" }, requestID: "job-1" });
  void fetch(`${server.url}/client-tools/execute`, { method: "POST", headers: { "content-type": "application/json" }, body }).catch(() => undefined);
  await begun.passed;
  await server.end("SIGKILL");
  await new Promise((wake) => setTimeout(wake, 1_500));
  await server.start();
  await ended.passed;
  client.stop();
  await running;
  await server.close();
});

it("a client ends though its server is gone", async () => {
  requirement("node:leaves");
  const server = await Server.start();
  const client = new Client({ url: server.url, clientID: fresh("desk"), finishWithinSec: 0 });
  withEcho(client);
  const running = client.run();
  await client.connected();
  await server.close();
  client.stop();
  await running;
  expect(client.isConnected).toBe(false);
}, 60_000);

it("who is not let in gets an error", async () => {
  const server = await Server.start({}, { asksForToken: true });
  const client = new Client({ url: server.url, clientID: fresh("desk"), token: "wrong-token" });
  withEcho(client);
  const fault: unknown = await client.run().catch((error: unknown) => error);
  expect(fault).toBeInstanceOf(Rejected);
  expect((fault as Rejected).status).toBe(401);
  await server.close();
});
