// Tabs with the expected keyboard and screen-reader behaviour: one tab stop, arrow keys move, the panel is labelled by its tab.
import { type KeyboardEvent, type ReactNode, useId, useRef, useState } from "react";

interface TabsProps {
  readonly label: string;
  readonly first: string;
  readonly panels: Readonly<Record<string, ReactNode>>;
}

export function Tabs({ label, first, panels }: TabsProps): ReactNode {
  const [chosen, setChosen] = useState(first);
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const names = Object.keys(panels);
  const move = (event: KeyboardEvent): void => {
    const to = nextOf(names, chosen, event.key);
    if (to !== undefined) {
      event.preventDefault();
      setChosen(to);
      list.current?.querySelector<HTMLElement>(`[data-name="${to}"]`)?.focus();
    }
  };
  return (
    <div className="flex flex-col gap-2.5">
      <div ref={list} role="tablist" aria-label={label} onKeyDown={move} className="inline-flex self-start rounded-lg bg-sunken p-[3px]">
        {names.map((name) => (
          <button key={name} type="button" role="tab" id={`${id}-${name}`} data-name={name} aria-selected={name === chosen} aria-controls={`${id}-panel`} tabIndex={name === chosen ? 0 : -1} onClick={() => setChosen(name)} className="rounded-md px-3 py-0.5 text-[13px] text-muted aria-selected:bg-surface aria-selected:font-medium aria-selected:text-text aria-selected:shadow-soft">
            {name}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${chosen}`} className="flex flex-col gap-2">{panels[chosen]}</div>
    </div>
  );
}

/** The tab that this key selects; undefined for any other key. */
export function nextOf(names: readonly string[], from: string, key: string): string | undefined {
  const at = names.indexOf(from);
  const steps: Readonly<Record<string, number>> = { ArrowRight: at + 1, ArrowLeft: at - 1 + names.length, Home: 0, End: names.length - 1 };
  const to = Object.hasOwn(steps, key) ? steps[key] : undefined;
  return to === undefined ? undefined : names[to % names.length];
}
