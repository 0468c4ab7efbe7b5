// @vitest-environment node
// The Client against a real server: handlers run once, answers arrive, and the way out is clean.
import { expect, it } from "vitest";
import { z } from "zod";
import { requirement } from "../../../tests/requirement.ts";
import { fresh, scene } from "../../../tests/server-fixture.ts";
import { until } from "../../../tests/until.ts";
import { Client, Superseded } from "../src/index.ts";
import { Gate, programs, TEXT, withEcho } from "./program.ts";

const here = scene();
const program = programs(here);

it("a tool is offered with its time, its title and the wish to ask first", async () => {
  const { clientID } = await program((client) => {
    client.tool("run_tests", { description: "Run the tests.", parameters: TEXT, timeoutSec: 300, needsApproval: true, title: "Run the tests" }, () => "passed");
    client.tool("count", { description: "Count.", parameters: {} }, () => 3);
  });
  const { tools } = (await (await fetch(`${here.server.url}/api/tools`)).json()) as { tools: { name: string; title: string | null; approval: boolean; executor: string }[] };
  const own = Object.fromEntries(tools.filter(({ name }) => name.startsWith(`client_${clientID}_`)).map(({ name, title, approval, executor }) => [name.slice(clientID.length + 8), { title, approval, executor }]));
  expect(own).toEqual({
    run_tests: { title: "Run the tests", approval: true, executor: "client" },
    count: { title: null, approval: false, executor: "client" },
  });
});

it("an error that no retry would fix is reported at once", () => {
  const sound = { url: "http://127.0.0.1:1", clientID: "notes" };
  for (const [options, words] of [
    [{ clientID: "a.b" }, "not a valid client id"],
    [{ url: "127.0.0.1:8787" }, "not the address of a server"],
    [{ url: "ftp://here" }, "not the address of a server"],
    [{ token: "line\n" }, "token"],
    [{ token: "grün" }, "token"],
    [{ graceSec: 86_401 }, "graceSec"],
    [{ graceSec: Number.NaN }, "graceSec"],
    [{ atOnce: 0 }, "atOnce"],
    [{ finishWithinSec: -1 }, "finishWithinSec"],
  ] as const) {
    expect(() => new Client({ ...sound, ...options }), words).toThrow(words);
  }
  const client = new Client(sound);
  withEcho(client);
  expect(() => withEcho(client)).toThrow("already");
  expect(() => client.tool("a b", { description: "", parameters: {} }, () => 1)).toThrow("not a valid name");
  expect(() => client.tool("slow", { description: "", parameters: {}, timeoutSec: 0 }, () => 1)).toThrow("timeoutSec");
  expect(() => client.tool("dull", { description: "", parameters: {}, title: " " }, () => 1)).toThrow("must not be empty");
  const old = { "~standard": { validate: (value: unknown) => ({ value }) } };
  expect(() => client.tool("old", { description: "", parameters: old }, () => 1)).toThrow("With zod, use version 4.2 or newer");
});

it("results of sync and async handlers arrive, and whatever a handler throws is a failure", async () => {
  requirement("node:answers");
  const { call } = await program((client) => {
    withEcho(client);
    client.tool("later", { description: "Say it later.", parameters: TEXT }, async ({ text }) => ({ said: text }));
    client.tool("nothing", { description: "Say nothing.", parameters: TEXT }, () => undefined);
    client.tool("broken", { description: "Break.", parameters: TEXT }, ({ text }) => {
      throw new Error(`no ${String(text)}`);
    });
    client.tool("verbose", { description: "Break with many words.", parameters: TEXT }, () => {
      throw new Error("ü".repeat(10_000));
    });
    client.tool("cyclic", { description: "Return what JSON cannot hold.", parameters: TEXT }, () => 1n);
  });
  const output = async (tool: string): Promise<unknown> => {
    const { body } = await call(tool, { text: "hey" });
    return body.status === "success" ? body.output : body.error;
  };
  expect(await output("echo")).toBe("hey");
  expect(await output("later")).toEqual({ said: "hey" });
  expect(await output("nothing")).toBe(null);
  expect(await output("broken")).toBe("no hey");
  expect(await output("verbose")).toBe("ü".repeat(2_048));
  expect(await output("cyclic")).toContain("BigInt");
});

