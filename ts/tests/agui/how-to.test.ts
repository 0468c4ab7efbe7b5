// The program in docs/how-to/ag-ui.md, as printed.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { HttpAgent } from "@ag-ui/client";
import { expect, it } from "vitest";
import { requirement } from "../requirement.ts";
import { fresh, scene } from "../server-fixture.ts";

const PAGE = resolve(import.meta.dirname, "../../../docs/how-to/ag-ui.md");
const here = scene();

type Talk = (agent: HttpAgent, text: string, approve: (question: string) => boolean) => Promise<string>;

it("the printed program executes its tools, approves and is answered", async () => {
  requirement("agui:clients");
  const [, code] = /^```ts\n(.*?)^```$/ms.exec(readFileSync(PAGE, "utf8"))!;
  // inside the workspace, so that the client is found
  const room = mkdtempSync(join(import.meta.dirname, ".sample-"));
  try {
    writeFileSync(join(room, "talk.ts"), code!);
    const { talk } = (await import(join(room, "talk.ts"))) as { talk: Talk };
    const agent = new HttpAgent({ url: `${here.server.url}/ag-ui` });
    const subject = fresh("prices");
    const never = (): boolean => {
      throw new Error("nobody is asked");
    };
    expect(await talk(agent, `chart ${subject}`, never)).toBe(`show_chart gave {"shown": "${subject}"}.`);
    const asked: string[] = [];
    const approve = (question: string): boolean => asked.push(question) > 0;
    expect(await talk(agent, `delete-and-open ${subject}`, approve)).toContain("delete_file gave");
    expect(asked).toEqual(["The assistant wants to use delete_file."]);
    expect(here.server.executions("delete_file", subject)).toBe(1);
  } finally {
    rmSync(room, { recursive: true });
  }
});
