// What is written in the message box and not sent: there again after another chat was opened, and after a reload.
import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import type { FileUIPart } from "ai";
import { afterEach, expect, it, vi } from "vitest";
import { requirement } from "../../../tests/requirement.ts";
import { isAnotherReader } from "../src/chat/about.ts";
import { Composer } from "../src/chat/composer.tsx";
import type { Conversation } from "../src/chat/conversation.ts";
import { Drafts, NEW, readyFile } from "../src/chat/drafts.ts";

/** As long as any other wait: the machine may be busy. */
const SOON_MS = 20_000;

afterEach(() => {
  cleanup();
  sessionStorage.clear();
  vi.unstubAllGlobals();
});

function talkOf(state: Conversation["state"], more: Partial<Conversation> = {}): Conversation {
  return { state, needsAnswers: false, isLoaded: true, id: "t", send: vi.fn(), stop: vi.fn(), returned: undefined, host: { cards: [] }, ...more } as unknown as Conversation;
}

/** The box of a chat in a new life of the page: nothing is left but what the browser keeps. */
function open(chat: string, talk: Conversation = talkOf("Done"), drafts: Drafts = new Drafts(sessionStorage)): HTMLTextAreaElement {
  cleanup();
  render(<Composer talk={talk} drafts={drafts} place={chat} />);
  return screen.getByRole<HTMLTextAreaElement>("textbox", { name: "Message" });
}

const type = (text: string): void => void fireEvent.change(screen.getByRole("textbox", { name: "Message" }), { target: { value: text } });
const enter = (): void => void fireEvent.keyDown(screen.getByRole("textbox", { name: "Message" }), { key: "Enter" });
const file = (name: string): FileUIPart => ({ type: "file", url: `/api/files/blob_${name}`, mediaType: "text/plain", filename: name });

it("what was written in a chat is there again after another chat was opened, and after a reload", () => {
  requirement("page:drafts");
  const drafts = new Drafts(sessionStorage);
  open("a", talkOf("Done"), drafts);
  type("to be continued");
  expect(open("b", talkOf("Done"), drafts).value).toBe("");
  expect(open("a", talkOf("Done"), drafts).value).toBe("to be continued");
  expect(open("a").value, "after a reload").toBe("to be continued");
  const talk = talkOf("Done");
  open("a", talk);
  enter();
  expect(talk.send).toHaveBeenCalledWith("to be continued", []);
  expect(open("a").value).toBe("");
  expect(Object.keys(sessionStorage)).toEqual([]);
});

it("files that are uploaded stay with their message; one of another server does not", async () => {
  requirement("page:drafts");
  new Drafts(sessionStorage).change("a", () => ({ text: "these two", files: [file("one.txt"), { ...file("two.txt"), url: "https://elsewhere.example/two.txt" }].map(readyFile) }));
  const talk = talkOf("Done");
  open("a", talk);
  await screen.findByText("one.txt", undefined, { timeout: SOON_MS });
  expect(screen.queryByText("two.txt")).toBeNull();
  enter();
  expect(talk.send).toHaveBeenCalledWith("these two", [file("one.txt")]);
});

it("an upload goes on while another chat is looked at, and ends when its file is removed", async () => {
  requirement("page:drafts");
  const requests: HangingRequest[] = [];
  class HangingRequest extends EventTarget {
    readonly upload = new EventTarget();
    readonly open = vi.fn();
    readonly setRequestHeader = vi.fn();
    readonly send = vi.fn(() => void requests.push(this));
    readonly abort = vi.fn();
    onload = (): void => undefined;
    readonly status = 201;
    readonly responseText = JSON.stringify({ name: "notes.txt", type: "text/plain", size: 1, ref: "blob_1" });
  }
  vi.stubGlobal("XMLHttpRequest", HangingRequest);
  const drafts = new Drafts(sessionStorage);
  const choose = (name: string): void => void fireEvent.change(document.querySelector("input[type=file]") as Element, { target: { files: [new File(["x"], name)] } });
  open("a", talkOf("Done"), drafts);
  choose("notes.txt");
  await vi.waitFor(() => expect(requests).toHaveLength(1), SOON_MS);
  open("b", talkOf("Done"), drafts);
  requests[0]?.onload();
  await vi.waitFor(() => expect(drafts.get("a").files.map(({ state }) => state)).toEqual(["ready"]), SOON_MS);
  choose("film.txt");
  await vi.waitFor(() => expect(requests).toHaveLength(2), SOON_MS);
  fireEvent.click(await screen.findByRole("button", { name: "Remove film.txt" }, { timeout: SOON_MS }));
  expect(requests[1]?.abort).toHaveBeenCalledOnce();
  expect(drafts.get("b").files).toEqual([]);
});