it("a schema of zod types the input, gives its defaults, and refuses what JSON Schema cannot say", async () => {
  const parameters = z.object({ name: z.string().refine((name) => !name.includes(".."), "must not leave the folder"), lines: z.number().int().default(10) });
  const { call, clientID } = await program((client) => {
    client.tool("read", { description: "Read a note.", parameters }, ({ name, lines }) => `${name.toUpperCase()}:${lines.toFixed(0)}`);
  });
  expect((await call("read", { name: "a" })).body.output).toBe("A:10");
  expect((await call("read", { name: "../a" })).body.error).toBe("name: must not leave the folder");
  const [tool] = (await (await fetch(`${here.server.url}/client-tools/tools/${clientID}`)).json()) as [{ parameters: { required: string[] } }];
  expect(tool.parameters.required).toEqual(["name"]);
});

it("a result that the server does not take is told as a failure", async () => {
  requirement("node:answers");
  const { call } = await program((client) => {
    client.tool("huge", { description: "Return a lot.", parameters: {} }, () => "x".repeat(1_048_560));
  });
  expect((await call("huge", {})).body.error).toContain("The result could not be sent.");
});

it("a handler may say what people are shown, and what the wire does not take costs no result", async () => {
  requirement("node:answers");
  const { call } = await program((client) => {
    client.tool("read", { description: "Read.", parameters: TEXT }, ({ text }, { show, threadId }) => {
      show({ title: "Reading", metadata: { thread: threadId } });
      return text;
    });
    client.tool("adorned", { description: "Read with too much beside it.", parameters: TEXT }, ({ text }, { show }) => {
      show({ title: "long ".repeat(100), metadata: { a: "x".repeat(20_000) } });
      return text;
    });
  });
  expect((await call("read", { text: "a" }, { sessionID: "s9" })).body).toEqual({ status: "success", title: "Reading", output: "a", metadata: { thread: "s9" } });
  const { title, ...rest } = (await call("adorned", { text: "a" })).body;
  expect(rest).toEqual({ status: "success", output: "a" });
  expect(title?.length).toBe(256);
});

it("only so many handlers run at a time", async () => {
  let now = 0;
  let most = 0;
  const { call } = await program(
    (client) =>
      client.tool("slow", { description: "Be slow.", parameters: TEXT }, async ({ text }) => {
        now += 1;
        most = Math.max(most, now);
        await new Promise((wake) => setTimeout(wake, 20));
        now -= 1;
        return text;
      }),
    { atOnce: 3 },
  );
  const answers = await Promise.all(Array.from({ length: 12 }, (_, index) => call("slow", { text: String(index) })));
  expect(answers.map(({ body }) => body.output)).toEqual(Array.from({ length: 12 }, (_, index) => String(index)));
  expect(most).toBe(3);
});

it("people who watch see the progress of a call, and progress renews its deadline", async () => {
  requirement("node:progress");
  const { call, clientID } = await program((client) => {
    client.tool("work", { description: "Work.", parameters: {}, timeoutSec: 4 }, async (_, { progress }) => {
      for (let part = 1; part <= 6; part += 1) {
        // of what is said in quick succession the last is told
        Array.from({ length: 100 }, (_, index) => progress(`part ${part}, ${index}`));
        // together longer than its time, and each of them far shorter: the machine may be busy
        await new Promise((wake) => setTimeout(wake, 1_000));
      }
      return "done";
    });
  });
  const feed = await fetch(`${here.server.url}/api/events?after=0`);
  const reader = feed.body?.pipeThrough(new TextDecoderStream()).getReader();
  let told = "";
  expect((await call("work", {})).body).toMatchObject({ status: "success", output: "done" });
  await until(async () => (told += (await reader?.read())?.value ?? "").includes(`client_${clientID}_work`) && told.includes("part 4"), "a late progress");
  await reader?.cancel();
  expect(told.match(/"type":"call-progressed"/g)?.length).toBeLessThan(14);
});

