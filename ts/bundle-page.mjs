// Bundles a page with its imports into files that any server can send: `node bundle-page.mjs FOLDER OUT`. Packages are resolved from this
// folder, wherever the page is.
import { join } from "node:path";
import { build, defaultClientConditions } from "vite";

const [, , root, outDir] = process.argv;
const here = join(import.meta.dirname, "page.js");
const packages = {
  name: "packages",
  enforce: "pre",
  resolveId(name, importer, options) {
    const isBare = !/^[./\0]/.test(name) && !importer?.startsWith(import.meta.dirname);
    return isBare ? this.resolve(name, here, { ...options, skipSelf: true }) : undefined;
  },
};
await build({
  root,
  configFile: false,
  base: "./",
  logLevel: "error",
  plugins: [packages],
  esbuild: { jsx: "automatic" },
  resolve: { conditions: ["farhand-source", ...defaultClientConditions] },
  build: { outDir, emptyOutDir: true, target: "es2023" },
});
