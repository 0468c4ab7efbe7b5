// The first thing a newcomer sees: what this is for, and six things to ask.
import { FIRST, MORE, offered, type Sample } from "./samples.ts";
import type { ReactNode } from "react";
import type { Tools } from "./tools.ts";

export function Welcome({ tools, onSample }: { tools: Tools; onSample: (sample: Sample) => void }): ReactNode {
  const first = offered(FIRST, tools);
  const more = offered(MORE, tools);
  return (
    <div className="mx-auto flex w-full max-w-[660px] flex-col px-4 pt-[9vh] pb-8">
      <h2 className="text-2xl font-semibold tracking-tight text-balance">Ask for something a server cannot do alone.</h2>
      <p className="mt-2 text-muted">Some of my tools run in this browser, some on the server, and some only after you say yes. I wait for you, whatever breaks in between.</p>
      {first.length > 0 && (
        <ul className="mt-7 grid gap-3 sm:grid-cols-2" aria-label="Try one">
          {first.map((sample) => (
            <li key={sample.title}>
              <button type="button" onClick={() => onSample(sample)} className="flex w-full items-center gap-3 rounded-card border border-line bg-surface px-4 py-3.5 text-left hover:border-accent/50 hover:shadow-soft">
                <span className="grid size-8 shrink-0 place-items-center rounded-[9px] bg-tint text-tint-text" aria-hidden="true"><sample.Icon size={16} /></span>
                <span className="min-w-0"><span className="block font-medium">{sample.title}</span><span className="block truncate text-[13px] text-muted">{sample.about}</span></span>
              </button>
            </li>
          ))}
        </ul>
      )}
      {more.length > 0 && (
        <>
          <h3 className="mt-8 mb-2.5 text-xs text-muted">More to try</h3>
          <ul className="flex flex-wrap gap-2">
            {more.map((sample) => (
              <li key={sample.title}>
                <button type="button" title={sample.about} onClick={() => onSample(sample)} className="flex items-center gap-2 rounded-full border border-line bg-surface px-3 py-1.5 text-[13px] hover:border-accent/50">
                  <sample.Icon size={14} className="text-muted" aria-hidden="true" /> {sample.title}
                </button>
              </li>
            ))}
          </ul>
        </>
      )}
    </div>
  );
}
