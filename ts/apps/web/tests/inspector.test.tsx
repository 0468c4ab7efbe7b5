// The Inspector's logic: geometry, words, routes, replay; and that its parts say the same in words as in colours.
import type { InspectedRow, InspectedRun, InspectedRunRow } from "@farhand/protocol";
import { cleanup, render, screen } from "@testing-library/react";
import { afterEach, describe, expect, test } from "vitest";
import { Json } from "../src/inspector/elements.tsx";
import { bandsOf, barsOf, paceOf, rowsAt, spanOf, ticksOf } from "../src/inspector/chart.ts";
import { piecesOf, SHOWN_CHARS, writtenOf } from "../src/inspector/json.ts";
import { bodyOf, inputOf, messageOf, repeatWords, type RerunPlace } from "../src/inspector/rerun.ts";
import { hrefOf, routeOf } from "../src/inspector/route.ts";
import { nextOf } from "../src/inspector/tabs.tsx";
import { Waterfall } from "../src/inspector/waterfall.tsx";
import { agoOf, costOf, durationOf, extrasOf, figureOf, hasFailure, noteOf, tenthsOf, timesOf, tokensOf, toneOf } from "../src/inspector/words.ts";

afterEach(cleanup);

const MODEL: InspectedRow = { step: 1, start: 0, end: 1, segments: [{ kind: "model", start: 0, end: 1 }], outcome: "success" };
const PHOTO: InspectedRow = {
  step: 1, start: 1, end: 8, callId: "call_1", tool: "take_photo", executor: "frontend", card: "photo", outcome: "success",
  segments: [{ kind: "person", start: 1, end: 6 }, { kind: "client", start: 6, end: 8 }],
};
const OPEN: InspectedRow = { step: 1, start: 1, callId: "call_2", tool: "open_url", executor: "frontend", segments: [{ kind: "way", start: 1 }] };

const RUN: InspectedRunRow = {
  runId: "run_1", threadId: "t", title: "A lamp", state: "done", startedAt: "2026-01-01T00:00:00Z", endedAt: null, seconds: 22.41, steps: 3, calls: 6, waiting: 0, error: null,
};

describe("the waterfall", () => {
  test("bars lie where their time was, and what continues reaches to now", () => {
    expect(barsOf(PHOTO, 10, 10).map(({ left, width, isStriped }) => [left, width, isStriped])).toEqual([[10, 50, false], [60, 20, false]]);
    expect(barsOf(OPEN, 6, 10)).toMatchObject([{ left: 10, width: 50, isStriped: true }]);
  });

  test("a stretch that was lost is striped, too", () => {
    const lost = { ...OPEN, segments: [{ kind: "way", start: 1, end: 2, lost: true }] };
    expect(barsOf(lost, 6, 10)).toMatchObject([{ isStriped: true, width: 10 }]);
  });

  test.each([0.05, 0.4, 1, 3.2, 22.4, 61, 600, 7_200, 90_000, 259_200, 3_000_000])("the axis over %d seconds has a handful of round marks", (seconds) => {
    const span = spanOf(seconds);
    const ticks = ticksOf(span);
    expect(ticks.length).toBeGreaterThanOrEqual(2);
    expect(ticks.length).toBeLessThanOrEqual(8);
    expect(ticks.at(-1)).toBeLessThan(span);
    expect(ticks[0]).toBeGreaterThan(0);
  });

  test("every row says in words what it shows in colours", () => {
    const figures = { whole: 8_000, model: 1_000, person: 5_000, client: 2_000, way: 0, server: 0 };
    const shown: InspectedRun = { run: RUN, figures, rows: [MODEL, PHOTO, OPEN], now: 8, kept: true, parks: 0, model: "scripted", store: "memory" };
    render(<Waterfall shown={shown} rows={shown.rows} now={8} isLive chosen="call_1" />);
    const row = screen.getByRole("link", { name: /^take_photo\s?7\.00 s\s?, waiting for a person 5\.00 s, running in a client 2\.00 s, success$/ });
    expect(row.getAttribute("aria-current")).toBe("true");
    expect(row.getAttribute("href")).toBe("#/runs/run_1/call_1");
    expect(screen.getByRole("link", { name: /^open_url\s?7\.00 s\s?, in transit 7\.00 s, still going$/ })).toBeDefined();
    expect(screen.getByText("Model, step 1")).toBeDefined();
  });
});

describe("a replay", () => {
  test("shows the run as it was at that moment", () => {
    expect(rowsAt([MODEL, PHOTO], 0.5)).toEqual([{ step: 1, start: 0, segments: [{ kind: "model", start: 0 }] }]);
    const [, photo] = rowsAt([MODEL, PHOTO], 6.5);
    expect(photo).toMatchObject({ segments: [{ kind: "person", start: 1, end: 6 }, { kind: "client", start: 6 }] });
    expect(photo).not.toHaveProperty("outcome");
    expect(photo?.segments[1]).not.toHaveProperty("end");
    expect(rowsAt([MODEL, PHOTO], 9)).toEqual([MODEL, PHOTO]);
  });

  test("takes no longer than a dozen seconds", () => {
    expect(paceOf(3)).toBe(1);
    expect(86_400 / paceOf(86_400)).toBeCloseTo(12);
  });
});

