// How chunks reach a page, over any protocol.
import { type ChatRequest, type Chunk, isChunk } from "@farhand/protocol";
import { parsed } from "./json.ts";

/** A chunk, and the reader's position after it, if the protocol has positions. */
export interface Frame {
  readonly chunk: Chunk;
  readonly position?: string;
}

/** Ends when the answer has ended; throws `Cut` if the connection breaks before. */
export type Frames = AsyncIterable<Frame>;

export interface Transport {
  /** The answer to a post. Throws `Refused` if the server does not accept it. */
  send(request: ChatRequest, signal: AbortSignal): Frames;
  /** The rest of the current answer after a position, or all of it. Undefined: there is nothing to read. */
  resume(threadId: string, after: string, signal: AbortSignal): Promise<Frames | undefined>;
}

/** The position before the first event of an answer. */
export const START = "0.0";

/** The connection was lost, or the server could not be reached. Nothing is lost: try again. */
export class Cut extends Error {
  override readonly name = "Cut";

  constructor(readonly retryAfterMs = 0) {
    super("The connection was lost.");
  }
}

/** The server refused the request; repeating it would not help. */
export class Refused extends Error {
  override readonly name = "Refused";

  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** Parses a chunk; undefined for kinds that are newer than this page. */
export function chunkOf(text: string): Chunk | undefined {
  const value = parsed(text);
  return isChunk(value) ? value : undefined;
}
