// What happens in the threads of a person: for those that nobody streams, and for lists of them.
import type { Http } from "./http.ts";
import { accepted, answered, events, type ServerEvent } from "./sse.ts";

export interface NewsOptions {
  /** The id of the last event that was read; everything after it, otherwise what happens from now on. */
  readonly after?: string | undefined;
  readonly signal: AbortSignal;
  /** From now on nothing is missed. */
  readonly onOpen: () => void;
}

/** Ends when the connection does; one that breaks or is refused throws. */
export async function* news(http: Http, { after, signal, onOpen }: NewsOptions): AsyncGenerator<ServerEvent, void> {
  const asking = after === undefined ? {} : { headers: { "last-event-id": after } };
  const body = await accepted(await answered(http, "/api/events", asking, signal));
  onOpen();
  yield* events(body, http);
}

/** Comes back when something happened in this thread. */
export async function happened(http: Http, threadId: string, options: NewsOptions): Promise<void> {
  for await (const { data } of news(http, options)) {
    if ((JSON.parse(data) as { threadId?: unknown }).threadId === threadId) {
      return;
    }
  }
}
