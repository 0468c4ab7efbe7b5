// @vitest-environment node
// What a browser downloads before a page is there, and what the build leaves for the server.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { gzipSync } from "node:zlib";
import { build } from "vite";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { requirement } from "../../../tests/requirement.ts";

const room = mkdtempSync(join(tmpdir(), "farhand-ui-"));

beforeAll(async () => {
  const configFile = resolve(import.meta.dirname, "../vite.config.ts");
  // as `make ui` builds it: React brings another half for tests
  vi.stubEnv("NODE_ENV", "production");
  await build({ configFile, logLevel: "silent", build: { outDir: room, emptyOutDir: true } });
}, 180_000);

afterAll(() => rmSync(room, { recursive: true, force: true }));

const read = (name: string): string => readFileSync(join(room, name), "utf8");

/** The page and everything that it names: scripts, what they begin with, styles, the icon. */
function named(page: string): string[] {
  return [page, ...[...read(page).matchAll(/(?:src|href)="\.\/([^"]+)"/g)].map(([, name]) => name ?? "")];
}

/** A chunk that is loaded later, and everything that it begins with. */
function chunk(prefix: string): string[] {
  const name = readdirSync(join(room, "assets")).find((each) => each.startsWith(prefix) && each.endsWith(".js")) ?? "";
  const imports = [...read(join("assets", name)).matchAll(/from"\.\/([^"]+)"/g)].map(([, each]) => each ?? "");
  return [name, ...imports].map((each) => `assets/${each}`);
}

function weigh(files: readonly string[]): { total: number; sizes: string } {
  const sizes = [...new Set(files)].map((name) => [name, gzipSync(readFileSync(join(room, name))).length] as const);
  return { total: sizes.reduce((sum, [, size]) => sum + size, 0), sizes: JSON.stringify(sizes) };
}

it("the chat page is 110 kB at most at first sight, gzipped, with its scripts and styles", () => {
  const files = named("index.html");
  expect(files.length).toBeGreaterThan(3);
  const { total, sizes } = weigh(files);
  expect(total, sizes).toBeLessThanOrEqual(110_000);
});

it("what it takes until somebody can write is 150 kB at most; Markdown and colours for code come after that", () => {
  const { total, sizes } = weigh([...named("index.html"), ...chunk("chat-view-")]);
  console.info(`first load of the chat page: ${(total / 1_000).toFixed(1)} kB gzipped, of 150 kB`);
  expect(total, sizes).toBeLessThanOrEqual(150_000);
  expect(chunk("chat-view-").concat(named("index.html")).filter((name) => /markdown|highlight/.test(name))).toEqual([]);
  expect(chunk("markdown-").length * chunk("highlight-").length).toBeGreaterThan(0);
});

it.each(["index.html", "inspector.html"])("%s has no script and no style inside, and names nothing from outside", (page) => {
  requirement("ui:policy");
  const html = read(page);
  expect(html).not.toMatch(/<script(?![^>]*\ssrc=)[^>]*>|<style|\son\w+=|\sstyle=/i);
  expect([...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, name]) => name).filter((name) => !name?.startsWith("./"))).toEqual([]);
});

it("no asset loads anything from outside at run time", () => {
  requirement("ui:policy");
  const assets = readdirSync(join(room, "assets")).map((name) => join("assets", name));
  const styles = assets.filter((name) => name.endsWith(".css")).map(read);
  expect(styles.length).toBeGreaterThan(0);
  const rules = styles.join("\n").replace(/\/\*.*?\*\//gs, "");
  expect(rules.match(/@import|url\((?!["']?data:)|https?:\/\//g)).toBeNull();
  const scripts = assets.filter((name) => name.endsWith(".js")).map(read);
  expect(scripts.join("\n").match(/import\(["'`]https?:|\beval\(/g)).toBeNull();
});
