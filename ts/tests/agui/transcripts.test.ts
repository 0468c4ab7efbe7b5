// What schema/transcripts/agui has written down, read by the published clients: none of them finds a fault in it.
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { HttpAgent } from "@ag-ui/client";
import { HttpAgent as HttpAgent0059 } from "ag-ui-client0059";
import { expect, it } from "vitest";
import { requirement } from "../requirement.ts";
import { type Agent, type Message, run } from "./client.ts";

const FOLDER = resolve(import.meta.dirname, "../../../schema/transcripts/agui");

interface Body {
  readonly messages: Message[];
  readonly resume?: unknown;
}

interface Exchange {
  readonly path: string;
  readonly body: Body;
  readonly status: number;
  readonly events: object[];
}

interface Line {
  readonly send?: { readonly path: string; readonly body: Body };
  readonly status?: number;
  readonly event?: object;
}

function exchangesIn(name: string): Exchange[] {
  const lines = readFileSync(join(FOLDER, name), "utf8").trim().split("\n").map((line) => JSON.parse(line) as Line);
  const starts = lines.flatMap((line, index) => (line.send === undefined ? [] : [index]));
  return starts.map((start, index) => {
    const [{ send }, { status }, ...rest] = lines.slice(start, starts[index + 1]) as [Line, Line, ...Line[]];
    return { ...send!, status: status!, events: rest.flatMap(({ event }) => (event === undefined ? [] : [event])) };
  });
}

const scenes = readdirSync(FOLDER).map((name) => ({ name }));

it.for(scenes)("$name is read without a fault, and gives the history that the next request sends", async ({ name }) => {
  requirement("agui:clients");
  const exchanges = exchangesIn(name).filter(({ status }) => status === 200);
  let told: Exchange | undefined;
  const fetch = (): Promise<Response> => {
    const frames = told!.events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");
    return Promise.resolve(new Response(frames, { headers: { "content-type": "text/event-stream" } }));
  };
  const open = (): Agent => {
    const config = { url: "http://127.0.0.1/ag-ui", threadId: "t1", fetch };
    return (name.includes("0-0-59") ? new HttpAgent0059(config) : new HttpAgent(config)) as unknown as Agent;
  };
  let agent = open();
  for (const exchange of exchanges) {
    const { path, body, events } = exchange;
    if (path.endsWith("/connect")) {
      agent = open();
    } else {
      const known = new Set(body.messages.map((message) => message.id));
      const shown = agent.messages.filter((message) => message.role !== "reasoning").map((message) => message.id);
      expect(shown.filter((id) => !known.has(id))).toEqual([]);
    }
    told = exchange;
    agent.setMessages(body.messages);
    const wanted = run(agent, body.resume === undefined ? {} : { resume: body.resume });
    if (agent.pendingInterrupts.length > 0 && body.resume === undefined) {
      // the clients themselves refuse what the server refuses
      await expect(wanted).rejects.toThrow("pending interrupt");
      continue;
    }
    const { types } = await wanted;
    const expected = events.map((event) => (event as { type: string }).type).filter((type) => !type.endsWith("_CONTENT"));
    expect(types).toEqual(expected);
  }
});
