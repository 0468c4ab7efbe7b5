// The published AG-UI clients, unchanged, behind one interface for the tests.
import { randomUUID } from "node:crypto";
import { type AgentSubscriber, HttpAgent, type Message } from "@ag-ui/client";
import { HttpAgent as HttpAgent0059 } from "ag-ui-client0059";

export type { Message };

export interface Interrupt {
  readonly id: string;
  readonly reason: string;
  readonly toolCallId?: string;
  readonly message?: string;
  readonly responseSchema?: unknown;
}

export interface Tool {
  readonly name: string;
  readonly description: string;
  readonly parameters: unknown;
}

/** What the tests use of an agent, in every version. */
export interface Agent {
  readonly threadId: string;
  readonly messages: Message[];
  readonly pendingInterrupts: readonly Interrupt[];
  addMessage(message: unknown): void;
  setMessages(messages: unknown): void;
  abortRun(): void;
  runAgent(parameters?: object, subscriber?: object): Promise<unknown>;
}

export interface Version {
  readonly name: string;
  readonly open: (url: string, threadId?: string) => Agent;
}

export const versions: readonly Version[] = [
  {
    name: "@ag-ui/client 1.0.0",
    open: (url, threadId = randomUUID()) => new HttpAgent({ url, threadId }) as unknown as Agent,
  },
  {
    name: "@ag-ui/client 0.0.59",
    open: (url, threadId = randomUUID()) => new HttpAgent0059({ url, threadId }) as unknown as Agent,
  },
];

export interface Told {
  /** The types of the events in order, without the pieces of texts. */
  readonly types: string[];
  /** Code and message of the error that ended the run. */
  readonly error: { code?: string; message: string } | undefined;
  readonly interrupts: readonly Interrupt[];
}

/** One run to its end. Errors of the client are thrown. */
export async function run(agent: Agent, parameters: object = {}): Promise<Told> {
  const types: string[] = [];
  let error: Told["error"];
  const subscriber: AgentSubscriber = {
    onEvent: ({ event }) => {
      if (!event.type.endsWith("_CONTENT")) {
        types.push(event.type);
      }
    },
    onRunErrorEvent: ({ event }) => {
      error = event as NonNullable<Told["error"]>;
    },
  };
  await agent.runAgent(parameters, subscriber);
  return { types, error, interrupts: agent.pendingInterrupts };
}

export function say(agent: Agent, content: string): void {
  agent.addMessage({ id: randomUUID(), role: "user", content });
}

/** A result of the page. */
export function bring(agent: Agent, toolCallId: string, content: unknown): void {
  agent.addMessage({ id: randomUUID(), role: "tool", toolCallId, content: JSON.stringify(content) });
}

/** Calls without a result: what a page has to execute. */
export function openCalls(agent: Agent): { id: string; name: string; args: unknown }[] {
  const done = agent.messages.flatMap((each) => (each.role === "tool" ? [each.toolCallId] : []));
  const calls = agent.messages.flatMap((each) => (each.role === "assistant" ? (each.toolCalls ?? []) : []));
  return calls
    .filter((call) => !done.includes(call.id))
    .map((call) => ({
      id: call.id,
      name: call.function.name,
      args: JSON.parse(call.function.arguments) as unknown,
    }));
}

/** One line for each entry of the history. */
export function lines(agent: { readonly messages: readonly Message[] }): string[] {
  return agent.messages.flatMap((message) => {
    switch (message.role) {
      case "assistant":
        return [
          ...(message.content ? [`assistant: ${message.content}`] : []),
          ...(message.toolCalls ?? []).map((call) => `${call.function.name} ${call.function.arguments}`),
        ];
      case "tool":
        return [`= ${String(message.content)}`];
      default:
        return [`${message.role}: ${String(message.content)}`];
    }
  });
}
