// Parses the tags of the awaiting protocol, frame by frame. Each of its tags fills a frame of its own.
import { type AwaitedTool, isAwaitedTool, isMetaInit, type MetaInit } from "@farhand/protocol";

export type AwaitingEvent =
  | { readonly type: "meta"; readonly meta: MetaInit }
  | { readonly type: "pause"; readonly calls: readonly AwaitedTool[] }
  /** A pause tag that cannot be parsed: show the error, and request the stream again. Nothing was executed. */
  | { readonly type: "unreadable"; readonly text: string }
  | { readonly type: "ignored"; readonly callIds: readonly string[] }
  | { readonly type: "gap" }
  | { readonly type: "error"; readonly code: string; readonly message: string }
  /** The model's output, in the format of the stream, as it arrived. */
  | { readonly type: "content"; readonly text: string };

const TAG = /^<(meta_init|awaiting_frontend_tools|ignored_tool_results|stream_gap|content-block-error)\b/;
const ERROR = /^<content-block-error code="([^"]*)">([^]*)<\/content-block-error>$/;
const SECTION = /<!\[CDATA\[([^]*?)\]\]>/g;
const WHOLE = /^<(\w+) data="([^"]*)"><\/\1>$/;

export function readTag(frame: string): AwaitingEvent {
  const name = TAG.exec(frame)?.[1];
  if (name === undefined) {
    return { type: "content", text: frame };
  }
  const data = dataOf(frame);
  switch (name) {
    case "meta_init":
      return isMetaInit(data) ? { type: "meta", meta: data } : { type: "unreadable", text: frame };
    case "awaiting_frontend_tools":
      return isPause(data) ? { type: "pause", calls: data } : { type: "unreadable", text: frame };
    case "ignored_tool_results":
      return { type: "ignored", callIds: Array.isArray(data) ? data.map(String) : [] };
    case "stream_gap":
      return { type: "gap" };
    default:
      return errorOf(frame);
  }
}

/** Ids must be present and unique, since an answer is addressed by its id. */
function isPause(data: unknown): data is AwaitedTool[] {
  if (!Array.isArray(data) || data.length === 0 || !data.every(isAwaitedTool)) {
    return false;
  }
  const ids = new Set(data.map((call) => call.tool_use_id));
  return ids.size === data.length && !ids.has("");
}

function errorOf(frame: string): AwaitingEvent {
  const [, code = "unknown", text = "The run failed."] = ERROR.exec(frame) ?? [];
  return { type: "error", code, message: text.replace(SECTION, "$1") };
}

function dataOf(frame: string): unknown {
  const value = WHOLE.exec(frame)?.[2];
  try {
    return value === undefined ? undefined : JSON.parse(value.replace(/&(quot|lt|gt|amp|#x27);/g, (_, name) => SIGNS[name] ?? ""));
  } catch {
    return undefined;
  }
}

const SIGNS: Readonly<Record<string, string>> = { quot: '"', lt: "<", gt: ">", amp: "&", "#x27": "'" };
