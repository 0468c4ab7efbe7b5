// A thread for as long as its component is there: another id is another thread.
import { act, cleanup, fireEvent, render, screen } from "@testing-library/react";
import { type ReactNode, StrictMode } from "react";
import { afterEach, expect, it, vi } from "vitest";
import { until } from "../../../tests/until.ts";
import { Thread } from "../src/index.ts";

const server: typeof fetch = async (input) => {
  const path = String(input);
  if (path.includes("/stream")) {
    return new Response(null, { status: 204 });
  }
  const id = /\/api\/chat\/(\w+)$/.exec(path)?.[1] ?? "";
  const message = { id: `m-${id}`, role: "user", parts: [{ type: "text", text: `Said in ${id}` }] };
  return Response.json({ id, title: "", state: "done", messages: [message], openCalls: [], tools: [] });
};

afterEach(cleanup);
afterEach(() => void vi.restoreAllMocks());

function Chat({ id }: { id: string }): ReactNode {
  return <StrictMode><Thread threadId={id} fetch={server} storage={null} /></StrictMode>;
}

const sees = (text: string): Promise<void> => act(() => until(() => screen.queryByText(text) !== null, () => `"${text}"; the page is:\n${document.body.innerHTML}`));

function Signed({ token }: { token: string }): ReactNode {
  return <StrictMode><Thread threadId="one" fetch={guarded} storage={null} headers={{ authorization: token }} /></StrictMode>;
}

let valid = "";
const tokens: string[] = [];
const guarded: typeof fetch = async (input, init) => {
  const token = new Headers(init?.headers).get("authorization") ?? "";
  tokens.push(token);
  return token === valid ? server(input, init) : Response.json({ error: { message: "Expired." } }, { status: 401 });
};

it("a refreshed token is used by every request after it, and what was said stays", async () => {
  valid = "old";
  const { rerender } = render(<Signed token="old" />);
  await sees("Said in one");
  const box = screen.getByRole("textbox");
  fireEvent.change(box, { target: { value: "Not sent yet" } });
  valid = "new";
  rerender(<Signed token="new" />);
  tokens.length = 0;
  fireEvent.keyDown(box, { key: "Enter" });
  await sees("Not sent yet");
  await act(() => until(() => tokens.length > 0, "a request"));
  expect(new Set(tokens)).toEqual(new Set(["new"]));
  expect(screen.getByText("Said in one")).toBeTruthy();
});

it("a thread that was refused is opened again with the next token", async () => {
  valid = "new";
  const { rerender } = render(<Signed token="old" />);
  await sees("Expired.");
  rerender(<Signed token="new" />);
  await sees("Said in one");
});

it("a message that was refused is not taken from the screen by the next token", async () => {
  valid = "old";
  const { rerender } = render(<Signed token="old" />);
  await sees("Said in one");
  valid = "new";
  fireEvent.change(screen.getByRole("textbox"), { target: { value: "Too late" } });
  fireEvent.keyDown(screen.getByRole("textbox"), { key: "Enter" });
  await sees("Expired.");
  rerender(<Signed token="new" />);
  await act(() => new Promise((wake) => setTimeout(wake)));
  expect(screen.getByText("Too late")).toBeTruthy();
});

it("the developer is told once what it usually is when a server never answers, and not when it did", async () => {
  const told = vi.spyOn(console, "warn").mockImplementation(() => undefined);
  let isThere = false;
  const away: typeof fetch = (input, init) => (isThere ? server(input, init) : Promise.reject(new TypeError("Failed to fetch")));
  const chat = <StrictMode><Thread url="http://127.0.0.1:9" threadId="one" fetch={away} storage={null} backOff={() => 10} /></StrictMode>;
  const { unmount } = render(chat);
  await sees("Connection lost. Trying again.");
  expect(told.mock.calls).toEqual([[expect.stringContaining(`--allow-origin ${location.origin}`)]]);
  unmount();
  told.mockClear();
  isThere = true;
  render(chat);
  await sees("Said in one");
  isThere = false;
  fireEvent.change(screen.getByRole("textbox"), { target: { value: "Hello" } });
  fireEvent.keyDown(screen.getByRole("textbox"), { key: "Enter" });
  await sees("Connection lost. Trying again.");
  expect(told).not.toHaveBeenCalled();
});

it("a thread with another id is opened in the place of the one before it", async () => {
  const { rerender } = render(<Chat id="one" />);
  await sees("Said in one");
  rerender(<Chat id="two" />);
  await sees("Said in two");
  expect(screen.queryByText("Said in one")).toBeNull();
  rerender(<Chat id="one" />);
  await sees("Said in one");
});
