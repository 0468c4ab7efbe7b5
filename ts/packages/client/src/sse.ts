// The stream as server-sent events over fetch. Owns the framing; must not know what a chunk does.
import { createParser } from "eventsource-parser";
import { type Http, reasonOf } from "./http.ts";
import { chunkOf, Cut, type Frame, type Frames, Refused, START, type Transport } from "./transport.ts";

const DONE = "[DONE]";

export function sseTransport(http: Http): Transport {
  return {
    async *send(request, signal) {
      const body = JSON.stringify({ ...request, wait: "hold" });
      const headers = { ...http.headers, "content-type": "application/json" };
      // with positions from the first event on, so that a cut is read on from where it fell
      const response = await reached(http.fetch(`${http.url}/api/chat?after=${START}`, { method: "POST", headers, body, signal }));
      yield* read(await accepted(response));
    },
    async resume(threadId, after, signal) {
      const path = `/api/chat/${encodeURIComponent(threadId)}/stream?after=${encodeURIComponent(after)}`;
      const response = await reached(http.fetch(http.url + path, { headers: http.headers, signal }));
      return response.status === 204 ? undefined : read(await accepted(response));
    },
  };
}

/** The frames of a body until `[DONE]`; a body that ends without it was cut. */
export async function* read(body: ReadableStream<Uint8Array>): Frames {
  for await (const { data, id } of events(body)) {
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

export interface ServerEvent {
  readonly data: string;
  readonly id: string | undefined;
}

export async function* events(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerEvent, void> {
  const ready: ServerEvent[] = [];
  const parser = createParser({ onEvent: ({ data, id }) => ready.push({ data, id }) });
  const decoder = new TextDecoder();
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await reached(reader.read());
      if (done) {
        return;
      }
      parser.feed(decoder.decode(value, { stream: true }));
      yield* ready.splice(0);
    }
  } finally {
    // whoever stops reading lets go of the connection; one that is broken cannot be let go of
    reader.cancel().catch(() => undefined);
  }
}

/** A fetch or a read that fails is a connection that was lost, unless the page itself gave up. */
export async function reached<T>(attempt: Promise<T>): Promise<T> {
  try {
    return await attempt;
  } catch (error) {
    throw error instanceof Error && error.name === "AbortError" ? error : new Cut();
  }
}

export async function accepted(response: Response): Promise<ReadableStream<Uint8Array>> {
  if (response.ok && response.body !== null) {
    return response.body;
  }
  const text = await reached(response.text());
  if (response.status >= 500) {
    throw new Cut((Number(response.headers.get("retry-after")) || 0) * 1_000);
  }
  throw new Refused(response.status, reasonOf(parsed(text)));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
