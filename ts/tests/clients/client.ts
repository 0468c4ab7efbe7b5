// One person at one page, with any version of the AI SDK and over any transport. The tests use only this interface.
import { type Message, type Part, toolOf } from "../message.ts";
import { until } from "../until.ts";
import type { Wire } from "../wire.ts";

export interface ToolCall {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly input: unknown;
}

/** What the page does automatically after a tool was answered. */
export type AutoSend =
  /** posts by the rules of the stock helpers: all outputs are there, or all approvals are answered */
  | "stock"
  /** posts by the rule of our own helper: an approval and its output together */
  | "joint"
  | "never";

export interface Opening {
  readonly url: string;
  readonly chatId: string;
  readonly autoSend?: AutoSend;
  /** The page's `onToolCall`. */
  readonly onToolCall?: (call: ToolCall, page: Page) => void;
  /** The `wait` in the body of its posts. */
  readonly wait?: "turn" | "hold";
  /** The messages with which the page is opened: after a reload, the stored ones. */
  readonly messages?: readonly Message[];
  /** Resume the answer in progress when the page is opened: the `resume` of `useChat`. */
  readonly resume?: boolean;
}

/** The part of a chat's interface that every supported version has. */
export interface Chat {
  readonly messages: readonly Message[];
  readonly status: string;
  readonly error: Error | undefined;
  sendMessage(message?: { text: string; messageId?: string } | Message): Promise<void>;
  regenerate(options?: { messageId?: string }): Promise<void>;
  resumeStream(): Promise<void>;
  stop(): Promise<void>;
  addToolOutput(output: ToolOutput): Promise<void>;
  addToolApprovalResponse(answer: { id: string; approved: boolean; reason?: string }): Promise<void>;
}

export type ToolOutput = { readonly tool: string; readonly toolCallId: string } & (
  { readonly output: unknown } | { readonly state: "output-error"; readonly errorText: string }
);

/** What differs between the pages: how a person reads and presses. */
export interface Hands {
  readonly chat: () => Chat;
  readonly see: () => string[];
  readonly say: (text: string) => void;
  readonly decide: (approvalId: string, approved: boolean, reason: string | undefined) => void;
  readonly close: () => void;
}

export interface Client {
  readonly name: string;
  readonly transport: "http" | "socket";
  /** Clients of the first 6.0 append a resumed answer to what they have of it. */
  readonly resumesFromEmptyOnly?: boolean;
  readonly open: (opening: Opening) => Page;
}

export class Page {
  readonly toolCalls: ToolCall[] = [];

  constructor(
    readonly chatId: string,
    readonly wire: Wire,
    readonly hands: Hands,
  ) {}

  get messages(): readonly Message[] {
    return this.hands.chat().messages;
  }

  get error(): Error | undefined {
    return this.hands.chat().error;
  }

  seen(): string[] {
    return this.hands.see();
  }

  say(text: string): void {
    this.hands.say(text);
  }

  /** What an `onToolCall` does with its call. */
  bring(call: ToolCall, output: unknown): void {
    void this.hands.chat().addToolOutput({ tool: call.toolName, toolCallId: call.toolCallId, output });
  }

  bringError({ toolName, toolCallId }: ToolCall, errorText: string): void {
    void this.hands.chat().addToolOutput({ tool: toolName, toolCallId, state: "output-error", errorText });
  }

  /** Answers the open call of this tool, the first or the `nth`. */
  answer(tool: string, output: unknown, nth = 0): void {
    this.bring(this.#open(tool, nth), output);
  }

  fail(tool: string, errorText: string, nth = 0): void {
    this.bringError(this.#open(tool, nth), errorText);
  }

  /** Allows or denies the first or the `nth` request for this tool. */
  decide(tool: string, approved: boolean, { reason, nth = 0 }: { reason?: string; nth?: number } = {}): void {
    const asking = this.parts(tool).filter((part) => part.state === "approval-requested");
    const approval = asking[nth]?.approval;
    if (approval === undefined) {
      throw new Error(`nobody asks for ${tool}; the page shows:\n${this.seen().join("\n")}`);
    }
    this.hands.decide(approval.id, approved, reason);
  }

  /** Posts what the page has, as a page without helpers does after an answer. */
  post(): void {
    void this.hands.chat().sendMessage();
  }

  /** Requests the answer in progress from the server. */
  resume(): void {
    void this.hands.chat().resumeStream();
  }

  parts(tool: string): Part[] {
    return this.messages.flatMap((message) => message.parts.filter((part) => toolOf(part) === tool));
  }

  /** Waits until a line of the page contains these words. */
  async sees(words: string, withinMs?: number): Promise<void> {
    const fact = (): boolean => this.seen().some((line) => line.includes(words));
    await until(
      fact,
      () => `"${words}" on the page, which shows:\n${this.seen().join("\n")}\n${this.#trouble()}`,
      withinMs,
    );
  }

  /** Waits until the client is idle: no response is open, and the chat is ready or failed. */
  async rests(): Promise<void> {
    const from = performance.now();
    const quiet = (): boolean => Math.min(this.wire.quietFor, performance.now() - from) > 100;
    await until(
      () => quiet() && ["ready", "error"].includes(this.hands.chat().status),
      () => `a client at rest: ${this.#trouble()}`,
    );
  }

  /** Waits until nothing was sent or received for two seconds: a client that posts in a loop never gets here. */
  async quiet(): Promise<void> {
    const from = performance.now();
    const quiet = (): boolean => Math.min(this.wire.quietFor, performance.now() - from) > 2_000;
    await until(quiet, () => `two quiet seconds: ${this.#trouble()}`, 30_000);
    await this.rests();
  }

  close(): void {
    this.hands.close();
  }

  #open(tool: string, nth: number): ToolCall {
    const open = this.parts(tool).filter((part) => !part.state?.startsWith("output-"));
    const { toolCallId, input } = open[nth] ?? {};
    if (toolCallId === undefined) {
      throw new Error(`no call of ${tool} is open; the page shows:\n${this.seen().join("\n")}`);
    }
    return { toolName: tool, toolCallId, input };
  }

  #trouble(): string {
    const { status, error } = this.hands.chat();
    const last = this.wire.exchanges.at(-1);
    const heard = `${last?.chunks.length ?? 0} chunks, the last ${last?.chunks.at(-1)?.type ?? "none"}, ${last?.end ?? "open"}`;
    return `status ${status}, error ${error?.message ?? "none"}, posts ${this.wire.posts.length}; on the wire: ${heard}`;
  }
}

/** How a transport over HTTP reaches the server. */
export function httpOptions(
  opening: Opening,
  wire: Wire,
): { api: string; fetch: typeof fetch; body: object } {
  return { api: `${opening.url}/api/chat`, fetch: wire.fetch, body: bodyOf(opening) };
}

/** What the page adds to each of its posts. */
export function bodyOf({ wait }: Opening): object {
  return wait === undefined ? {} : { wait };
}
