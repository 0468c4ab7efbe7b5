// A thread on the awaiting protocol: the response ends at a pause, and continues once every call of the pause is answered.
import type { AwaitedTool, ToolResultsRequest } from "@farhand/protocol";
import type { HandlerMap } from "../executor.ts";
import { type Http, httpOf, type HttpOptions } from "../http.ts";
import { accepted, answered, events } from "../sse.ts";
import { Cut, Refused } from "../transport.ts";
import { backOff } from "../wait.ts";
import { type AwaitingEvent, readTag } from "./tags.ts";

export interface AwaitingOptions extends HttpOptions {
  readonly handlers: HandlerMap;
  /** Asks a person about a call that needs approval; without it, every such call is denied. */
  readonly approve?: (call: AwaitedTool) => boolean | Promise<boolean>;
  /** The thread to continue; by default, a new one. */
  readonly threadId?: string;
  readonly backOff?: (attempt: number) => number;
}

type ToolResult = ToolResultsRequest["tool_results"][number];

type Request = { readonly path: string; readonly body?: string };

export class AwaitingThread {
  readonly #http: Http;
  readonly #done = new Map<string, ToolResult>();
  #threadId: string | undefined;
  #position: string | undefined;

  constructor(private readonly options: AwaitingOptions) {
    this.#http = httpOf(options);
    this.#threadId = options.threadId;
  }

  get threadId(): string | undefined {
    return this.#threadId;
  }

  /** Yields all events until the answer ends, across its pauses. A pause that cannot be parsed ends it as well. */
  run(prompt: string): AsyncGenerator<AwaitingEvent, void> {
    const named = this.#threadId === undefined ? {} : { agent_uuid: this.#threadId };
    return this.#follow({ path: "/agent/run", body: JSON.stringify({ user_prompt: prompt, ...named }) });
  }

  /** Reads the current run again from its start and continues: after a reload, or after a pause that could not be parsed. */
  retry(): AsyncGenerator<AwaitingEvent, void> {
    this.#position = undefined;
    return this.#follow(this.#rest());
  }

  async *#follow(first: Request): AsyncGenerator<AwaitingEvent, void> {
    for (let request: Request | undefined = first; request !== undefined; ) {
      let paused: readonly AwaitedTool[] | undefined;
      for await (const event of this.#frames(request)) {
        paused = event.type === "pause" ? event.calls : event.type === "unreadable" ? undefined : paused;
        yield event;
      }
      request = paused === undefined ? undefined : await this.#answers(paused);
    }
  }

  /** Yields the frames of one response; after a cut it continues from its position. */
  async *#frames(first: Request): AsyncGenerator<AwaitingEvent, void> {
    let request = first;
    for (let attempt = 0; ; attempt += 1) {
      try {
        yield* this.#read(request);
        return;
      } catch (error) {
        const next = this.#after(error, request);
        if (next === undefined) {
          throw error;
        }
        request = next;
      }
      await new Promise((wake) => setTimeout(wake, (this.options.backOff ?? backOff)(attempt)));
    }
  }

  async *#read({ path, body }: Request): AsyncGenerator<AwaitingEvent, void> {
    const isRead = body === undefined && this.#position !== undefined;
    const position = isRead ? { "last-event-id": this.#position ?? "" } : {};
    const response = await answered(this.#http, path, { body, headers: position });
    if (response.status === 204) {
      return;
    }
    for await (const { data, id } of events(await accepted(response), this.#http)) {
      this.#position = id ?? this.#position;
      if (data === "[DONE]") {
        return;
      }
      const event = readTag(data);
      this.#threadId = event.type === "meta" ? event.meta.agent_uuid : this.#threadId;
      yield event;
    }
    throw new Cut();
  }

  /** The request to make after a failure; undefined if the failure is final. A new thread whose id never arrived cannot be resumed. */
  #after(error: unknown, request: Request): Request | undefined {
    const isResult = request.path === "/agent/tool_results";
    const isRepeated = isResult && error instanceof Refused && error.status === 409 && /repeated/i.test(error.message);
    if (isRepeated) {
      return this.#rest();
    }
    if (!(error instanceof Cut)) {
      return undefined;
    }
    // the same results are applied once, so they may be sent again; a message may not
    return isResult ? request : this.#threadId === undefined || this.#position === undefined ? undefined : this.#rest();
  }

  #rest(): Request {
    return { path: `/agent/${encodeURIComponent(this.#threadId ?? "")}/stream` };
  }

  async #answers(calls: readonly AwaitedTool[]): Promise<Request> {
    const results = await Promise.all(calls.map((call) => this.#answer(call)));
    const body = JSON.stringify({ agent_uuid: this.#threadId, tool_results: results });
    return { path: "/agent/tool_results", body };
  }

  /** The outcome of the call, computed once per page load, even if the pause is read again. */
  async #answer(call: AwaitedTool): Promise<ToolResult> {
    const known = this.#done.get(call.tool_use_id);
    const result = known ?? (await this.#result(call));
    this.#done.set(call.tool_use_id, result);
    return result;
  }

  async #result(call: AwaitedTool): Promise<ToolResult> {
    const id = { tool_use_id: call.tool_use_id };
    if (call.needs_approval === true && (await this.options.approve?.(call)) !== true) {
      return { ...id, approved: false };
    }
    const yes = call.needs_approval === true ? { approved: true } : {};
    const handler = Object.hasOwn(this.options.handlers, call.name) ? this.options.handlers[call.name] : undefined;
    if (typeof handler !== "function") {
      // a server tool that was approved needs no result
      return call.needs_approval === true ? { ...id, ...yes } : { ...id, content: `This page has no handler for "${call.name}".`, is_error: true };
    }
    try {
      const context = { callId: call.tool_use_id, signal: new AbortController().signal };
      const output: unknown = await handler(call.input as never, context);
      return { ...id, ...yes, content: typeof output === "string" ? output : JSON.stringify(output ?? null) };
    } catch (error) {
      return { ...id, ...yes, content: error instanceof Error ? error.message : String(error), is_error: true };
    }
  }
}
