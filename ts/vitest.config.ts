import { defaultServerConditions } from "vite";
import { defineConfig } from "vitest/config";

// the sources of the packages instead of their builds
const conditions = ["farhand-source", ...defaultServerConditions.filter((each) => each !== "module")];

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    include: ["tests/**/*.test.{ts,tsx}", "packages/*/tests/**/*.test.{ts,tsx}", "apps/*/tests/**/*.test.{ts,tsx}"],
    environment: "./tests/environment.ts",
    // modules are loaded once per process, since loading them is most of the work of the tests; each file has its own page, and stubs are
    // restored
    isolate: false,
    setupFiles: ["./tests/leave-nothing.ts"],
    // each test file starts a server: two at a time are enough for a small machine
    maxWorkers: 2,
    // concurrent tests mostly wait; with more of them, one turn of the event loop takes seconds on a busy machine
    maxConcurrency: 12,
    // every wait has its own bound, which a busy machine stretches; these limits are for tests that hang
    testTimeout: 120_000,
    hookTimeout: 120_000,
    teardownTimeout: 20_000,
    unstubGlobals: true,
  },
});
