// Answers calls beside a held stream: tools of the page run here and are acknowledged in separate requests, and so are approvals.
import { type AnswerStorage, type Delivery, type HandlerMap, Hands, httpOf, type HttpOptions, type OnUnknown } from "@farhand/client";
import type { AnswerableMessage } from "./auto-send.ts";

export interface FarHandsOptions extends HttpOptions {
  readonly handlers: HandlerMap;
  readonly onUnknown?: OnUnknown;
  /** Where answers are kept across a reload. */
  readonly storage?: AnswerStorage;
  /** Called when an answer has its receipt: a parked run continues then, so resume the stream unless it is open. */
  readonly onReceipt?: (delivery: Delivery, id: string) => void;
  readonly backOff?: (attempt: number) => number;
}

/** The fields of AI SDK's tool call that are used here. */
export interface ToolCall {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly input?: unknown;
}

export class FarHands extends Hands {
  #frontend: Promise<ReadonlySet<string>> | undefined;

  constructor(private readonly options: FarHandsOptions) {
    super(httpOf(options), { ...options, storage: options.storage ?? null });
    this.outbox.recover();
  }

  /** Pass it to `useChat`. Returns immediately: the output comes back in the stream, so do not call `addToolOutput`. */
  onToolCall = ({ toolCall }: { toolCall: ToolCall }): void => {
    void this.#see(toolCall);
  };

  /** Aborts the handlers of calls that were settled elsewhere. Call it whenever the messages change. */
  watch(messages: readonly AnswerableMessage[]): void {
    for (const part of messages.flatMap(({ parts }) => parts)) {
      const { toolCallId } = part as { toolCallId?: string };
      if (toolCallId !== undefined && part.state?.startsWith("output-") === true) {
        this.executor.see({ id: toolCallId, tool: "", phase: "settled", input: {}, outcome: { kind: "success" } }, { frontend: false });
      }
    }
  }

  /** The ids of the calls that run in this page now. */
  get running(): ReadonlySet<string> {
    return this.executor.running;
  }

  /** Answers by the id of their call or approval. */
  get deliveries(): ReadonlyMap<string, Delivery> {
    return this.outbox.deliveries;
  }

  /** Answers without a receipt: those being sent, and those that the server refused. */
  get kept(): readonly { readonly id: string; readonly path: string; readonly body: string }[] {
    return [...this.outbox.pending];
  }

  async #see({ toolCallId, toolName, input }: ToolCall): Promise<void> {
    if (this.outbox.deliveries.has(toolCallId)) {
      return;
    }
    const known = this.executor.handles(toolName) || this.options.onUnknown === "card" || this.options.onUnknown === "leave";
    const frontend = !known && (await this.#frontendTools()).has(toolName);
    const call = { id: toolCallId, tool: toolName, phase: "ready", input: (input ?? {}) as Record<string, unknown> } as const;
    this.executor.see(call, { frontend });
  }

  /** AI SDK does not say who executes a tool, but the server does. */
  #frontendTools(): Promise<ReadonlySet<string>> {
    this.#frontend ??= this.#askForTools().catch(() => {
      this.#frontend = undefined;
      return new Set<string>();
    });
    return this.#frontend;
  }

  async #askForTools(): Promise<ReadonlySet<string>> {
    const { http } = this;
    const response = await http.fetch(`${http.url}/api/tools`, { headers: http.headers, signal: AbortSignal.timeout(http.silenceMs) });
    const { tools } = (await response.json()) as { tools: { name: string; executor: string }[] };
    return new Set(tools.filter(({ executor }) => executor === "frontend").map(({ name }) => name));
  }

  protected override changed(id?: string): void {
    super.changed();
    const delivery = id === undefined ? undefined : this.outbox.deliveries.get(id);
    if (id !== undefined && delivery?.state === "settled") {
      this.options.onReceipt?.(delivery, id);
    }
  }
}
