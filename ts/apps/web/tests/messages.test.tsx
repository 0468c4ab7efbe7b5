// What is said, as it is shown: Markdown, times, titles, words, and what the page keeps.
import { shareIn } from "@farhand/react";
import { act, cleanup, render } from "@testing-library/react";
import { afterEach, expect, it, vi } from "vitest";
import { isAnotherReader, logoOf } from "../src/chat/about.ts";
import { titleWith } from "../src/chat/attention.ts";
import { withOlder } from "../src/chat/lists.ts";
import Rendered, { addressOf, sectionsOf } from "../src/chat/markdown.tsx";
import { secondsOf } from "../src/chat/message.tsx";
import { isQuestion } from "../src/chat/question.ts";
import { answerIn, tokenIn } from "../src/chat/signed-out.tsx";
import { ENGLISH, fill, wordsOf } from "../src/chat/words.ts";
import { SignIn } from "../src/server.ts";

afterEach(() => (cleanup(), vi.restoreAllMocks()));

const FILE = `blob_${"0".repeat(32)}`;

function shown(text: string): HTMLElement {
  return render(<Rendered text={text} />).container;
}

it("a link shows its host, unless the text has it as a word", () => {
  const { container } = render(<Rendered text={"[nasa.com](https://a.co) [see a.co/path](https://a.co/path)"} />);
  expect(container.textContent).toBe("nasa.com a.co see a.co/path");
});

it("Markdown of GitHub's flavour is shown: tables, tasks, code, emphasis", () => {
  const page = shown("# Title\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n- [x] done\n- [ ] open\n\n~~no~~ **yes** `code`");
  expect(page.querySelector("h1")?.textContent).toBe("Title");
  expect([...page.querySelectorAll("td")].map((each) => each.textContent)).toEqual(["1", "2"]);
  expect([...page.querySelectorAll<HTMLInputElement>("input[type=checkbox]")].map(({ checked, disabled }) => [checked, disabled])).toEqual([[true, true], [false, true]]);
  expect([page.querySelector("del"), page.querySelector("strong"), page.querySelector("code")].map((each) => each?.textContent)).toEqual(["no", "yes", "code"]);
});

it("what is nested deeper than anybody reads is shown as it was written", async () => {
  expect(shown(`${"> ".repeat(20)}deep`).querySelectorAll("blockquote")).toHaveLength(20);
  for (const text of [`${"> ".repeat(200)}deep`, `${"- ".repeat(200)}deep`]) {
    const page = await act(async () => shown(`Before.\n\n${text}\n\nAfter.`));
    await vi.waitFor(() => expect(page.querySelector("pre")?.textContent).toContain(text), 20_000);
    expect(page.querySelector("blockquote, li")).toBeNull();
    expect([...page.querySelectorAll("p")].map(({ textContent }) => textContent)).toContain("After.");
  }
});

it("HTML of a model stays text", () => {
  const page = shown('<img src=x onerror="alert(1)">\n\n<b>bold</b> and <script>alert(1)</script>');
  expect(page.querySelector("img, b, script")).toBeNull();
  expect(page.textContent).toContain("<b>bold</b>");
});

it("links say where they lead, open on their own, and lead to pages alone", () => {
  const page = shown("[here](https://example.org/a) https://example.com/b [bad](javascript:alert(1)) [mail](mailto:a@b.c)");
  const links = [...page.querySelectorAll("a")];
  expect(links.map((each) => [each.textContent, each.rel, each.target])).toEqual([
    ["here example.org", "noopener noreferrer", "_blank"],
    ["https://example.com/b", "noopener noreferrer", "_blank"],
  ]);
  expect(page.textContent).toContain("bad");
});

it("pictures come from files of this server; any other is a link to it", () => {
  const page = shown(`![own](/api/files/${FILE}) ![mounted](/agent/api/files/${FILE}) ![ref](${FILE}) ![far](https://example.org/x.png) [![in](https://example.org/y.png)](https://example.org)`);
  expect([...page.querySelectorAll("img")].map((each) => [each.alt, each.getAttribute("src")])).toEqual(["own", "mounted", "ref"].map((name) => [name, `/api/files/${FILE}`]));
  expect([...page.querySelectorAll("a")].map((each) => each.textContent)).toEqual(["far example.org", "in example.org"]);
  expect([addressOf("//example.org/x"), addressOf("data:text/html,x"), addressOf("HTTPS://example.org")]).toEqual(["", "", "HTTPS://example.org"]);
});

it("a text is cut only where nothing before can change what stands behind", () => {
  expect(sectionsOf("one\n\ntwo")).toEqual(["one\n", "two"]);
  for (const whole of ["- a\n\n- b", "```\nx\n\ny\n```", "~~~\n```\n\nx", "1. a\n\n   b", "> a\n\n> b", "[a]\n\n[a]: https://example.org"]) {
    expect(sectionsOf(whole), whole).toEqual([whole]);
  }
  const text = "a\n\nb\n\n```\nc\n\nd\n```\n\ne";
  expect(sectionsOf(text).join("\n")).toBe(text);
});

