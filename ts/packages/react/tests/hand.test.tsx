// Cards over `connect()`: an inbox beside a chat that is not ours.
import { connect, type Hand } from "@farhand/client";
import { act, cleanup, fireEvent, render } from "@testing-library/react";
import type { ReactNode } from "react";
import { afterEach, beforeEach, expect, it } from "vitest";
import { fresh, scene } from "../../../tests/server-fixture.ts";
import { until } from "../../../tests/until.ts";
import { CardList, useHand } from "../src/index.ts";
import { pressesAre } from "./trust.ts";

const here = scene();
let hand: Hand | undefined;

pressesAre("a person's");
beforeEach(() => Object.defineProperty(navigator, "locks", { value: undefined, configurable: true }));
afterEach(() => (cleanup(), hand?.close()));

function Inbox({ of }: { of: Hand }): ReactNode {
  return <CardList host={useHand(of)} />;
}

it("calls of a connected page are cards, which answer them and are gone with them", async () => {
  const thread = fresh("thread");
  hand = connect({ url: here.server.url, thread, storage: null });
  const { container } = render(<Inbox of={hand} />);
  const sees = (text: string): Promise<void> => act(() => until(() => container.textContent?.includes(text) === true, () => `"${text}"; the page is:\n${container.innerHTML}`));
  const answer = here.post("/client-tools/execute", { toolID: "open_url", input: { url: "page" }, sessionID: thread });
  await sees("Waiting for 1 answer.");
  await sees("Open a page beside the chat.");
  const field = container.querySelector("textarea") ?? container.querySelector("input");
  fireEvent.change(field as Element, { target: { value: '{"url": "page", "viewKey": "card"}' } });
  const button = [...container.querySelectorAll("button")].find((each) => each.textContent === "Send answer");
  fireEvent.click(button as Element);
  expect((await answer).body).toMatchObject({ status: "success", output: { viewKey: "card" } });
  await act(() => until(() => container.querySelectorAll(".fh-card").length === 0, () => container.innerHTML));
});

it("an approval is a card with the input that was asked for", async () => {
  const thread = fresh("thread");
  hand = connect({ url: here.server.url, thread, storage: null });
  const { container } = render(<Inbox of={hand} />);
  void here.post("/client-tools/execute", { toolID: "delete_file", input: { path: "notes.txt" }, sessionID: thread }).catch(() => undefined);
  await act(() => until(() => container.textContent?.includes("notes.txt") === true, () => container.innerHTML));
  const names = [...container.querySelectorAll("button")].map((each) => each.textContent);
  expect(names).toContain("Allow once");
});
