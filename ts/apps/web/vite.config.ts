// Builds three pages, the chat page, the Inspector and the gallery of cards, into the folder that the server serves.
import { resolve } from "node:path";
import tailwind from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defaultClientConditions, defineConfig, type Plugin } from "vite";

const here = import.meta.dirname;

export default defineConfig({
  root: here,
  // relative, so that the pages also work below the path of a host app that mounts farhand
  base: "./",
  plugins: [react(), tailwind(), withoutJsonSchema()],
  // the sources of the packages instead of their builds
  resolve: { conditions: ["farhand-source", ...defaultClientConditions] },
  build: {
    outDir: resolve(here, "../../../src/farhand/_ui"),
    emptyOutDir: true,
    target: "es2023",
    // the pages' content policy allows no data: URLs and no inline scripts, so no asset is inlined
    assetsInlineLimit: 0,
    // lazy views share their dependencies with the page, so there is nothing to preload
    modulePreload: { polyfill: false, resolveDependencies: (_, files, { hostType }) => (hostType === "html" ? files : []) },
    rolldownOptions: {
      // two functions of AI SDK that are called at import: results that nobody uses are removed, such as schemas of whole messages
      treeshake: { manualPureFunctions: ["lazySchema", "createDownload"] },
      input: { index: resolve(here, "index.html"), inspector: resolve(here, "inspector.html"), cards: resolve(here, "gallery/cards.html") },
    },
  },
});

/**
 * Removes code that a page never uses. AI SDK imports zod's conversion to JSON Schema, which only a program that asks a model needs; a
 * page only validates what it reads. Without that conversion and AI SDK's own one for zod 3, the download is ten kilobytes smaller.
 * Calling either raises an error. Unused schemas of AI SDK are removed as well.
 */
function withoutJsonSchema(): Plugin {
  const NAMES = /^export (?:const|function) (\w+)/gm;
  return {
    name: "farhand-without-json-schema",
    enforce: "pre",
    transform(code, id) {
      if (/zod\/v4\/locales\/en\.js$/.test(id)) {
        // nobody reads zod's own sentences about an invalid chunk
        return { code: "export default () => ({ localeError: (issue) => issue.code });", map: null };
      }
      if (/@ai-sdk\/provider-utils\/dist\/index\.js$/.test(id)) {
        const shorter = code.replace("() => zod3ToJsonSchema(", "() => absentJsonSchema(");
        return { code: `${shorter}\nfunction absentJsonSchema() { throw new Error("This page was built without JSON Schema."); }`, map: null };
      }
      if (/\/ai\/dist\/index\.js$/.test(id)) {
        // created at import: marked as pure, so that unused ones are removed
        return { code: code.replace(/^const (\w+Schema) = (z\.[^;]*?^\S*\));$/gm, "const $1 = /* @__PURE__ */ (() => $2)();"), map: null };
      }
      if (!/zod\/v4\/core\/(?:to-json-schema|json-schema-processors)\.js$/.test(id)) {
        return undefined;
      }
      const names = [...code.matchAll(NAMES)].map(([, name]) => name ?? "");
      const absent = `const absent = () => { throw new Error("This page was built without JSON Schema."); };`;
      // these two are called when a schema is created, and return the function that converts it
      const lines = names.map((name) => `export const ${name} = ${name.startsWith("create") ? "() => absent" : "absent"};`);
      return { code: [absent, ...lines, ...(names.includes("processSchema") ? ["export { processSchema as process };"] : [])].join("\n"), map: null };
    },
  };
}
