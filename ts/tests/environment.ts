// The environment of the tests: a DOM to render into, with Node's own fetch. The DOM library's fetch imitates a browser's; the tests need
// real connections.
import { builtinEnvironments, type Environment } from "vitest/runtime";

const KEPT = [
  "fetch",
  "Request",
  "Response",
  "Headers",
  "AbortController",
  "AbortSignal",
  "URL",
  "FormData",
] as const;

const page = builtinEnvironments["happy-dom"];

export default {
  name: "page",
  viteEnvironment: "ssr",
  async setup(global, options) {
    const kept = KEPT.map((name) => [name, global[name]] as const);
    const environment = await page.setup(global, options);
    for (const [name, value] of kept) {
      global[name] = value;
    }
    // the DOM library's own observer never reports anything: without a layout, everything counts as visible
    delete global["IntersectionObserver"];
    return environment;
  },
} satisfies Environment;
