// The events of a person's threads: for threads whose stream is not open, and for lists of threads.
import type { Http } from "./http.ts";
import { accepted, answered, events, type ServerEvent } from "./sse.ts";

export interface FeedOptions {
  /** The id of the last event that was read: everything after it follows. Without it, only new events. */
  readonly after?: string | undefined;
  /** Only the events of this thread. */
  readonly thread?: string | undefined;
  readonly signal: AbortSignal;
  /** Called once the stream is open: from then on no event is missed. */
  readonly onOpen: () => void;
}

/** Reads events until the connection ends; throws if it breaks or is refused. */
export async function* readFeed(http: Http, { after, thread, signal, onOpen }: FeedOptions): AsyncGenerator<ServerEvent, void> {
  const asking = after === undefined ? {} : { headers: { "last-event-id": after } };
  const body = await accepted(await answered(http, `/api/events${queryOf(thread)}`, asking, signal));
  onOpen();
  yield* events(body, http);
}

export function queryOf(thread: string | undefined): string {
  return thread === undefined ? "" : `?thread=${encodeURIComponent(thread)}`;
}
