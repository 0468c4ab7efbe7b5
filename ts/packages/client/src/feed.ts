// The news of a thread that nobody streams: what others answered while it is parked.
import type { Http } from "./http.ts";
import { accepted, events, reached } from "./sse.ts";

/** Comes back when something happened in this thread. `onOpen`: from now on nothing is missed. */
export async function happened(http: Http, threadId: string, { signal, onOpen }: { signal: AbortSignal; onOpen: () => void }): Promise<void> {
  const body = await accepted(await reached(http.fetch(`${http.url}/api/events`, { headers: http.headers, signal })));
  onOpen();
  for await (const { data } of events(body)) {
    if ((JSON.parse(data) as { threadId?: unknown }).threadId === threadId) {
      return;
    }
  }
}
