// How chunks come to a page, whichever way they travel.
import { type ChatRequest, type Chunk, isChunk } from "@farhand/protocol";
import { parsed } from "./json.ts";

/** A chunk, and where a reader stands once it has it, if the wire tells. */
export interface Frame {
  readonly chunk: Chunk;
  readonly position?: string;
}

/** Ends when the answer has ended; a connection that breaks before throws `Cut`. */
export type Frames = AsyncIterable<Frame>;

export interface Transport {
  /** The answer to a post. Throws `Refused` if the server does not take it. */
  send(request: ChatRequest, signal: AbortSignal): Frames;
  /** The rest of the current answer after a position, or all of it. Undefined: nothing is to be heard. */
  resume(threadId: string, after: string, signal: AbortSignal): Promise<Frames | undefined>;
}

/** Before the first event of an answer. */
export const START = "0.0";

/** The connection was lost, or the server was not there. Nothing is lost: ask again. */
export class Cut extends Error {
  override readonly name = "Cut";

  constructor(readonly retryAfterMs = 0) {
    super("The connection was lost.");
  }
}

/** The server said no; asking again would not help. */
export class Refused extends Error {
  override readonly name = "Refused";

  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** A chunk that was read from the wire; undefined for kinds that are newer than this page. */
export function chunkOf(text: string): Chunk | undefined {
  const value = parsed(text);
  return isChunk(value) ? value : undefined;
}