it("how long a thought took, and how far a tool is", () => {
  expect([400, 4_200, 75_000].map(secondsOf)).toEqual(["1 s", "4 s", "1 min 15 s"]);
  expect(["40 % done", "3 of 12 pages", "7/7", "120%", "almost", "3 of 0"].map(shareIn)).toEqual([0.4, 0.25, 1, 1, undefined, undefined]);
});

it("the title counts what is asked, and names the chat", () => {
  expect([titleWith(0, "", "farhand"), titleWith(2, "Street lamp", "Acme")]).toEqual(["farhand", "(2) Street lamp · Acme"]);
});

it("only what a person has to answer is a question", () => {
  const call = (phase: string, executor: string): Parameters<typeof isQuestion>[0] => ({ phase, executor });
  expect([call("asking", "server"), call("asking", "client"), call("ready", "frontend")].map(isQuestion)).toEqual([true, true, true]);
  // a browser that has taken a call runs it: nobody is asked
  expect([call("ready", "server"), call("ready", "client"), call("taken", "client"), call("taken", "frontend")].map(isQuestion)).toEqual([false, false, false, false]);
});

it("older chats follow the newer ones, each once", () => {
  const row = (id: string, title = id): Parameters<typeof withOlder>[0][number] => ({ id, title, state: "done", updatedAt: "", openCalls: 0 });
  expect(withOlder([row("a", "new"), row("b")], [row("a", "old"), row("c")]).map(({ title }) => title)).toEqual(["new", "b", "c"]);
});

it("words are replaced one by one, and only those that the page has", () => {
  const words = wordsOf({ newChat: "Neuer Chat", inbox: 3, constructor: "x" });
  expect([words.newChat, words.inbox, Object.keys(words).length]).toEqual(["Neuer Chat", "Inbox", Object.keys(ENGLISH).length]);
  expect(fill("{count} von {total}", { count: 2 })).toBe("2 von {total}");
});

it("a logo is a path of this server or an address", () => {
  expect(["/logo", "https://example.org/a.svg", "//example.org/a", "javascript:x", null].map((logo) => logoOf({ logo }))).toEqual(["/logo", "https://example.org/a.svg", undefined, undefined, undefined]);
});

it("a token is taken with or without the address around it, and an answer is shown in a few words", () => {
  expect(["abc", " abc ", "http://127.0.0.1:8787/?token=abc", "http://127.0.0.1/?token=abc#/inbox"].map(tokenIn)).toEqual(["abc", "abc", "abc", "abc"]);
  expect(['{"output":"blue"}', '{"output":{"name":"a.png"}}', '{"output":{"x":1}}', '{"errorText":"skipped by the user"}', "{"].map(answerIn)).toEqual(["blue", "a.png", '{"x":1}', "skipped by the user", "{"]);
});

it("what was kept for one person is gone when another one is signed in", () => {
  sessionStorage.clear();
  sessionStorage.setItem("farhand:draft: call_1 text", '"hunter2"');
  sessionStorage.setItem("farhand:answer:call_2", "{}");
  sessionStorage.setItem("of-the-host", "stays");
  expect(["", "ann", "ann"].map(isAnotherReader)).toEqual([false, false, false]);
  expect(sessionStorage.length).toBe(4);
  expect(isAnotherReader("bob")).toBe(true);
  expect([sessionStorage.getItem("farhand:draft: call_1 text"), sessionStorage.getItem("farhand:answer:call_2"), sessionStorage.getItem("of-the-host")]).toEqual([null, null, "stays"]);
  expect(isAnotherReader("bob")).toBe(false);
  sessionStorage.clear();
});

it("the page is signed out by a 401 and in again by the next answer", async () => {
  const asked = (how: string): Response => Response.json({ error: { hint: "the token in the address" } }, { status: 401, headers: { "www-authenticate": how } });
  const answers = [asked('Bearer realm="farhand development token"'), Response.json({}, { status: 503 }), Response.json({}), asked("Bearer")];
  vi.spyOn(globalThis, "fetch").mockImplementation(async () => answers.shift() ?? Response.error());
  const signIn = new SignIn();
  const heard = vi.fn();
  signIn.subscribe(heard);
  const states: boolean[] = [];
  for (let turn = 0; turn < 3; turn += 1) {
    await signIn.fetch("/api/about");
    states.push(signIn.isOut);
  }
  expect([states, heard.mock.calls.length, signIn.takesToken]).toEqual([[true, true, false], 2, true]);
  // a host with a sign-in of its own: whatever its words are, the page has no field for it
  await signIn.fetch("/api/about");
  expect([signIn.isOut, signIn.takesToken]).toEqual([true, false]);
});