it("a queued message is still queued after a reload; if the answer is over by then, it is in the box and not sent", () => {
  requirement("page:drafts");
  open("a", talkOf("Thinking"));
  type("next");
  enter();
  const talk = talkOf("Thinking");
  open("a", talk);
  expect(screen.getByText("Sent when this answer is complete")).toBeDefined();
  cleanup();
  const over = talkOf("Done");
  expect(open("a", over).value).toBe("next");
  expect(over.send).not.toHaveBeenCalled();
  expect(screen.queryByText("Sent when this answer is complete")).toBeNull();
});

it("a queued message whose answer is over while somebody looks is sent, also after a reload", () => {
  requirement("page:drafts");
  open("a", talkOf("Thinking"));
  type("next");
  enter();
  cleanup();
  const drafts = new Drafts(sessionStorage);
  const send = vi.fn();
  const box = (talk: Conversation): React.JSX.Element => <Composer talk={talk} drafts={drafts} place="a" />;
  // until the server has said how the chat stands, nothing is known of its answer
  const { rerender } = render(box(talkOf("New", { isLoaded: false, send })));
  rerender(box(talkOf("Thinking", { send })));
  expect(send).not.toHaveBeenCalled();
  rerender(box(talkOf("Done", { send })));
  expect(send.mock.calls).toEqual([["next", []]]);
});

it("a message that comes back joins what was written meanwhile", () => {
  requirement("page:drafts");
  const returned = { id: "m1", role: "user" as const, parts: [{ type: "text" as const, text: "first" }] };
  new Drafts(sessionStorage).change("a", () => ({ text: "second" }));
  expect(open("a", talkOf("Done", { returned })).value).toBe("first\n\nsecond");
});

it("what was written belongs to one person: another sign-in removes it", () => {
  requirement("page:drafts");
  isAnotherReader("ada");
  const drafts = new Drafts(sessionStorage);
  drafts.change("a", () => ({ text: "private" }));
  drafts.keepUnsent("a", { id: "m1", parts: [], at: 1 });
  expect(isAnotherReader("ada")).toBe(false);
  expect(open("a").value).toBe("private");
  expect(isAnotherReader("grace")).toBe(true);
  expect(open("a").value).toBe("");
  expect(new Drafts(sessionStorage).unsent("a")).toBeUndefined();
});

it.each(["{", "[]", '{"text": 1}', '{"text": "x", "files": [{"url": "javascript:alert(1)"}]}'])("what cannot be a draft is left alone: %s", (kept) => {
  new Drafts(sessionStorage).change(NEW, () => ({ text: "x" }));
  const key = Object.keys(sessionStorage).find((each) => each.endsWith(NEW)) ?? "";
  sessionStorage.setItem(key, kept);
  expect(new Drafts(sessionStorage).get(NEW).files).toEqual([]);
});

it("without a storage, drafts live as long as the page", () => {
  const drafts = new Drafts(undefined);
  drafts.change(NEW, () => ({ text: "x" }));
  drafts.move(NEW, "a");
  expect([drafts.get(NEW).text, drafts.get("a").text]).toEqual(["", "x"]);
});
