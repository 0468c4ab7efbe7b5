import { defaultServerConditions } from "vite";
import { defineConfig } from "vitest/config";

// the packages as they are written, not as they are published
const conditions = ["farhand-source", ...defaultServerConditions.filter((each) => each !== "module")];

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    include: ["tests/**/*.test.{ts,tsx}", "packages/*/tests/**/*.test.{ts,tsx}", "apps/*/tests/**/*.test.{ts,tsx}"],
    environment: "./tests/environment.ts",
    // modules are loaded once for all files of a process, which is most of what the tests would compute; the page is
    // each file's own, and what a test stubbed is restored
    isolate: false,
    setupFiles: ["./tests/leave-nothing.ts"],
    // each file starts a server of its own: two at a time are enough for a small machine
    maxWorkers: 2,
    // as many as wait for each other's quiet seconds; more, and one turn of the loop takes seconds on a busy machine
    maxConcurrency: 12,
    // every wait has a bound of its own that a busy machine stretches; these are for what hangs all the same
    testTimeout: 120_000,
    hookTimeout: 120_000,
    teardownTimeout: 20_000,
    unstubGlobals: true,
  },
});
