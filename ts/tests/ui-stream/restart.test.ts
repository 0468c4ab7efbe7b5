// The server goes away and comes back: what it kept is enough. One test after the other: they share the server.
import { expect, it } from "vitest";
import { type Client, clients, type Page, type ToolCall } from "../clients/index.ts";
import { linesOf } from "../message.ts";
import { requirement } from "../requirement.ts";
import { ends, fresh, scene } from "../server-fixture.ts";
import { until } from "../until.ts";

const here = scene();

const openUrl = (call: ToolCall, page: Page): void => {
  if (call.toolName === "open_url") {
    page.bring(call, "opened");
  }
};

it("calls and approvals that were open before a restart are answered after it, in every client", async () => {
  requirement("ai-sdk:restart");
  const url = fresh("page");
  const path = fresh("file");
  const opened = clients.map((client) => here.open(client));
  const asked = clients.map((client) => here.open(client));
  opened.forEach((page, index) => page.say(`open ${url}-${index}`));
  asked.forEach((page, index) => page.say(`delete ${path}-${index}`));
  await Promise.all(opened.map((page) => page.sees("is to run")));
  await Promise.all(asked.map((page) => page.sees("may it run?")));
  await Promise.all([...opened, ...asked].map((page) => page.rests()));

  await here.server.end("SIGKILL");
  await here.server.start();

  opened.forEach((page) => page.answer("open_url", "after the restart"));
  asked.forEach((page) => page.decide("delete_file", true));
  await Promise.all(
    opened.map((page, index) =>
      ends(page, {
        seen: [
          `user: open ${url}-${index}`,
          "assistant: I will open it.",
          `assistant: open_url {"url":"${url}-${index}"} = "after the restart"`,
          'assistant: open_url gave "after the restart".',
        ],
        posts: 2,
      }),
    ),
  );
  await Promise.all(asked.map((page) => page.sees("delete_file gave")));
  asked.forEach((_, index) => expect(here.server.executions("delete_file", `${path}-${index}`)).toBe(1));
});

it.for(["SIGTERM", "SIGKILL"] as const)(
  "an answer that %s cut in the middle is whole after a resume",
  async (signal) => {
    requirement("ai-sdk:restart");
    const newest = clients.filter((client) => client.resumesFromEmptyOnly !== true);
    const travellers = newest.map((client) => begin(client));
    await Promise.all(
      travellers.map(async ({ page, subject }) => {
        here.server.openGate(subject, "text");
        here.server.openGate(subject, "tool");
        await page.sees("And");
      }),
    );
    await here.server.end(signal);
    await Promise.all(
      travellers.map(({ page }) => until(() => page.error !== undefined, "the client noticing")),
    );
    await here.server.start();
    travellers.forEach(({ page, subject }) => {
      here.server.openGate(subject, "end");
      page.resume();
    });
    for (const { page, subject } of travellers) {
      const whole = [
        `user: journey ${subject}`,
        "assistant: First the server. ",
        `assistant: slow {"subject":"${subject}"} = {"waited":"${subject}"}`,
        `assistant: open_url {"url":"${subject}"} = "opened"`,
        `assistant: And slow gave {"waited": "${subject}"}. open_url gave "opened".`,
      ];
      await page.sees("And slow gave");
      await page.quiet();
      // who came back before the unfinished step was begun anew has seen its beginning; later nobody is shown it
      expect(page.seen().filter((line) => line !== "assistant: And ")).toEqual(whole);
      expect(linesOf(await here.kept(page.chatId))).toEqual(whole);
      expect(page.error).toBeUndefined();
      expect(page.wire.posts.length).toBe(2);
      expect(page.wire.faults).toEqual([]);
      expect(here.server.executions("slow", subject)).toBe(1);
      expect(page.toolCalls.filter((call) => call.toolName === "open_url").length).toBe(1);
    }
  },
);

function begin(client: Client): { page: Page; subject: string } {
  const page = here.open(client, { onToolCall: openUrl });
  const subject = fresh("trip");
  page.say(`journey ${subject}`);
  return { page, subject };
}
