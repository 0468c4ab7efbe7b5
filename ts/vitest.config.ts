import { defaultServerConditions } from "vite";
import { configDefaults, defineConfig } from "vitest/config";

// the packages as they are written, not as they are published
const conditions = ["farhand-source", ...defaultServerConditions.filter((each) => each !== "module")];

const TESTS = ["tests/**/*.test.{ts,tsx}", "packages/*/tests/**/*.test.{ts,tsx}", "apps/*/tests/**/*.test.{ts,tsx}"];
// the files that cut streams below AI SDK's own clients
const CUTS = ["tests/ui-stream/resume.test.ts", "tests/ui-stream/restart.test.ts", "packages/ai-sdk/tests/live.test.ts"];

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    environment: "./tests/environment.ts",
    // each file starts a server of its own: two at a time are enough for a small machine
    maxWorkers: 2,
    maxConcurrency: 24,
    projects: [
      // a cut may fall between two renders of somebody else's client; what fails again is a fault of ours
      { extends: true, test: { name: "cuts", include: CUTS, retry: 2 } },
      { extends: true, test: { name: "all others", include: TESTS, exclude: [...configDefaults.exclude, ...CUTS] } },
    ],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    teardownTimeout: 20_000,
    unstubGlobals: true,
  },
});
