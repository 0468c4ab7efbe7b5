// The page's hands on a held stream: tools run here and are acked beside the stream, approvals are answered there, too.
import { type Decision, type Delivery, Executor, type HandlerMap, httpOf, type HttpOptions, type Keep, type OnUnknown, Outbox } from "@farhand/client";
import type { AnswerableMessage } from "./auto-send.ts";

export interface HandsOptions extends HttpOptions {
  readonly handlers: HandlerMap;
  readonly onUnknown?: OnUnknown;
  /** Where answers outlive a reload. */
  readonly storage?: Keep;
  /** An answer has its receipt: a run that was parked goes on, so resume the stream unless it is open. */
  readonly onReceipt?: (delivery: Delivery, id: string) => void;
  readonly backOff?: (attempt: number) => number;
}

/** The fields of AI SDK's tool call that count here. */
export interface ToolCall {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly input?: unknown;
}

export class FarHands {
  readonly #executor: Executor;
  readonly #outbox: Outbox;
  readonly #listeners = new Set<() => void>();
  #frontend: Promise<ReadonlySet<string>> | undefined;

  constructor(private readonly options: HandsOptions) {
    const http = httpOf(options);
    this.#outbox = new Outbox({
      http,
      storage: options.storage,
      onChange: (id) => this.#changed(id),
      ...(options.backOff === undefined ? {} : { backOff: options.backOff }),
    });
    this.#executor = new Executor({
      http,
      handlers: options.handlers,
      onUnknown: options.onUnknown ?? "fail",
      clientId: `page_${crypto.randomUUID()}`,
      settle: ({ id }, outcome) => void this.answer(id, outcome),
      onChange: () => this.#changed(),
    });
    this.#outbox.recover();
  }

  /** For `useChat`. Returns at once: an output comes back on the stream, so do not call `addToolOutput`. */
  onToolCall = ({ toolCall }: { toolCall: ToolCall }): void => {
    void this.#see(toolCall);
  };

  /** Answers a call as a person does, beside the stream. The first answer goes out; false if there is one already. */
  answer(toolCallId: string, outcome: { kind: "success"; output?: unknown } | { kind: "failure"; error: string }): boolean {
    const told = outcome.kind === "success" ? { status: "success", output: outcome.output ?? null } : { status: "failed", errorText: outcome.error };
    return this.#outbox.put({ id: toolCallId, path: "/api/tools/ack", body: JSON.stringify({ toolCallId, ...told }) });
  }

  /** Answers an approval beside the stream; edited input and `scope: "thread"` have no other way. */
  approve(approvalId: string, decision: Decision): boolean {
    return this.#outbox.put({ id: approvalId, path: "/api/tools/approve", body: JSON.stringify({ approvalId, ...decision }) });
  }

  /** Aborts handlers whose calls were settled elsewhere. Show it the messages whenever they change. */
  watch(messages: readonly AnswerableMessage[]): void {
    for (const part of messages.flatMap(({ parts }) => parts)) {
      const { toolCallId } = part as { toolCallId?: string };
      if (toolCallId !== undefined && part.state?.startsWith("output-") === true) {
        this.#executor.see({ id: toolCallId, tool: "", phase: "settled", input: {}, outcome: { kind: "success" } }, { frontend: false });
      }
    }
  }

  /** For an answer that is not delivered, by the id of its call or approval: try at once, or take it back. */
  retry(id: string): void {
    this.#outbox.retry(id);
  }

  discard(id: string): boolean {
    return this.#outbox.discard(id);
  }

  retryNow(): void {
    this.#outbox.retryAll();
  }

  /** The calls that run in this page now. */
  get running(): ReadonlySet<string> {
    return this.#executor.running;
  }

  /** Answers by the id of their call or approval. */
  get deliveries(): ReadonlyMap<string, Delivery> {
    return this.#outbox.deliveries;
  }

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  close(): void {
    this.#executor.close();
    this.#outbox.close();
  }

  async #see({ toolCallId, toolName, input }: ToolCall): Promise<void> {
    if (this.#outbox.deliveries.has(toolCallId)) {
      return;
    }
    const known = this.#executor.handles(toolName) || this.options.onUnknown === "card" || this.options.onUnknown === "leave";
    const frontend = !known && (await this.#frontendTools()).has(toolName);
    const call = { id: toolCallId, tool: toolName, phase: "ready", input: (input ?? {}) as Record<string, unknown> } as const;
    this.#executor.see(call, { frontend });
  }

  /** AI SDK does not tell who executes a tool; the server does. */
  #frontendTools(): Promise<ReadonlySet<string>> {
    this.#frontend ??= this.#askForTools().catch(() => {
      this.#frontend = undefined;
      return new Set<string>();
    });
    return this.#frontend;
  }

  async #askForTools(): Promise<ReadonlySet<string>> {
    const http = httpOf(this.options);
    const response = await http.fetch(`${http.url}/api/tools`, { headers: http.headers, signal: AbortSignal.timeout(http.silenceMs) });
    const { tools } = (await response.json()) as { tools: { name: string; executor: string }[] };
    return new Set(tools.filter(({ executor }) => executor === "frontend").map(({ name }) => name));
  }

  #changed(id?: string): void {
    this.#listeners.forEach((listener) => listener());
    const delivery = id === undefined ? undefined : this.#outbox.deliveries.get(id);
    if (id !== undefined && delivery?.state === "settled") {
      this.options.onReceipt?.(delivery, id);
    }
  }
}
