// What a reader cannot see becomes a mark, in the cards as on the command line.
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, it } from "vitest";
import { requirement } from "../../../tests/requirement.ts";
import { fold, grouped, piecesOf } from "../src/visible-text.ts";

interface Hostile {
  readonly name: string;
  readonly text: string;
  readonly pieces: readonly (readonly [string, string, number])[];
}

const HOSTILE = JSON.parse(readFileSync(resolve(import.meta.dirname, "../../../../tests/hostile_strings.json"), "utf8")) as Hostile[];

it.each(HOSTILE)("a hostile text is spelled as the command line spells it: $name", ({ text, pieces }) => {
  requirement("approval:readable");
  expect(piecesOf(text).map(({ kind, text: shown, length }) => [kind, shown, length])).toEqual(pieces);
});

it("every invisible character of Unicode is marked", () => {
  requirement("approval:readable");
  // signs before a number are of the kind of invisible ones, but are drawn
  const drawn = new Set([0x600, 0x601, 0x602, 0x603, 0x604, 0x605, 0x6dd, 0x70f, 0x890, 0x891, 0x8e2, 0x110bd, 0x110cd]);
  const plain: string[] = [];
  for (let code = 0; code < 0x110000; code += 1) {
    const char = String.fromCodePoint(code);
    const isHidden = /^[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Zs}\p{Cs}\p{Co}\p{Default_Ignorable_Code_Point}]$/u.test(char) && !drawn.has(code);
    if (isHidden && piecesOf(char)[0]?.kind === "text") {
      plain.push(code.toString(16));
    }
  }
  expect(plain).toEqual([]);
});

it("a long text is cut at its end, and what is hidden is counted", () => {
  requirement("approval:readable");
  expect(fold("x".repeat(20), 20)).toEqual({ pieces: [{ kind: "text", text: "x".repeat(20), length: 20 }], hidden: 0 });
  expect(fold("x".repeat(2_000), 400).hidden).toBe(1_600);
  const secret = `/home/ada/secrets${"\n".repeat(120)}notes.txt`;
  expect(fold(secret, 10)).toEqual({ pieces: [{ kind: "text", text: "/home/ada/", length: 10 }], hidden: 136 });
  expect(fold(secret, 20).pieces.at(-1)?.text).toBe("⏎ ×120");
  // a character of two halves is cut before or behind, never in the middle
  expect(fold("😀".repeat(9), 3)).toEqual({ pieces: [{ kind: "text", text: "😀😀😀", length: 3 }], hidden: 6 });
});

it.each(["\u0336".repeat(200_000), "a\u200b".repeat(100_000), "\n ".repeat(100_000), "x".repeat(400_000)])("a large text is read in time that grows with its length", (text) => {
  requirement("approval:readable");
  const began = performance.now();
  fold(text, 400);
  // well under a second; work that grows with the square would take hours
  expect(performance.now() - began).toBeLessThan(20_000);
});

it("numbers are grouped", () => {
  requirement("approval:readable");
  expect([0, 999, 1_600, 1_234_567].map(grouped)).toEqual(["0", "999", "1,600", "1,234,567"]);
});
