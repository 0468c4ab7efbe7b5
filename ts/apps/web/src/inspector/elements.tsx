// Small elements of the Inspector: a card, coloured JSON, a copy button, an empty state.
import { Check, type LucideIcon } from "lucide-react";
import { type ReactNode, useState, useSyncExternalStore } from "react";
import { PLAIN } from "../chat/parts.tsx";
import { SIGN_IN } from "../server.ts";
import type { Answer } from "./ask.ts";
import { type Piece, piecesOf, writtenOf } from "./json.ts";

export function Card({ label, children, className = "" }: { label: string; children: ReactNode; className?: string }): ReactNode {
  return <section aria-label={label} className={`overflow-hidden rounded-card border border-line bg-surface shadow-soft ${className}`}>{children}</section>;
}

const COLOURS: Readonly<Record<Piece["kind"], string>> = {
  name: "text-tint-text",
  text: "text-green",
  number: "text-amber",
  word: "text-amber",
  sign: "text-muted",
};

export function Json({ value }: { value: unknown }): ReactNode {
  return (
    <Code>
      {piecesOf(writtenOf(value)).map(({ kind, text }, number) => (
        // the pieces of one text, which is always replaced as a whole
        <span key={number} className={COLOURS[kind]}>{text}</span>
      ))}
    </Code>
  );
}

export function Code({ children }: { children: ReactNode }): ReactNode {
  return <pre tabIndex={0} className="m-0 max-h-96 overflow-auto rounded-card bg-sunken p-4 font-mono text-xs leading-[1.6] wrap-anywhere whitespace-pre-wrap">{children}</pre>;
}

/** `text` may have to be loaded first; if that fails, nothing is copied, and the button says so. */
export function Copy({ icon: Icon, words, text, title }: { icon: LucideIcon; words: string; text: () => string | undefined | Promise<string | undefined>; title?: string }): ReactNode {
  const [said, setSaid] = useState("");
  const copy = async (): Promise<void> => {
    const found = await text();
    const done = found !== undefined && (await written(found));
    setSaid(done ? "Copied" : "Not copied");
    setTimeout(() => setSaid(""), 1_800);
  };
  return (
    <>
      <button type="button" aria-label={words} title={title} className={PLAIN} onClick={() => void copy()}>
        {said === "Copied" ? <Check size={14} aria-hidden="true" className="text-green" /> : <Icon size={14} aria-hidden="true" />}
        <span aria-hidden="true">{said === "" ? words : said}</span>
      </button>
      <span role="status" className="sr-only">{said}</span>
    </>
  );
}

async function written(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

export function Action({ icon: Icon, children, onClick, disabled = false, title }: { icon: LucideIcon; children: ReactNode; onClick: () => void; disabled?: boolean; title?: string }): ReactNode {
  return <button type="button" className={PLAIN} onClick={onClick} disabled={disabled} title={title}><Icon size={14} aria-hidden="true" /> {children}</button>;
}

export function Nothing({ icon: Icon, children }: { icon: LucideIcon; children: ReactNode }): ReactNode {
  return (
    <div className="flex flex-col items-center gap-3 px-6 py-16 text-center text-muted">
      <Icon size={26} strokeWidth={1.4} aria-hidden="true" />
      <p className="m-0 max-w-80">{children}</p>
    </div>
  );
}

const WHY: Readonly<Record<"loading" | "gone" | "off" | "away", string>> = {
  loading: "Loading.",
  gone: "This no longer exists, or it belongs to someone else.",
  off: "You have no access to the Inspector, or it is turned off.",
  away: "The server is not answering. Trying again.",
};

const SIGNED_OUT = "Sign in above to see this.";

/** What to show instead of something that is not here. */
export function Missing({ answer, icon }: { answer: Answer<unknown>; icon: LucideIcon }): ReactNode {
  const isOut = useSyncExternalStore(SIGN_IN.subscribe, () => SIGN_IN.isOut);
  return answer.state === "here" ? null : <div role="status"><Nothing icon={icon}>{isOut ? SIGNED_OUT : WHY[answer.state]}</Nothing></div>;
}