describe("words", () => {
  const trouble = (outcome: string): InspectedRunRow => ({ ...RUN, trouble: { tool: "take_photo", outcome, told: "no lens" } });

  test.each([[0.084, "84 ms"], [0.9999, "1.00 s"], [1.3, "1.30 s"], [9.996, "10.0 s"], [22.4, "22.4 s"], [99.96, "1 min 40 s"], [120, "2 min"], [7_800, "2 h 10 min"], [270_000, "3 d 3 h"]])("%d seconds are %s", (seconds, words) => {
    expect(durationOf(seconds)).toBe(words);
  });

  test("shown figures add up to the shown whole", () => {
    for (let number = 0; number < 500; number += 1) {
      const parts = [0, 1, 2, 3, 4].map((each) => (number * 7919 * (each + 3)) % 4_321);
      const whole = parts.reduce((sum, each) => sum + each, 0);
      const shown = tenthsOf(whole, parts).map((each) => Number(figureOf(each).replace(" s", "")));
      expect(shown.reduce((sum, each) => sum + each, 0)).toBeCloseTo(Number(figureOf(whole).replace(" s", "")), 5);
    }
  });

  test("a run in the list says what it waits for, what went wrong, or how much it did", () => {
    expect(noteOf(RUN)).toBe("3 steps, 6 calls, 22.4 s");
    expect(noteOf({ ...RUN, state: "waiting", waiting: 2 })).toBe("3 steps, waiting for 2 answers");
    expect(noteOf({ ...RUN, state: "parked", waiting: 1 })).toBe("Parked, 1 question in the inbox");
    // nobody is asked: a program, or a browser that has taken the call, runs it
    expect(noteOf({ ...RUN, state: "waiting", waiting: 0 })).toBe("3 steps, waiting for a program");
    expect(noteOf({ ...RUN, state: "parked", waiting: 0 })).toBe("Parked, waiting for a program");
    expect(noteOf({ ...RUN, state: "failed", error: "The provider is away." })).toBe("The provider is away.");
    expect([trouble("timed_out"), trouble("denied"), trouble("failure")].map(noteOf)).toEqual(["take_photo timed out", "take_photo was denied, ended cleanly", "take_photo failed: no lens"]);
    expect([RUN, trouble("denied"), trouble("timed_out"), { ...RUN, state: "parked" }].map(toneOf)).toEqual(["green", "grey", "grey", "amber"]);
  });

  test("red is for a run that failed; a call that failed in one that ended well is said in red words, a choice of the person in grey ones", () => {
    const choices = ["skipped by the user", "declined by the user"].map((told) => ({ ...RUN, trouble: { tool: "ask_text", outcome: "failure", told } }));
    expect([trouble("failure"), ...choices, { ...RUN, state: "failed" }].map(toneOf)).toEqual(["grey", "grey", "grey", "red"]);
    expect(choices.map(noteOf)).toEqual(["ask_text was skipped", "ask_text was declined"]);
    expect([trouble("failure"), ...choices, RUN, { ...trouble("failure"), state: "running" }].map(hasFailure)).toEqual([true, false, false, false, false]);
  });

  test("how long ago", () => {
    const now = Date.parse("2026-01-02T00:00:00Z");
    expect(["2026-01-01T23:59:30Z", "2026-01-01T23:48:00Z", "2026-01-01T21:00:00Z", "2025-12-30T00:00:00Z"].map((time) => agoOf(time, now))).toEqual(["now", "12 min", "3 h", "3 d"]);
  });
});

describe("addresses", () => {
  test.each([{ tab: "runs" }, { tab: "inbox" }, { tab: "events" }, { tab: "runs", runId: "run_1" }, { tab: "runs", runId: "run_1", callId: "call_1" }, { tab: "runs", callId: "call_1" }] as const)("%o comes back from its own address", (route) => {
    expect(routeOf(hrefOf(route))).toEqual(route);
  });

  test.each(["", "#", "#/", "#/nothing", "#/runs/<b>", "#/runs/a b"])("%j is the list of runs", (hash) => {
    expect(routeOf(hash)).toEqual({ tab: "runs" });
  });
});

