// What happens anywhere in the person's threads, as far as the pages show it.
import { type FeedEvent, SharedFeed } from "@farhand/client";

/** Of the others nothing on the pages would look different. */
const TYPES: ReadonlySet<string> = new Set([
  "again", "run-started", "run-parked", "run-resumed", "run-finished", "run-failed", "call-opened", "call-taken", "call-released", "call-settled",
  "approval-answered", "client-tool.registered", "client-tool.unregistered",
]);

export class Feed extends SharedFeed {
  /** How far running tools and programs are, in their own words, by the ids of their calls. Kept here: a talk may be shown later than its first words come. */
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

  /** Nothing is looked up again because of it, so it is heard apart from the news. */
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
