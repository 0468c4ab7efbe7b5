// Two pages, one build: the chat page and the Inspector, into the folder that the server serves.
import { resolve } from "node:path";
import tailwind from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defaultClientConditions, defineConfig } from "vite";

const here = import.meta.dirname;

export default defineConfig({
  root: here,
  // relative, so that the pages also work below the path of a host app that mounts farhand
  base: "./",
  plugins: [react(), tailwind()],
  // the packages as they are written, not as they are published
  resolve: { conditions: ["farhand-source", ...defaultClientConditions] },
  build: {
    outDir: resolve(here, "../../../src/farhand/_ui"),
    emptyOutDir: true,
    target: "es2023",
    // the pages' policy allows no data: or inline scripts, so nothing is folded into the page
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rolldownOptions: { input: { index: resolve(here, "index.html"), inspector: resolve(here, "inspector.html") } },
  },
});
