// Of every test file: what a test stubbed is gone before the next file of the same process is loaded.
import { afterAll, afterEach, vi } from "vitest";

function restore(): void {
  vi.useRealTimers();
  vi.unstubAllGlobals();
}

afterEach(restore);
afterAll(restore);
