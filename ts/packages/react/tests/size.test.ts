// @vitest-environment node
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { gzipSync } from "node:zlib";
import { expect, it } from "vitest";
import { bundled } from "../../../tests/bundle.ts";

it("the cards are 41 kB at most, gzipped, with the client, the icons and their style", async () => {
  const { bytes } = await bundled(resolve(import.meta.dirname, "../src/index.ts"), { external: [/^react(-dom)?($|\/)/] });
  // as the scripts are measured: without comments
  const style = readFileSync(resolve(import.meta.dirname, "../src/cards.css"), "utf8").replaceAll(/\s*\/\*.*?\*\//gs, "");
  expect(bytes + gzipSync(style).length).toBeLessThanOrEqual(41_000);
});

it("all motion stops for people who want less of it, and colours come in light and dark", () => {
  const style = readFileSync(resolve(import.meta.dirname, "../src/cards.css"), "utf8");
  expect(style).toContain("prefers-reduced-motion: reduce");
  // beside the properties themselves no rule names a colour of its own
  expect(rulesOf(style).match(/#[0-9a-f]{3,8}\b/g)).toBeNull();
});

it("every size and radius is a property of its own, and the page's own colour scheme is left alone", () => {
  const style = readFileSync(resolve(import.meta.dirname, "../src/cards.css"), "utf8");
  const sizes = rulesOf(style).match(/[\w-]+: [^;{}]*\d(?:px|rem|em)[^;{}]*/g) ?? [];
  // what is for screen readers alone is no size, and a hair's breadth is none to change
  expect(sizes.filter((each) => !/^(?:width: 1px|height: 1px|margin: -1px|margin-top: 1px|text-underline-offset|max-width: 480px|font: 0.86em)/.test(each))).toEqual([]);
  expect(style).not.toContain(":root");
  expect(style.match(/color-scheme: light dark/g)).toHaveLength(1);
});

function rulesOf(style: string): string {
  return style.slice(style.indexOf("\n}"));
}

it("the README's own colours are readable, too, and what it does not set follows what it does", () => {
  const style = readFileSync(resolve(import.meta.dirname, "../src/cards.css"), "utf8");
  const readme = readFileSync(resolve(import.meta.dirname, "../README.md"), "utf8");
  const [, own = ""] = /```css\n(.*?)```/s.exec(readme) ?? [];
  for (const mode of [0, 1]) {
    expect(ratio(colour(style, "on-accent", mode), colour(own, "accent", mode))).toBeGreaterThanOrEqual(4.5);
  }
  const following = [...style.matchAll(/--fh-(size|radius)-(?:title|small|tiny|control): ([^;]+);/g)];
  expect(following.length).toBe(5);
  expect(following.filter(([, name, value]) => !value?.includes(`var(--fh-${name})`))).toEqual([]);
});

it("text is readable on its ground in light and dark: 4.5 to 1 at least", () => {
  const style = readFileSync(resolve(import.meta.dirname, "../src/cards.css"), "utf8");
  const pairs = [
    ["text", "surface"], ["muted", "surface"], ["muted", "sunken"], ["on-accent", "accent"], ["tint-text", "tint"], ["amber", "amber-tint"],
    ["red", "red-tint"], ["muted", "grey-tint"], ["amber", "surface"], ["green", "surface"], ["red", "surface"], ["text", "tint"],
  ] as const;
  for (const mode of [0, 1]) {
    for (const [text, ground] of pairs) {
      const contrast = ratio(colour(style, text, mode), colour(style, ground, mode));
      expect(contrast, `${text} on ${ground}, ${mode === 0 ? "light" : "dark"}: ${contrast.toFixed(2)}`).toBeGreaterThanOrEqual(4.5);
    }
  }
});

function colour(style: string, name: string, mode: number): string {
  const value = new RegExp(`--fh-${name}: ([^;]+);`).exec(style)?.[1] ?? "";
  const both = value.match(/#[0-9a-f]{6}/g) ?? [];
  return both[mode] ?? both[0] ?? "";
}

function ratio(one: string, other: string): number {
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b) as [number, number];
  return (light + 0.05) / (dark + 0.05);
}

function luminance(hex: string): number {
  const parts = [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16) / 255);
  const [red, green, blue] = parts.map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)) as [number, number, number];
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
