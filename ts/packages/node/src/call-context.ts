// What a handler shows to people next to its result. A bad title or bad metadata must not cost the result.
import { fitting, TEXT_BYTES, type ToolContext } from "@farhand/client";

export interface Shown {
  readonly title?: string;
  readonly metadata?: Readonly<Record<string, unknown>>;
}

export interface CallContext extends ToolContext {
  /** Shown to people next to the result; the model does not get it. */
  readonly show: (shown: Shown) => void;
}

const METADATA_BYTES = 16_384;

/** In the form that the server accepts; anything else is left out. */
export function fitShown({ title, metadata }: Shown): Shown {
  return { ...(title === undefined ? {} : { title: fitting(title, TEXT_BYTES) }), ...(isFit(metadata) ? { metadata } : {}) };
}

function isFit(metadata: Shown["metadata"]): metadata is Readonly<Record<string, unknown>> {
  try {
    return typeof metadata === "object" && metadata !== null && !Array.isArray(metadata) && Buffer.byteLength(JSON.stringify(metadata)) <= METADATA_BYTES;
  } catch {
    return false;
  }
}
