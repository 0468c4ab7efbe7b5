// Which refused answers are listed above the chat.
import type { Delivery } from "@farhand/client";
import { cleanup, render, screen } from "@testing-library/react";
import { afterEach, expect, it } from "vitest";
import { KeptAnswers } from "../src/chat/signed-out.tsx";
import { type Site, SiteProvider } from "../src/chat/site.ts";

afterEach(cleanup);

function listed(statuses: Readonly<Record<string, number>>): (string | null)[] {
  const deliveries = new Map(Object.entries(statuses).map(([id, status]): [string, Delivery] => [id, { state: "refused", status, reason: "No." }]));
  const kept = Object.keys(statuses).map((id) => ({ id, path: "/api/tools/ack", body: JSON.stringify({ output: id }) }));
  const hands = { kept, deliveries, running: new Set<string>(), subscribe: () => () => undefined };
  render(<SiteProvider value={{ hands } as unknown as Site}><KeptAnswers /></SiteProvider>);
  return screen.queryAllByRole("listitem").map(({ firstElementChild }) => firstElementChild?.textContent ?? null);
}

it("lists the answers that the server may accept later; others are changed on their card", () => {
  expect(listed({ "signed out": 401, "does not fit": 400, "too many": 429, "too large": 413 })).toEqual(["Your answer: signed out", "Your answer: too many"]);
  cleanup();
  expect(listed({ "does not fit": 400 })).toEqual([]);
  expect(screen.queryByText("Answers not delivered")).toBeNull();
});
