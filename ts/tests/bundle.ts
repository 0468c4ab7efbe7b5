// The download size of an entry: bundled, minified, gzipped.
import { gzipSync } from "node:zlib";
import { rolldown } from "rolldown";

export interface Bundle {
  /** Gzipped. */
  readonly bytes: number;
  readonly code: string;
}

export async function bundled(input: string, { external = [] }: { external?: (string | RegExp)[] } = {}): Promise<Bundle> {
  const bundle = await rolldown({ input, external, platform: "browser", logLevel: "silent", resolve: { conditionNames: ["farhand-source", "import", "module", "browser", "default"] } });
  // a browser's build has no annotations for bundlers
  const { output } = await bundle.generate({ format: "es", minify: true, comments: { annotation: false, legal: false, jsdoc: false } });
  await bundle.close();
  const code = output.map((file) => (file.type === "chunk" ? file.code : "")).join("\n");
  return { bytes: gzipSync(code).length, code };
}
