// Three pages, one build: the chat page, the Inspector and the gallery of cards, into the folder that the server serves.
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
  // the packages as they are written, not as they are published
  resolve: { conditions: ["farhand-source", ...defaultClientConditions] },
  build: {
    outDir: resolve(here, "../../../src/farhand/_ui"),
    emptyOutDir: true,
    target: "es2023",
    // the pages' policy allows no data: or inline scripts, so nothing is folded into the page
    assetsInlineLimit: 0,
    // views that come later have nothing of their own to be fetched beside them
    modulePreload: { polyfill: false, resolveDependencies: (_, files, { hostType }) => (hostType === "html" ? files : []) },
    rolldownOptions: {
      // two of AI SDK's own, called as it loads: what they make and nobody uses is left out, schemas of whole messages for one
      treeshake: { manualPureFunctions: ["lazySchema", "createDownload"] },
      input: { index: resolve(here, "index.html"), inspector: resolve(here, "inspector.html"), cards: resolve(here, "gallery/cards.html") },
    },
  },
});

/**
 * AI SDK brings zod, and zod the way from its schemas to JSON Schema, which is for whoever asks a model. A page only checks
 * what it reads: six kilobytes of its download are left out, and four more of AI SDK's own way from zod 3. Should something ask for a JSON Schema all the same, it is told why not. Schemas of AI SDK
 * that a page has no use for go, too.
 */
function withoutJsonSchema(): Plugin {
  const NAMES = /^export (?:const|function) (\w+)/gm;
  return {
    name: "farhand-without-json-schema",
    enforce: "pre",
    transform(code, id) {
      if (/zod\/v4\/locales\/en\.js$/.test(id)) {
        // what it would say of a chunk that does not fit is for nobody's eyes
        return { code: "export default () => ({ localeError: (issue) => issue.code });", map: null };
      }
      if (/@ai-sdk\/provider-utils\/dist\/index\.js$/.test(id)) {
        const shorter = code.replace("() => zod3ToJsonSchema(", "() => absentJsonSchema(");
        return { code: `${shorter}\nfunction absentJsonSchema() { throw new Error("This page was built without JSON Schema."); }`, map: null };
      }
      if (/\/ai\/dist\/index\.js$/.test(id)) {
        // made as the module loads: marked, so that those which nobody uses are left out
        return { code: code.replace(/^const (\w+Schema) = (z\.[^;]*?^\S*\));$/gm, "const $1 = /* @__PURE__ */ (() => $2)();"), map: null };
      }
      if (!/zod\/v4\/core\/(?:to-json-schema|json-schema-processors)\.js$/.test(id)) {
        return undefined;
      }
      const names = [...code.matchAll(NAMES)].map(([, name]) => name ?? "");
      const absent = `const absent = () => { throw new Error("This page was built without JSON Schema."); };`;
      // these two are called when a schema is made, and make what would be called later
      const lines = names.map((name) => `export const ${name} = ${name.startsWith("create") ? "() => absent" : "absent"};`);
      return { code: [absent, ...lines, ...(names.includes("processSchema") ? ["export { processSchema as process };"] : [])].join("\n"), map: null };
    },
  };
}
