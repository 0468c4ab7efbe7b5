import { it } from "vitest";
import { allClients } from "../clients/index.ts";
import { requirement } from "../requirement.ts";
import { ends, fresh, scene } from "../server-fixture.ts";
import { expectTranscript } from "../transcript.ts";

const { open } = scene();

it.concurrent.for(allClients)("$name shows plain text after one post", async (client) => {
  requirement("ai-sdk:text");
  const page = open(client);
  page.say("hello Ada");
  await ends(page, {
    seen: ["user: hello Ada", "assistant: Hello Ada, this is your message number 1."],
    posts: 1,
  });
  expectTranscript("text", { client, page, subject: "Ada" });
});

it.concurrent.for(allClients)("$name continues in the same chat turn by turn", async (client) => {
  requirement("ai-sdk:text");
  const page = open(client);
  page.say("hello Ada");
  await page.sees("message number 1");
  await page.rests();
  page.say("hello Bob");
  await ends(page, {
    seen: [
      "user: hello Ada",
      "assistant: Hello Ada, this is your message number 1.",
      "user: hello Bob",
      "assistant: Hello Bob, this is your message number 2.",
    ],
    posts: 2,
  });
  expectTranscript("turns", { client, page, subject: "Ada" });
});

it.concurrent.for(allClients)("$name shows the model's thoughts apart from its answer", async (client) => {
  requirement("ai-sdk:text");
  const page = open(client);
  const subject = fresh("thing");
  page.say(`think ${subject}`);
  await ends(page, {
    seen: [`user: think ${subject}`, "assistant: (Let me see.)", `assistant: I thought about ${subject}.`],
    posts: 1,
  });
  expectTranscript("reasoning", { client, page, subject });
});
