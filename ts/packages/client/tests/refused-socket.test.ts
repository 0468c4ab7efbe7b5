// A page whose WebSocket the server closes with a reason: it is told, and does not knock again where that would not help.
import { describe, expect, it } from "vitest";
import { WebSocket as NodeSocket } from "ws";
import { fresh, type Scene, scene } from "../../../tests/server-fixture.ts";
import { until } from "../../../tests/until.ts";
import { type SocketTransport, socketTransport } from "../src/websocket.ts";
import { type Page, pages } from "./page.ts";

interface Knocking {
  readonly opened: number[];
  readonly transport: SocketTransport;
}

/** As a browser opens it: with the origin of its page. `opened` has the time of every attempt. */
function knocking({ server }: Scene, origin = server.url): Knocking {
  const opened: number[] = [];
  class FromPage extends NodeSocket {
    constructor(address: string) {
      super(address, { origin });
      opened.push(Date.now());
    }
  }
  const url = `${server.url.replace("http", "ws")}/api/chat/ws`;
  return { opened, transport: socketTransport({ url, webSocket: FromPage as unknown as typeof WebSocket }) };
}

/** Long enough for many attempts of a page that waits 50 ms between two. */
async function quiet(): Promise<void> {
  await new Promise((wake) => setTimeout(wake, 1_000));
}

async function isRefused({ thread, becomes }: Page, status: number, reason: RegExp): Promise<void> {
  await becomes(({ connection }) => connection.state === "refused", "a refusal");
  expect(thread.state.connection).toEqual({ state: "refused", status, reason: expect.stringMatching(reason) as string });
  expect(thread.state.run).toEqual({ state: "failed", error: expect.stringMatching(reason) as string });
}

describe("a server that asks for a token", () => {
  const here = scene({}, { asksForToken: true });
  const page = pages(here);

  it("tells a page without one, which does not try again", async () => {
    const { opened, transport } = knocking(here);
    const shown = page({ transport });
    shown.thread.send("hello");
    await isRefused(shown, 401, /credential/);
    await quiet();
    expect(opened.length).toBe(1);
    // a person who has signed in meanwhile tries by hand
    shown.thread.resume();
    await until(() => opened.length === 2, "another attempt");
    await isRefused(shown, 401, /credential/);
  });
});

describe("a server with limits", () => {
  const here = scene({ FARHAND_LIMITS__STREAMS_PER_PRINCIPAL: "1", FARHAND_LIMITS__SOCKET_FRAME: "2000" });
  const page = pages(here);

  it("tells a page of a foreign origin, which does not try again", async () => {
    const { opened, transport } = knocking(here, "https://elsewhere.example");
    const shown = page({ transport });
    shown.thread.send("hello");
    await isRefused(shown, 403, /elsewhere\.example/);
    await quiet();
    expect(opened.length).toBe(1);
  });

  it("tells a page whose message is too large, which does not post it again", async () => {
    const { opened, transport } = knocking(here);
    const shown = page({ transport });
    shown.thread.send("x".repeat(3_000));
    await isRefused(shown, 413, /2000 bytes/);
    await quiet();
    expect(opened.length).toBe(1);
  });

  it("is given time by a page that has too many connections, which then continues", async () => {
    const first = knocking(here);
    const name = fresh("ann");
    const other = page({ transport: first.transport });
    other.thread.send(`hello ${name}`);
    await other.sees("this is your message number 1.");
    const { opened, transport } = knocking(here);
    const shown = page({ transport });
    shown.thread.send(`hello ${name}`);
    await shown.becomes(({ connection }) => connection.state === "lost", "a pause");
    first.transport.close();
    await shown.sees("this is your message number");
    expect(opened.length).toBe(2);
    expect(opened[1]! - opened[0]!).toBeGreaterThanOrEqual(4_500);
    transport.close();
  });

  it("is given time by a page that resumes one stream too many over HTTP", async () => {
    const subject = fresh("fox");
    const first = page();
    first.thread.send(`story ${subject}`);
    await first.sees("Once upon a time");
    const second = page({ threadId: first.thread.id });
    await second.thread.open();
    await second.becomes(({ connection }) => connection.state === "lost", "a pause");
    here.server.openGate(subject, "text");
    await first.becomes(({ run }) => run.state === "done", "the end");
    await second.becomes(({ run, connection }) => run.state === "done" && connection.state === "closed", "the end");
    expect(second.requests.filter((each) => each.includes("/stream")).length).toBe(2);
  });
});
