// @vitest-environment node
import { resolve } from "node:path";
import { expect, it } from "vitest";
import { bundled } from "../../../tests/bundle.ts";
import { requirement } from "../../../tests/requirement.ts";

it("the client is 8 KiB at most, gzipped, with all that it imports", async () => {
  requirement("client:size");
  const { bytes } = await bundled(resolve(import.meta.dirname, "../src/index.ts"));
  expect(bytes).toBeLessThanOrEqual(8_192);
});
