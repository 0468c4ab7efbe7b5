// Checks before a package is published that it names its repository. Run in the package's folder, by `prepublishOnly`.
import { readFileSync } from "node:fs";

const manifest = JSON.parse(readFileSync("package.json", "utf8"));
const missing = ["repository", "homepage", "bugs"].filter((name) => manifest[name] === undefined);
if (missing.length > 0) {
  console.error(`${manifest.name} has no ${missing.join(", ")} yet: run \`python scripts/set_address.py URL\` with the repository's public address first.`);
  process.exitCode = 1;
}
