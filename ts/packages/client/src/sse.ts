// The chat stream as server-sent events over fetch. Owns the framing; must not know what a chunk means.
import { createParser, type EventSourceMessage } from "eventsource-parser";
import { type Asking, type Http, patienceOf, refusalOf, request, retryAfterOf } from "./http.ts";
import { parsed } from "./json.ts";
import { chunkOf, Cut, type Frame, type Frames, Refused, START, type Transport } from "./transport.ts";
import { within } from "./wait.ts";

const DONE = "[DONE]";

export type ServerEvent = EventSourceMessage;

export function sseTransport(http: Http): Transport {
  return {
    async *send(message, signal) {
      const body = JSON.stringify({ ...message, wait: "hold" });
      // with positions from the first event on, so that a cut stream can be continued
      const response = await answered(http, `/api/chat?after=${START}`, { body }, signal);
      yield* read(await accepted(response), http);
    },
    async resume(threadId, after, signal) {
      const path = `/api/chat/${encodeURIComponent(threadId)}/stream?after=${encodeURIComponent(after)}`;
      const response = await answered(http, path, {}, signal);
      // too many open streams at this moment; the answer can be read later
      if (response.status === 429) {
        throw new Cut(retryAfterOf(response));
      }
      return response.status === 204 ? undefined : read(await accepted(response), http);
    },
  };
}

/** The frames of a body until `[DONE]`; throws `Cut` if the body ends without it. */
async function* read(body: ReadableStream<Uint8Array>, http: Http): Frames {
  for await (const { data, id } of events(body, http)) {
    if (data === DONE) {
      return;
    }
    const chunk = chunkOf(data);
    if (chunk !== undefined) {
      yield { chunk, ...(id === undefined ? {} : { position: id }) } satisfies Frame;
    }
  }
  throw new Cut();
}

/** The response, once its head has arrived; throws `Cut` if it does not arrive in time. */
export function answered(http: Http, path: string, asking: Asking, signal?: AbortSignal): Promise<Response> {
  const silent = new AbortController();
  const either = signal === undefined ? silent.signal : AbortSignal.any([signal, silent.signal]);
  const response = http.fetch(http.url + path, request(http, asking, either));
  return reached(within(patienceOf(http, asking.body), response, () => silent.abort(new Cut())));
}

/** The events of a body until it ends; a body that is silent for too long ends as well. */
export async function* events(body: ReadableStream<Uint8Array>, { silenceMs }: Pick<Http, "silenceMs">): AsyncGenerator<ServerEvent, void> {
  const ready: ServerEvent[] = [];
  const parser = createParser({ onEvent: (event) => ready.push(event) });
  const decoder = new TextDecoder();
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await reached(within(silenceMs, reader.read(), () => void reader.cancel().catch(() => undefined)));
      if (done) {
        return;
      }
      parser.feed(decoder.decode(value, { stream: true }));
      yield* ready.splice(0);
    }
  } finally {
    // closes the connection when the reader stops early; cancelling a broken body fails
    reader.cancel().catch(() => undefined);
  }
}

/** Turns a failed fetch or read into `Cut`, unless the page aborted it. */
export async function reached<T>(attempt: Promise<T>): Promise<T> {
  try {
    return await attempt;
  } catch (error) {
    throw (error as Error).name === "AbortError" ? error : new Cut();
  }
}

export async function accepted(response: Response): Promise<ReadableStream<Uint8Array>> {
  if (response.ok && response.body !== null) {
    return response.body;
  }
  const text = await reached(response.text());
  if (response.status >= 500) {
    throw new Cut(retryAfterOf(response));
  }
  throw new Refused(response.status, refusalOf(0, parsed(text)).reason);
}
