// What a handler says to people beside its result. A decoration must not cost anybody a result.
import { fitting, TEXT_BYTES, type ToolContext } from "@farhand/client";

export interface Shown {
  readonly title?: string;
  readonly metadata?: Readonly<Record<string, unknown>>;
}

export interface CallContext extends ToolContext {
  /** What people are shown beside the result; the model is not. */
  readonly show: (shown: Shown) => void;
}

const METADATA_BYTES = 16_384;

/** As the wire takes it; what it does not take is left out. */
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
