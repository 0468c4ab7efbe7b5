// CopilotKit's core, as a page uses it, without React.
import { randomUUID } from "node:crypto";
import { CopilotKitCore, type FrontendTool } from "@copilotkit/core";
import { z } from "zod";
import { until } from "../until.ts";
import { type Agent, lines } from "./client.ts";

export const transports = [{ transport: "rest" }, { transport: "single" }, { transport: "auto" }] as const;
export type Transport = (typeof transports)[number]["transport"];

export interface Opening {
  readonly url: string;
  readonly transport: Transport;
  readonly threadId?: string;
  readonly tools?: FrontendTool[];
}

/** One page on one thread. */
export class Kit {
  readonly errors: string[] = [];

  private constructor(
    readonly core: CopilotKitCore,
    readonly agent: Agent,
  ) {}

  static async open({ url, transport, threadId = randomUUID(), tools = [] }: Opening): Promise<Kit> {
    const core = new CopilotKitCore({ runtimeUrl: `${url}/copilotkit`, runtimeTransport: transport, tools });
    await until(() => core.agents["default"] !== undefined, "the agent of the runtime");
    const agent = core.agents["default"] as unknown as Agent & { threadId: string };
    agent.threadId = threadId;
    const kit = new Kit(core, agent);
    core.subscribe({ onError: ({ error, code }) => void kit.errors.push(`${code}: ${error.message}`) });
    return kit;
  }

  get threadId(): string {
    return this.agent.threadId;
  }

  get lines(): string[] {
    return lines(this.agent);
  }

  async say(content: string): Promise<void> {
    this.agent.addMessage({ id: randomUUID(), role: "user", content });
    await this.run();
  }

  async run(parameters: object = {}): Promise<void> {
    await this.core.runAgent({ agent: this.agent as never, ...parameters });
  }

  async connect(): Promise<void> {
    await this.core.connectAgent({ agent: this.agent as never });
  }

  stop(): void {
    this.core.stopAgent({ agent: this.agent as never });
  }

  async sees(part: string): Promise<void> {
    await until(
      () => this.lines.some((line) => line.includes(part)),
      () => `"${part}" in ${JSON.stringify(this.lines)}`,
    );
  }
}

export function frontendTool(
  name: string,
  handler: (args: Record<string, unknown>) => unknown,
  more: object = {},
): FrontendTool {
  return {
    name,
    description: `${name} of the page`,
    parameters: z.looseObject({}),
    handler: async (args: Record<string, unknown>) => handler(args),
    ...more,
  };
}
