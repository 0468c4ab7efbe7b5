// The first view for a newcomer: the agent's name, and what it can be asked.
import type { ReactNode } from "react";
import { logoOf, useAbout } from "./about.ts";
import { iconFor, type Starter } from "./starters.ts";
import { useWords } from "./words.ts";

const FIRST = 6;

export function Welcome({ onStarter }: { onStarter: (starter: Starter) => void }): ReactNode {
  const words = useWords();
  const about = useAbout();
  const starters = about?.starters ?? [];
  const first = starters.slice(0, FIRST);
  const more = starters.slice(FIRST);
  const logo = about === undefined ? undefined : logoOf(about);
  const title = about?.title ?? about?.welcome ?? words.welcomeTitle;
  const text = about?.title == null && about?.welcome != null ? undefined : (about?.welcome ?? words.welcomeText);
  return (
    <div data-welcome className="mx-auto flex w-full max-w-[660px] flex-col px-4 pt-[9vh] pb-8">
      {logo !== undefined && <img src={logo} alt="" className="mb-5 max-h-12 max-w-40 self-start rounded-xl" />}
      <h2 className="text-2xl font-semibold tracking-tight text-balance">{title}</h2>
      {text !== undefined && <p className="mt-2 whitespace-pre-line text-muted">{text}</p>}
      {first.length > 0 && (
        <ul className="mt-7 grid gap-3 sm:grid-cols-2" aria-label={words.tryOne}>
          {first.map((starter) => {
            const Icon = iconFor(starter.title, starter.prompt);
            return (
              <li key={starter.title} className="min-w-0">
                <button type="button" onClick={() => onStarter(starter)} className="flex h-full w-full items-center gap-3 rounded-card border border-line bg-surface px-4 py-3.5 text-left hover:border-accent/50 hover:shadow-soft">
                  <span className="grid size-8 shrink-0 place-items-center rounded-[9px] bg-tint text-tint-text" aria-hidden="true"><Icon size={16} /></span>
                  <span className="min-w-0"><span className="block font-medium wrap-anywhere">{starter.title}</span>{starter.about != null && starter.about !== "" && <span className="block text-[13px] text-muted wrap-anywhere">{starter.about}</span>}</span>
                </button>
              </li>
            );
          })}
        </ul>
      )}
      {more.length > 0 && (
        <>
          <h3 className="mt-8 mb-2.5 text-xs text-muted">{words.moreToTry}</h3>
          <ul className="flex flex-wrap gap-2">
            {more.map((starter) => {
              const Icon = iconFor(starter.title, starter.prompt);
              return (
                <li key={starter.title}>
                  <button type="button" title={starter.about} onClick={() => onStarter(starter)} className="flex items-center gap-2 rounded-full border border-line bg-surface px-3 py-1.5 text-[13px] hover:border-accent/50">
                    <Icon size={14} className="text-muted" aria-hidden="true" /> {starter.title}
                  </button>
                </li>
              );
            })}
          </ul>
        </>
      )}
    </div>
  );
}
