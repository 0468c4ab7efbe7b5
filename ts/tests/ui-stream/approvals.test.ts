import { expect, it } from "vitest";
import { clients } from "../clients/index.ts";
import { requirement } from "../requirement.ts";
import { ends, fresh, scene } from "../server-fixture.ts";
import { expectTranscript } from "../transcript.ts";

const here = scene();

it.concurrent.for(clients)("$name runs a server tool once after an approval", async (client) => {
  requirement("ui-stream:approval");
  const page = here.open(client);
  const path = fresh("file");
  page.say(`delete ${path}`);
  await page.sees(`delete_file {"path":"${path}"} may it run?`);
  await page.rests();
  expect(here.server.executions("delete_file", path)).toBe(0);
  page.decide("delete_file", true);
  await ends(page, {
    seen: [
      `user: delete ${path}`,
      `assistant: delete_file {"path":"${path}"} = {"deleted":"${path}"}`,
      `assistant: delete_file gave {"deleted": "${path}"}.`,
    ],
    posts: 2,
  });
  expect(here.server.executions("delete_file", path)).toBe(1);
  expectTranscript("approve", { client, page, subject: path });
});

it.concurrent.for(clients)(
  "$name never runs a server tool after a no, and the model is told why",
  async (client) => {
    requirement("ui-stream:approval");
    const page = here.open(client);
    const path = fresh("file");
    page.say(`delete ${path}`);
    await page.sees("may it run?");
    await page.rests();
    page.decide("delete_file", false, { reason: "I still need it" });
    await ends(page, {
      seen: [
        `user: delete ${path}`,
        `assistant: delete_file {"path":"${path}"} denied`,
        "assistant: delete_file gave nothing: denied, denied: I still need it.",
      ],
      posts: 2,
    });
    expect(here.server.executions("delete_file", path)).toBe(0);
    expectTranscript("deny", { client, page, subject: path });
  },
);

it.concurrent.for(clients)(
  "$name takes a yes that is pressed while the response is still open",
  async (client) => {
    requirement("ui-stream:approval");
    const page = here.open(client);
    const path = fresh("file");
    page.say(`delete ${path}`);
    await page.sees("may it run?");
    page.decide("delete_file", true);
    await page.sees("delete_file gave");
    await page.quiet();
    expect(page.wire.posts.length).toBe(2);
    expect(here.server.executions("delete_file", path)).toBe(1);
  },
);

it.concurrent.for(clients)(
  "$name is asked twice in sequence, each time for the next tool",
  async (client) => {
    const page = here.open(client);
    const path = fresh("file");
    page.say(`sequence ${path}`);
    await page.sees(`{"path":"${path}/1"} may it run?`);
    await page.rests();
    page.decide("delete_file", true);
    await page.sees(`{"path":"${path}/2"} may it run?`);
    await page.rests();
    expect(here.server.executions("delete_file", path)).toBe(1);
    page.decide("delete_file", true);
    await ends(page, {
      seen: [
        `user: sequence ${path}`,
        `assistant: delete_file {"path":"${path}/1"} = {"deleted":"${path}/1"}`,
        `assistant: delete_file {"path":"${path}/2"} = {"deleted":"${path}/2"}`,
        `assistant: delete_file gave {"deleted": "${path}/1"}. delete_file gave {"deleted": "${path}/2"}.`,
      ],
      posts: 3,
    });
    expect(here.server.executions("delete_file", path)).toBe(2);
    expectTranscript("approvals-in-sequence", { client, page, subject: path });
  },
);

it.concurrent.for(clients)(
  "$name is asked for two tools in one step and denies one of them",
  async (client) => {
    const page = here.open(client);
    const path = fresh("file");
    page.say(`pair ${path}`);
    await page.sees(`{"path":"${path}/2"} may it run?`);
    await page.rests();
    page.decide("delete_file", false, { nth: 0 });
    await page.sees("must not run");
    await page.rests();
    expect(page.wire.posts.length).toBe(1);
    page.decide("delete_file", true);
    await ends(page, {
      seen: [
        `user: pair ${path}`,
        `assistant: delete_file {"path":"${path}/1"} denied`,
        `assistant: delete_file {"path":"${path}/2"} = {"deleted":"${path}/2"}`,
        `assistant: delete_file gave nothing: denied, denied. delete_file gave {"deleted": "${path}/2"}.`,
      ],
      posts: 2,
    });
    expect(here.server.executions("delete_file", `${path}/1`)).toBe(0);
    expect(here.server.executions("delete_file", `${path}/2`)).toBe(1);
    expectTranscript("approvals-in-one-step", { client, page, subject: path });
  },
);

it.concurrent.for(clients)(
  "$name posts the approvals of a step one by one: each tool runs at once, the model goes on after the last",
  async (client) => {
    const page = here.open(client, { autoSend: "never" });
    const path = fresh("file");
    page.say(`pair ${path}`);
    await page.sees(`{"path":"${path}/2"} may it run?`);
    await page.rests();
    page.decide("delete_file", true, { nth: 1 });
    await page.sees("may run");
    page.post();
    await page.rests();
    expect(page.seen().some((line) => line.includes("gave"))).toBe(false);
    expect(here.server.executions("delete_file", path)).toBe(1);
    page.decide("delete_file", true);
    await page.sees(`${path}/1"} may run`);
    page.post();
    await ends(page, {
      seen: [
        `user: pair ${path}`,
        `assistant: delete_file {"path":"${path}/1"} = {"deleted":"${path}/1"}`,
        `assistant: delete_file {"path":"${path}/2"} = {"deleted":"${path}/2"}`,
        `assistant: delete_file gave {"deleted": "${path}/1"}. delete_file gave {"deleted": "${path}/2"}.`,
      ],
      posts: 3,
    });
    expect(here.server.executions("delete_file", path)).toBe(2);
    expectTranscript("approvals-one-by-one", { client, page, subject: path });
  },
);

it.concurrent.for(clients)(
  "$name answers an approval and a frontend tool of the same step together",
  async (client) => {
    const page = here.open(client, { autoSend: "joint" });
    const subject = fresh("thing");
    page.say(`delete-and-open ${subject}`);
    await page.sees(`open_url {"url":"${subject}"} is to run`);
    await page.rests();
    page.answer("open_url", "opened");
    await page.rests();
    expect(page.wire.posts.length).toBe(1);
    page.decide("delete_file", true);
    await ends(page, {
      seen: [
        `user: delete-and-open ${subject}`,
        `assistant: delete_file {"path":"${subject}"} = {"deleted":"${subject}"}`,
        `assistant: open_url {"url":"${subject}"} = "opened"`,
        `assistant: delete_file gave {"deleted": "${subject}"}. open_url gave "opened".`,
      ],
      posts: 2,
    });
    expect(here.server.executions("delete_file", subject)).toBe(1);
    expectTranscript("approval-and-frontend-call", { client, page, subject });
  },
);