describe("what went in and out", () => {
  test("is coloured text, never markup", () => {
    const value = { "<img src=x onerror=alert(1)>": "</pre><script>", n: [-1.5e3, true, null], quote: 'a "b" \\' };
    const { container } = render(<Json value={value} />);
    expect(container.querySelector("img, script")).toBeNull();
    expect(container.textContent).toBe(JSON.stringify(value, null, 2));
    expect(piecesOf(writtenOf(value)).filter(({ kind }) => kind === "number").map(({ text }) => text)).toEqual(["-1500"]);
    expect(piecesOf(writtenOf(value)).filter(({ kind }) => kind === "name").map(({ text }) => text)).toHaveLength(3);
  });

  test("a very long output is cut, and says so", () => {
    expect(writtenOf("x".repeat(SHOWN_CHARS + 8))).toMatch(/… 10 more characters$/);
  });

  test("tabs are moved through with the arrows", () => {
    const names = ["Input", "Output", "Wire"];
    expect(["ArrowRight", "ArrowLeft", "Home", "End", "x", "toString"].map((key) => nextOf(names, "Wire", key))).toEqual(["Input", "Output", "Input", "Wire", undefined, undefined]);
  });
});

const SHOWN: InspectedRun = {
  run: RUN, figures: { whole: 8_000, model: 1_000, person: 5_000, client: 2_000, way: 0, server: 0 },
  rows: [MODEL, PHOTO], now: 8, kept: true, parks: 0, model: "scripted", store: "memory",
};

describe("marks", () => {
  test("a band lasts from a loss to its end, or until now", () => {
    const marks = [{ kind: "lost", at: 1 }, { kind: "resumed", at: 3 }, { kind: "repeat", at: 4, callId: "call_1" }, { kind: "lost", at: 5 }, { kind: "paused", at: 6 }];
    expect(bandsOf(marks)).toEqual([{ kind: "lost", from: 1, to: 3 }, { kind: "lost", from: 5, to: 6 }, { kind: "paused", from: 6 }]);
  });

  test("the waterfall says in words what the bands and ticks show", () => {
    const marks = [{ kind: "lost", at: 2 }, { kind: "resumed", at: 4 }, { kind: "repeat", at: 7, callId: "call_1" }, { kind: "conflict", at: 7.5, callId: "call_1" }];
    render(<Waterfall shown={{ ...SHOWN, marks }} rows={SHOWN.rows} now={8} isLive={false} chosen={undefined} />);
    expect(screen.getByText("Connection lost at 2.00 s, for 2.00 s")).toBeDefined();
    expect(screen.getByRole("link", { name: /repeat ignored, another answer refused$/ })).toBeDefined();
  });

  test("figures that a run does not have are not shown", () => {
    expect(extrasOf(SHOWN)).toEqual([]);
    expect(extrasOf({ ...SHOWN, parks: 1, reconnects: 2, repeats: 1, usage: { inputTokens: 1_200, outputTokens: 80, cost: 0.0048 } })).toEqual([
      ["1,200 in, 80 out", "tokens"], ["$0.0048", "cost"], ["once", "paused"], ["2", "reconnects"], ["1", "repeat ignored"],
    ]);
  });

  test("tokens, cost and times in words", () => {
    expect([tokensOf(1, 2), costOf(0), costOf(0.00001), costOf(1.256), timesOf(2), timesOf(5)]).toEqual(["1 in, 2 out", "$0.00", "< $0.0001", "$1.26", "twice", "5 times"]);
  });
});

describe("rerun from here", () => {
  const CALL: RerunPlace = { runId: "run_1", step: 2, call: { id: "call_1", tool: "open_url", input: { url: "a", key: "••••••••" } } };
  const FIRST: RerunPlace = { runId: "run_1", step: 1, prompt: "Hello" };

  test("what was not changed is left out, so that masked values stay as they are", () => {
    expect(bodyOf(CALL, { input: inputOf(CALL) }, false)).toEqual({ step: 2, callId: "call_1" });
    expect(bodyOf(FIRST, { text: "Hello" }, true)).toEqual({ step: 1, repeat: true });
    expect(bodyOf({ runId: "run_1", step: 3, prompt: "Hello" }, {}, false)).toEqual({ step: 3 });
  });

  test("what was changed is sent", () => {
    expect(bodyOf(CALL, { input: { url: "b" } }, false)).toEqual({ step: 2, callId: "call_1", input: { url: "b" } });
    expect(bodyOf(FIRST, { text: "Good morning" }, false)).toEqual({ step: 1, text: "Good morning" });
  });

  test("what cannot be sent is reported", () => {
    expect(bodyOf(CALL, { input: { url: "b", key: "••••••••" } }, false)).toContain("masked");
    expect(bodyOf(FIRST, { text: " " }, false)).toContain("Write a message");
  });

  test("only the first step shows the message, and only an object has fields", () => {
    expect([messageOf(FIRST), messageOf({ ...FIRST, step: 2 }), messageOf({ runId: "r", step: 1, prompt: null })]).toEqual(["Hello", undefined, undefined]);
    expect([inputOf(FIRST), inputOf({ runId: "r", step: 1, call: { id: "c", tool: "t", input: [1] } })]).toEqual([undefined, undefined]);
  });

  test("tools that may be repeated are named", () => {
    expect(repeatWords(["a"])).toBe("a ran on the server. The new run may call it again, with real effects.");
    expect(repeatWords(["a", "b", "c"])).toContain("a, b and c ran on the server. The new run may call them");
  });
});
