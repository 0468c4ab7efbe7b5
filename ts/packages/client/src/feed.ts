// What happens in the threads of a person: for those that nobody streams, and for lists of them.
import type { Http } from "./http.ts";
import { accepted, answered, events, type ServerEvent } from "./sse.ts";

export interface FeedOptions {
  /** The id of the last event that was read; everything after it, otherwise what happens from now on. */
  readonly after?: string | undefined;
  /** The only thread to hear of. */
  readonly thread?: string | undefined;
  readonly signal: AbortSignal;
  /** From now on nothing is missed. */
  readonly onOpen: () => void;
}

/** Ends when the connection does; one that breaks or is refused throws. */
export async function* readFeed(http: Http, { after, thread, signal, onOpen }: FeedOptions): AsyncGenerator<ServerEvent, void> {
  const asking = after === undefined ? {} : { headers: { "last-event-id": after } };
  const body = await accepted(await answered(http, `/api/events${queryOf(thread)}`, asking, signal));
  onOpen();
  yield* events(body, http);
}

export function queryOf(thread: string | undefined): string {
  return thread === undefined ? "" : `?thread=${encodeURIComponent(thread)}`;
}
