// What happens anywhere in the person's threads, as far as the pages show it.
import { type FeedEvent, SharedFeed } from "@farhand/client";

/** Of the others nothing on the pages would look different. */
const TYPES: ReadonlySet<string> = new Set([
  "again", "run-started", "run-parked", "run-resumed", "run-finished", "run-failed", "call-opened", "call-taken", "call-released", "call-settled",
  "approval-answered", "client-tool.registered", "client-tool.unregistered",
]);

/** How far a tool or a program is with a call, in its own words. */
export interface Progressed {
  readonly callId: string;
  readonly text: string;
}

export class Feed extends SharedFeed {
  override listen(listener: (event: FeedEvent) => void): () => void {
    return super.listen((event) => TYPES.has(event.type) && listener(event));
  }

  /** Nothing is looked up again because of it, so it is heard apart from the news. */
  onProgress(listener: (event: Progressed) => void): () => void {
    return super.listen((event) => {
      const { callId, text } = event as Partial<Progressed>;
      if (event.type === "call-progressed" && callId !== undefined && text !== undefined) {
        listener({ callId, text });
      }
    });
  }
}
