// The events of all of the person's threads that the pages show.
import { type FeedEvent, SharedFeed } from "@farhand/client";

/** The types that change something on the pages; others are ignored. */
const TYPES: ReadonlySet<string> = new Set([
  "again", "run-started", "run-parked", "run-resumed", "run-finished", "run-failed", "call-opened", "call-taken", "call-released", "call-settled",
  "approval-answered", "client-tool.registered", "client-tool.unregistered",
]);

export class Feed extends SharedFeed {
  /** The progress texts of running tools and programs, by call id. Kept here, because a chat may be opened after the first text has arrived. */
  #progress: ReadonlyMap<string, string> = new Map();
  readonly #onProgress = new Set<() => void>();

  constructor(...given: ConstructorParameters<typeof SharedFeed>) {
    super(...given);
    super.listen((event) => this.#note(event));
  }

  override listen(listener: (event: FeedEvent) => void): () => void {
    return super.listen((event) => TYPES.has(event.type) && listener(event));
  }

  get progress(): ReadonlyMap<string, string> {
    return this.#progress;
  }

  /** Separate from the other events, because progress reloads nothing. */
  onProgress = (listener: () => void): (() => void) => {
    this.#onProgress.add(listener);
    return () => void this.#onProgress.delete(listener);
  };

  #note(event: FeedEvent): void {
    const { callId, text } = event as { readonly callId?: string; readonly text?: string };
    const isOver = event.type === "call-settled";
    if (callId === undefined || (isOver ? !this.#progress.has(callId) : event.type !== "call-progressed" || text === undefined)) {
      return;
    }
    const others = [...this.#progress].filter(([id]) => id !== callId);
    this.#progress = new Map(isOver ? others : [...others, [callId, text ?? ""]]);
    this.#onProgress.forEach((listener) => listener());
  }
}
