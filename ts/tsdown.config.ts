// How the packages are built for publication: ES modules with types, in dist/. Inside the workspace, the sources are used directly,
// through the condition `farhand-source` in the exports of each package.
import { defineConfig } from "tsdown";

const shared = { format: "esm", platform: "neutral", dts: true, clean: true, target: "es2023", fixedExtension: false, logLevel: "warn" } as const;

export default defineConfig([
  { ...shared, cwd: "packages/protocol", entry: ["src/index.ts"] },
  { ...shared, cwd: "packages/client", entry: { index: "src/index.ts", "awaiting/index": "src/awaiting/index.ts", websocket: "src/websocket.ts" } },
  { ...shared, cwd: "packages/ai-sdk", entry: ["src/index.ts"] },
  // the client is bundled, so that a program installs one package
  { ...shared, cwd: "packages/node", platform: "node", entry: ["src/index.ts"], dts: { eager: true }, deps: { alwaysBundle: [/^@farhand\//] }, inputOptions: { resolve: { conditionNames: ["farhand-source", "import", "default"] } } },
  { ...shared, cwd: "packages/react", entry: ["src/index.ts"] },
]);
