// What the tests run in: a page to render into, with Node's own fetch. The page's fetch is the DOM library's
// imitation of a browser; what is under test here are the clients, over real connections.
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
    // the DOM library has one that never tells anything: without a layout everything is in sight
    delete global["IntersectionObserver"];
    return environment;
  },
} satisfies Environment;
