// The program of tests/chaos/client_program.py with this client: URL TOKEN ID FOLDER GRACE. Each handler first notes in a file that it
// ran.
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "../src/index.ts";

const [, , url = "", token = "", clientID = "", folder = "", grace = ""] = process.argv;
const client = new Client({ url, token, clientID, graceSec: Number(grace), atOnce: 32 });
const parameters = { type: "object", properties: { number: { type: "integer" } }, required: ["number"] };
const note = (number: unknown): void => appendFileSync(join(folder, `${clientID}.runs`), `${String(number)}\n`);

// a busy machine may take longer than the usual time for a thousand of them
client.tool("work", { description: "Do something that must not be done twice.", parameters, timeoutSec: 120 }, async ({ number }) => {
  note(number);
  await new Promise((wake) => setTimeout(wake, 5));
  return { number, by: clientID };
});
client.tool("hang", { description: "Never come back.", parameters }, async ({ number }) => {
  note(number);
  await new Promise(() => undefined);
});
void client.connected().then(() => process.stdout.write("connected\n"));
await client.run();
