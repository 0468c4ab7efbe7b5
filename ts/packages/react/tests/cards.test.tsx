// The cards in a page, answered as a person does, against the demo on a real server.
import { fireEvent } from "@testing-library/react";
import { expect, it } from "vitest";
import { fresh } from "../../../tests/server-fixture.ts";
import { demo } from "./demo.ts";
import { openPage, type Page } from "./page.tsx";

const address = demo();
const page = (options: Parameters<typeof openPage>[1] = {}): Page => openPage({ url: address(), threadId: fresh("chat"), storage: null }, options);

it("a question is answered with yes, once, by the keyboard too", async () => {
  const here = page();
  here.say("Ask me to confirm something");
  await here.sees("Waiting for 1 answer.");
  const yes = here.button("Yes");
  expect(document.activeElement).toBe(here.all("[data-kind=confirm] h2")[0]);
  expect(here.all("[aria-live=polite]")[0]?.textContent).not.toBe("");
  await here.presses("Yes");
  fireEvent.click(yes);
  expect(here.host().state.deliveries.size).toBe(1);
  await here.sees(/yes/);
  expect(here.all("[data-state=done]").length).toBe(1);
});

it("a text is sent when there is one, and can be skipped", async () => {
  const here = page();
  here.say("Ask me a question");
  await here.sees("Send answer");
  expect(here.button("Send answer").disabled).toBe(true);
  here.type(/./, "Ada");
  expect(here.button("Send answer").disabled).toBe(false);
  fireEvent.submit(here.all("form")[0] as Element);
  await here.sees("Nice to meet you, Ada.");
  await here.rests();
  here.say("Ask me a question");
  await here.sees("Waiting for 1 answer.");
  here.press("Skip");
  await here.sees("skipped by the user");
});

it("one of several options is chosen", async () => {
  const here = page();
  here.say("Let me choose my lunch");
  await here.sees("Choose one");
  const radios = here.all("input[type=radio]");
  expect(radios.length).toBeGreaterThan(1);
  expect(here.button("Send answer").disabled).toBe(true);
  fireEvent.click(radios[1] as Element);
  const chosen = radios[1]?.closest("label")?.textContent ?? "";
  here.press("Send answer");
  await here.sees(new RegExp(`${chosen}.*${chosen}`, "s"));
});

it("two questions of one turn are both asked, and answered in any order", async () => {
  const here = page();
  here.say("Ask me two things at once");
  await here.sees("Waiting for 2 answers.");
  here.type(/colour/, "#ff0000");
  fireEvent.click(here.all("[data-kind=color] .fh-main")[0] as Element);
  here.type(/call you/, "Ada");
  fireEvent.submit(here.all("form")[0] as Element);
  await here.sees("Thank you, Ada.");
});

it("a call behind an approval is denied with a reason", async () => {
  const here = page();
  here.say("Delete the file old-draft.txt");
  await here.sees("Delete old-draft.txt?");
  expect(here.text()).toContain("Runs on the server once you allow it");
  expect(here.all("td")[0]?.textContent).toBe("old-draft.txt");
  here.press("Deny");
  here.type(/Reason/, "Wrong file");
  here.press("Deny");
  await here.sees("Denied: “Wrong file”");
  expect(here.all("[data-state=denied]").length).toBe(1);
});

it("a call is allowed with changed input, and always in this chat", async () => {
  const here = page();
  here.say("Delete the file old-draft.txt");
  await here.sees("Delete old-draft.txt?");
  here.press(/Edit/);
  here.type("Path", "notes.md");
  await here.presses("Allow once");
  await here.sees("notes.md is gone.");
  await here.rests();
  here.say("Delete the file old-draft.txt");
  await here.sees("Waiting for 1 answer.");
  await here.presses("Always in this chat");
  await here.sees("Every later call of delete_file in this chat will run without asking you");
  await here.presses("Allow always in this chat");
  await here.sees("old-draft.txt is gone.");
  await here.rests();
  // of a file that is gone, and without being asked
  here.say("Delete the file old-draft.txt");
  await here.sees("I continued without it");
});

it("a browser that cannot tell where it is says so, and takes a place instead", async () => {
  const here = page();
  Object.defineProperty(navigator, "geolocation", { value: undefined, configurable: true });
  here.say("Where am I?");
  await here.sees("Share where you are?");
  await here.presses("Share once");
  await here.sees("could not tell where it is");
  here.press("Type a place");
  here.type("Place", "Oslo");
  here.press("Send answer");
  await here.sees(/Oslo.*Oslo/s);
});

it("a position that is found after somebody chose to type a place is not shared", async () => {
  const here = page();
  let found: PositionCallback | undefined;
  const getCurrentPosition = (then: PositionCallback): void => {
    found = then;
  };
  Object.defineProperty(navigator, "geolocation", { value: { getCurrentPosition }, configurable: true });
  here.say("Where am I?");
  await here.sees("Share where you are?");
  await here.presses("Share once");
  await here.sees("Finding");
  here.press("Type a place");
  found?.({ coords: { latitude: 59.9, longitude: 10.7, accuracy: 5 } } as GeolocationPosition);
  here.type("Place", "Oslo");
  here.press("Send answer");
  await here.sees(/Oslo.*Oslo/s);
});

it("a refusal to share is told as declined", async () => {
  const here = page();
  here.say("Where am I?");
  await here.sees("Share where you are?");
  here.press("No");
  await here.sees("declined by the user");
});

it("a page opens from a press, beside the chat, and its button stays", async () => {
  const opened: string[] = [];
  const here = page({ openPage: (url) => (opened.push(url.href), "view-1") });
  here.say("Open https://example.org/report");
  await here.sees("Open example.org");
  expect(opened).toEqual([]);
  here.press("Open");
  await here.sees("The page is open beside us: https://example.org/report (view view-1).");
  expect(opened).toEqual(["https://example.org/report"]);
  here.press("Open again: example.org");
  expect(opened.length).toBe(2);
});

it("a call whose time is over says how long the assistant waited", async () => {
  const here = page();
  here.say("Open https://example.org quickly");
  await here.sees(/Timed out: “.*”No answer within \d+ s/);
  expect(here.button("Ask me again").disabled).toBe(false);
  expect(here.button("Open: example.org").disabled).toBe(false);
});
