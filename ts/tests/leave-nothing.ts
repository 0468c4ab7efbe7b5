// Restores what a test file stubbed before the next file of the same process is loaded.
import { afterAll, afterEach, vi } from "vitest";

function restore(): void {
  vi.useRealTimers();
  vi.unstubAllGlobals();
}

afterEach(restore);
afterAll(restore);
