// A thread for as long as its component is there: another id is another thread.
import { act, cleanup, render, screen } from "@testing-library/react";
import { type ReactNode, StrictMode } from "react";
import { afterEach, expect, it } from "vitest";
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

function Chat({ id }: { id: string }): ReactNode {
  return <StrictMode><Thread threadId={id} fetch={server} storage={null} /></StrictMode>;
}

const sees = (text: string): Promise<void> => act(() => until(() => screen.queryByText(text) !== null, () => `"${text}"; the page is:\n${document.body.innerHTML}`));

it("a thread with another id is opened in the place of the one before it", async () => {
  const { rerender } = render(<Chat id="one" />);
  await sees("Said in one");
  rerender(<Chat id="two" />);
  await sees("Said in two");
  expect(screen.queryByText("Said in one")).toBeNull();
  rerender(<Chat id="one" />);
  await sees("Said in one");
});
