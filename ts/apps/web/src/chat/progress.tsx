// How far running tools and programs are, as they say themselves: their words, and a bar where the words hold a share.
import type { CardView } from "@farhand/react";
import { sentenceOf } from "@farhand/react";
import { type ReactNode, useSyncExternalStore } from "react";
import { useSite } from "./site.ts";

export function ProgressLines({ views }: { views: readonly CardView[] }): ReactNode {
  const { feed } = useSite();
  const told = useSyncExternalStore(feed.onProgress, () => feed.progress);
  const running = views.filter(({ call, state }) => call.phase !== "settled" && state.name === "running" && told.has(call.id));
  return running.map(({ call }) => <Line key={call.id} name={sentenceOf(call.tool)} text={told.get(call.id) ?? ""} />);
}

function Line({ name, text }: { name: string; text: string }): ReactNode {
  const share = shareIn(text);
  return (
    <div className="flex flex-col gap-1.5 px-1 text-[13px] text-muted" data-progress>
      <p role="status" className="wrap-anywhere"><span className="font-medium text-text">{name}</span> {text}</p>
      {share !== undefined && <progress max={1} value={share} aria-label={name} className="fh-progress" />}
    </div>
  );
}

/** `40 %`, `3 of 12`, `3/12`; undefined if the words hold no share. */
export function shareIn(text: string): number | undefined {
  const percent = /(\d+(?:\.\d+)?)\s*%/.exec(text)?.[1];
  if (percent !== undefined) {
    return Math.min(1, Number(percent) / 100);
  }
  const [, part, whole] = /\b(\d+)\s*(?:of|\/)\s*(\d+)\b/.exec(text) ?? [];
  return part === undefined || Number(whole) === 0 ? undefined : Math.min(1, Number(part) / Number(whole));
}
