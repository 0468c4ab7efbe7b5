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