it("a handler is told by its signal when nobody waits for its call any more", async () => {
  requirement("node:progress");
  const ended: string[] = [];
  const { call } = await program((client) => {
    client.tool("forever", { description: "Never end.", parameters: TEXT }, ({ text }, { signal }) => new Promise((_, fail) => signal.addEventListener("abort", () => (ended.push(String(text)), fail(new Error("aborted"))))));
  });
  expect((await call("forever", { text: "a" }, { timeout: 300 })).status).toBe(504);
  await until(() => ended.includes("a"), "the abort");
});

it("the signal of a call that went well does not fire", async () => {
  requirement("node:progress");
  const signals: AbortSignal[] = [];
  const { call } = await program((client) => {
    client.tool("quick", { description: "Be quick.", parameters: {} }, (_, { signal }) => signals.push(signal));
  });
  expect((await call("quick", {})).body.output).toBe(1);
  expect((await call("quick", {})).body.output).toBe(2);
  expect(signals.map(({ aborted }) => aborted)).toEqual([false, false]);
});

it("a stopped client finishes its work and withdraws its tools, and can run again", async () => {
  requirement("node:leaves");
  const begun = new Gate();
  const goOn = new Gate();
  const { client, call, running, tools } = await program((client) => {
    withEcho(client);
    client.tool("slow", { description: "Be slow.", parameters: TEXT }, async ({ text }) => {
      begun.open();
      await goOn.passed;
      return text;
    });
  });
  const answer = call("slow", { text: "a" });
  await begun.passed;
  client.stop();
  goOn.open();
  expect((await answer).body.output).toBe("a");
  await running;
  expect(await tools()).toEqual([]);
  const stop = new AbortController();
  const again = client.run({ signal: stop.signal });
  await client.connected();
  expect((await call("echo", { text: "b" })).body.output).toBe("b");
  stop.abort();
  await again;
  expect(await tools()).toEqual([]);
});

it("what is not finished in time is answered as stopped", async () => {
  requirement("node:leaves");
  const begun = new Gate();
  const { client, call, running } = await program(
    (client) =>
      client.tool("forever", { description: "Never end.", parameters: TEXT }, async () => {
        begun.open();
        await new Promise(() => undefined);
      }),
    { finishWithinSec: 0.1 },
  );
  const answer = call("forever", { text: "a" });
  await begun.passed;
  client.stop();
  expect((await answer).body.error).toBe("The client program was stopped before the call was finished.");
  await running;
});

it("of two programs with one name the older one ends, and keeps its hands off the tools of the newer", async () => {
  const older = await program(withEcho);
  const newer = await program(withEcho, { clientID: older.clientID });
  await expect(older.running).rejects.toThrow(Superseded);
  expect((await newer.call("echo", { text: "here" })).body.output).toBe("here");
});

it("tools that a program of this name left behind are withdrawn, and those that somebody unregistered are offered again", async () => {
  const clientID = fresh("desk");
  await here.post("/client-tools/register", { clientID, tools: [{ id: "stale", description: "", parameters: {} }] });
  const { call, tools, client } = await program(withEcho, { clientID });
  expect((await tools()).map(({ id }) => id)).toEqual([`client_${clientID}_echo`]);
  await fetch(`${here.server.url}/client-tools/unregister`, { method: "DELETE", headers: { "content-type": "application/json" }, body: JSON.stringify({ clientID }) });
  await until(async () => (await tools()).length === 1, "the tools, again");
  expect((await call("echo", { text: "still here" })).body.output).toBe("still here");
  expect(client.isConnected).toBe(true);
});
