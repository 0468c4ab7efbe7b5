// The server's record of a chat, beside the stream: when it is asked for, and when it counts.
import type { FeedEvent, Thread } from "@farhand/client";
import { act, cleanup, renderHook } from "@testing-library/react";
import type { ReactNode } from "react";
import { afterEach, expect, it, vi } from "vitest";
import { type Chat, useRecord } from "../src/chat/record.ts";
import { type Site, SiteProvider } from "../src/chat/site.ts";
import { HTTP } from "../src/server.ts";

afterEach(() => (cleanup(), vi.restoreAllMocks()));

/** As long as any other wait: the machine may be busy. */
const SOON_MS = 20_000;
const WAITING: Thread = { id: "t1", title: "", state: "waiting", messages: [], openCalls: [] };

function mounted(): { readonly current: ReturnType<typeof useRecord> } {
  const site = { stops: { has: () => false }, onReceipt: () => () => {}, feed: { listen: () => () => {} } } as unknown as Site;
  const chat = { status: "ready", messages: [], setMessages: vi.fn(), resumeStream: vi.fn(), clearError: vi.fn() } as unknown as Chat;
  const posts = { begun: 0, open: 0 };
  const wrapper = ({ children }: { children: ReactNode }): ReactNode => <SiteProvider value={site}>{children}</SiteProvider>;
  return renderHook(() => useRecord("t1", chat, posts, false), { wrapper }).result;
}

it("a chat whose server is down says so and is asked for again by itself, until it is there", async () => {
  vi.useFakeTimers();
  const asked = vi.spyOn(HTTP, "fetch").mockRejectedValue(new TypeError("Failed to fetch"));
  const result = mounted();
  await act(async () => vi.advanceTimersByTimeAsync(10));
  expect(result.current.isAway).toBe(true);
  // one attempt is due, however often "Try again" was pressed
  for (let press = 0; press < 3; press += 1) {
    act(() => result.current.reload());
    await act(async () => vi.advanceTimersByTimeAsync(10));
  }
  expect(result.current.isAway).toBe(true);
  asked.mockReset().mockImplementation(async () => Response.json(WAITING));
  await act(async () => vi.advanceTimersByTimeAsync(60_000));
  expect([asked.mock.calls.length, result.current.isAway, result.current.record]).toEqual([1, false, WAITING]);
  vi.useRealTimers();
});

it("a server that accepts the request and does not answer is away after a few seconds; what it answers later counts", async () => {
  vi.useFakeTimers();
  const answers: ((response: Response) => void)[] = [];
  vi.spyOn(HTTP, "fetch").mockImplementation(() => new Promise((answer) => void answers.push(answer)));
  const result = mounted();
  await act(async () => vi.advanceTimersByTimeAsync(1_000));
  expect(result.current.isAway).toBe(false);
  await act(async () => vi.advanceTimersByTimeAsync(60_000));
  expect([answers.length, result.current.isAway]).toEqual([1, true]);
  await act(async () => answers[0]?.(Response.json(WAITING)));
  await act(async () => vi.advanceTimersByTimeAsync(1));
  expect([result.current.record, result.current.isAway]).toEqual([WAITING, false]);
  vi.useRealTimers();
});

it("a record is old only if a stream has ended since it was asked for, not because there is news", async () => {
  const answers: ((response: Response) => void)[] = [];
  vi.spyOn(HTTP, "fetch").mockImplementation(() => new Promise((answer) => void answers.push(answer)));
  const heard: ((event: FeedEvent) => void)[] = [];
  const feed = { listen: (listener: (event: FeedEvent) => void) => (heard.push(listener), () => {}) };
  const site = { stops: { has: () => false }, onReceipt: () => () => {}, feed } as unknown as Site;
  const chat = { status: "ready", messages: [], setMessages: vi.fn(), resumeStream: vi.fn(), clearError: vi.fn() } as unknown as Chat;
  const posts = { begun: 0, open: 0 };
  const wrapper = ({ children }: { children: ReactNode }): ReactNode => <SiteProvider value={site}>{children}</SiteProvider>;
  const { result } = renderHook(() => useRecord("t1", chat, posts, false), { wrapper });
  const answer = async (number: number): Promise<boolean> => {
    await vi.waitFor(() => expect(answers.length).toBeGreaterThan(number), SOON_MS);
    await act(async () => answers[number]?.(Response.json(WAITING)));
    await vi.waitFor(() => expect(result.current.record).toEqual(WAITING), SOON_MS);
    return result.current.isBehind;
  };

  await vi.waitFor(() => expect(answers).toHaveLength(1), SOON_MS);
  act(() => heard.forEach((tell) => tell({ type: "again" })));
  expect(await answer(0)).toBe(false);
  await vi.waitFor(() => expect(answers).toHaveLength(2), SOON_MS);
  act(() => result.current.ended());
  expect(result.current.isBehind).toBe(true);
  expect(await answer(1)).toBe(true);
  await answer(2);
  await vi.waitFor(() => expect(result.current.isBehind).toBe(false), SOON_MS);
});
