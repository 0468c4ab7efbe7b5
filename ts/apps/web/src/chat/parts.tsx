// Small things that every view of the page uses.
import type { ButtonHTMLAttributes, ReactNode } from "react";
import { BASE } from "../base.ts";

const TONES = {
  amber: "bg-amber-tint text-amber",
  blue: "bg-tint text-tint-text",
  green: "bg-green-tint text-green",
  red: "bg-red-tint text-red",
  grey: "bg-grey-tint text-muted",
} as const;

export type Tone = keyof typeof TONES;

export function Pill({ tone, dot = false, children }: { tone: Tone; dot?: boolean; children: ReactNode }): ReactNode {
  return (
    <span className={`inline-flex shrink-0 items-center gap-1.5 rounded-full px-2.5 py-0.5 text-xs font-medium ${TONES[tone]}`}>
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

/** A run in the Inspector. */
export function runHref(runId: string): string {
  return `${BASE}/_farhand#/runs/${runId}`;
}

export const PLAIN = "inline-flex items-center gap-2 rounded-lg border border-line bg-surface px-3 text-[13px] font-medium min-h-8 hover:bg-sunken disabled:opacity-50";
