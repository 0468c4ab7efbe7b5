// The news of a thread that nobody streams: what others answered while it is parked.
import type { Http } from "./http.ts";
import { accepted, answered, events } from "./sse.ts";

/** Comes back when something happened in this thread. `onOpen`: from now on nothing is missed. */
export async function happened(http: Http, threadId: string, { signal, onOpen }: { signal: AbortSignal; onOpen: () => void }): Promise<void> {
  const body = await accepted(await answered(http, "/api/events", {}, signal));
  onOpen();
  for await (const { data } of events(body, http)) {
    if ((JSON.parse(data) as { threadId?: unknown }).threadId === threadId) {
      return;
    }
  }
}
