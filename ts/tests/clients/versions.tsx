// `useChat` in the versions before and after each change in how a client resumes, each with its own `ai`.
import { useChat as useChat603 } from "@ai-sdk/react603";
import { useChat as useChat60100 } from "@ai-sdk/react60100";
import { useChat as useChat60247 } from "@ai-sdk/react60247";
import { useChat as useChat60250 } from "@ai-sdk/react60250";
import { useChat as useChat700 } from "@ai-sdk/react700";
import { useChat as useChat7057 } from "@ai-sdk/react7057";
import { useChat as useChat7064 } from "@ai-sdk/react7064";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { type Chat, type Client, httpOptions } from "./client.ts";
import { mount } from "./use-chat.tsx";
import { type StockHelpers, whenToSend } from "./when-to-send.ts";

/** What a page takes from the `ai` package beside the hook. */
interface Stock extends StockHelpers {
  readonly DefaultChatTransport: new (options: ReturnType<typeof httpOptions>) => unknown;
}

// the hooks take messages of their own versions; the tests use what all versions have
const HOOKS: Readonly<Record<string, readonly [folder: string, hook: unknown]>> = {
  "6.0.3": ["react603", useChat603],
  "6.0.100": ["react60100", useChat60100],
  "6.0.247": ["react60247", useChat60247],
  "6.0.250": ["react60250", useChat60250],
  "7.0.0": ["react700", useChat700],
  "7.0.57": ["react7057", useChat7057],
  "7.0.64": ["react7064", useChat7064],
};

export const versions: readonly Client[] = await Promise.all(
  Object.entries(HOOKS).map(async ([version, [folder, hook]]): Promise<Client> => {
    const stock = await stockOf(folder, version);
    return {
      name: `useChat of ai ${version}`,
      transport: "http",
      open: (opening) =>
        mount(opening, (wire, callbacks) => {
          const transport = new stock.DefaultChatTransport(httpOptions(opening, wire));
          const options = { ...callbacks, ...whenToSend(stock, opening), transport };
          return () => (hook as (options: unknown) => Chat)(options);
        }),
    };
  }),
);

/** The `ai` that this hook uses: it is installed below the hook's package, since another version is at the top. */
async function stockOf(folder: string, version: string): Promise<Stock> {
  const home = resolve(import.meta.dirname, "../../node_modules/@ai-sdk", folder, "node_modules/ai");
  const manifest = JSON.parse(readFileSync(join(home, "package.json"), "utf8")) as {
    readonly version: string;
    readonly exports: { readonly ".": { readonly import: string } };
  };
  if (manifest.version !== version) {
    throw new Error(`${folder} brings ai ${manifest.version}, not ${version}`);
  }
  return (await import(pathToFileURL(join(home, manifest.exports["."].import)).href)) as Stock;
}
