// Small elements that every view of the page uses.
import { Check, Copy } from "lucide-react";
import { type ButtonHTMLAttributes, type ReactNode, useEffect, useState } from "react";
import { BASE } from "../base.ts";
import { useWords } from "./words.ts";

const TONES = {
  amber: "bg-amber-tint text-amber",
  blue: "bg-tint text-tint-text",
  green: "bg-green-tint text-green",
  red: "bg-red-tint text-red",
  grey: "bg-grey-tint text-muted",
} as const;

export type Tone = keyof typeof TONES;

export function Pill({ tone, dot = false, title, children }: { tone: Tone; dot?: boolean; title?: string | undefined; children: ReactNode }): ReactNode {
  return (
    <span title={title} className={`inline-flex shrink-0 items-center gap-1.5 rounded-full px-2.5 py-0.5 text-xs font-medium ${TONES[tone]}`}>
      {dot && <span className="size-1.5 rounded-full bg-current" aria-hidden="true" />}
      {children}
    </span>
  );
}

interface IconButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  readonly label: string;
}

export function IconButton({ label, className = "", ...rest }: IconButtonProps): ReactNode {
  return <button type="button" aria-label={label} title={label} className={`grid size-8 shrink-0 place-items-center rounded-lg text-muted hover:bg-sunken hover:text-text ${className}`} {...rest} />;
}

const TOLD_MS = 2_000;

/** A button that copies a text, and says whether it succeeded. */
export function CopyButton({ text, label, className = "" }: { text: string; label?: string; className?: string }): ReactNode {
  const words = useWords();
  const [done, setDone] = useState<"copied" | "failed">();
  useEffect(() => {
    const timer = done === undefined ? undefined : setTimeout(() => setDone(undefined), TOLD_MS);
    return () => clearTimeout(timer);
  }, [done]);
  const copy = (): void => {
    // a page that was not loaded over https has no clipboard
    const copied = navigator.clipboard?.writeText(text) ?? Promise.reject(new Error("no clipboard"));
    void copied.then(() => setDone("copied"), () => setDone("failed"));
  };
  const told = done === "copied" ? words.copied : done === "failed" ? words.copyFailed : "";
  return (
    <>
      <IconButton label={told || (label ?? words.copy)} className={`size-7! ${className}`} onClick={copy}>
        {done === "copied" ? <Check size={14} className="text-green" aria-hidden="true" /> : <Copy size={14} aria-hidden="true" />}
      </IconButton>
      {told !== "" && <span role="status" className="sr-only">{told}</span>}
    </>
  );
}

const ASK_AGAIN_MS = 2_000;

/** Imports a part of the page, again and again until it succeeds: the connection may be lost in the first second. */
export async function untilLoaded<T>(load: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await load();
    } catch {
      await new Promise((resolve) => setTimeout(resolve, ASK_AGAIN_MS));
    }
  }
}

/** A link to a run in the Inspector. */
export function runHref(runId: string): string {
  return `${BASE}/_farhand#/runs/${runId}`;
}

export const PLAIN = "inline-flex items-center gap-2 rounded-lg border border-line bg-surface px-3 text-[13px] font-medium min-h-8 hover:bg-sunken disabled:opacity-50";
export const MAIN = "inline-flex items-center gap-2 rounded-lg border border-transparent bg-accent px-3 text-[13px] font-medium text-on-accent min-h-8 disabled:opacity-50";

const A_DAY_MS = 86_400_000;

/** A date and time, as short as possible. */
export function timeOf(at: number, now: number = Date.now()): string {
  const when = new Date(at);
  const time = when.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  if (at - now < A_DAY_MS && when.getDate() === new Date(now).getDate()) {
    return time;
  }
  // within a week the weekday is unambiguous, and short enough for the line
  const day = at - now < 6 * A_DAY_MS ? { weekday: "short" as const } : { day: "numeric" as const, month: "short" as const };
  return `${when.toLocaleDateString([], day)}, ${time}`;
}
