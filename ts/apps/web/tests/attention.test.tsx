// What is said to somebody who does not look at the page: of questions that are new, and of no others.
import type { OpenCall } from "@farhand/client";
import { cleanup, renderHook } from "@testing-library/react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { useAttention } from "../src/chat/attention.ts";

const call = (callId: string): OpenCall => ({ callId, threadId: "t", title: "Lamp", tool: "ask", input: {}, phase: "ready", executor: "frontend", deadline: null, card: null, openedAt: "2026-11-01T08:00:00.000Z" });
let told: string[] = [];

beforeEach(() => {
  told = [];
  class Told {
    static readonly permission = "granted";
    constructor(_: string, { tag = "" }: NotificationOptions) {
      told.push(tag);
    }
    readonly close = (): void => undefined;
  }
  vi.stubGlobal("Notification", Told);
  vi.spyOn(document, "visibilityState", "get").mockReturnValue("hidden");
  localStorage.setItem("farhand:notify", "on");
});

afterEach(() => {
  cleanup();
  localStorage.clear();
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

it("questions that were open before the browser loaded the page in the background are no news; later ones are", () => {
  const { rerender } = renderHook(({ inbox }: { inbox: readonly OpenCall[] | undefined }) => useAttention(inbox, "", { name: "farhand" }), { initialProps: { inbox: undefined as readonly OpenCall[] | undefined } });
  rerender({ inbox: [call("old")] });
  expect(told).toEqual([]);
  expect(document.title).toBe("(1) farhand");
  rerender({ inbox: [call("old"), call("new")] });
  expect(told).toEqual(["new"]);
});

it("the icon of the tab is the agent's logo, if it has one", () => {
  document.head.innerHTML = '<link rel="icon" type="image/svg+xml" href="./icon.svg">';
  const link = (): (string | null)[] => ["href", "type"].map((name) => document.querySelector("link")?.getAttribute(name) ?? null);
  const { rerender } = renderHook(({ logo }: { logo: string | undefined }) => useAttention([], "", { name: "Lamps", logo }), { initialProps: { logo: "/logo" as string | undefined } });
  expect(link()).toEqual(["/logo", null]);
  rerender({ logo: undefined });
  expect(link()).toEqual([expect.not.stringMatching("/logo"), "image/svg+xml"]);
});
