// Bundles a TypeScript program with its imports into one file that Node runs: `node bundle-program.mjs IN OUT`. Packages are resolved
// from this folder, wherever the program is.
import { builtinModules } from "node:module";
import { join } from "node:path";
import { rolldown } from "rolldown";

const [, , input, file] = process.argv;
const external = [/^node:/, ...builtinModules];
const resolve = { conditionNames: ["farhand-source", "import", "node", "default"], modules: [join(import.meta.dirname, "node_modules")] };
const bundle = await rolldown({ input, external, platform: "node", logLevel: "silent", resolve });
await bundle.write({ format: "es", file });
await bundle.close();
