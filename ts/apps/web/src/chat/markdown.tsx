// What the model writes, as Markdown of GitHub's flavour. A chunk of its own, loaded when the first answer is there; until then
// and wherever it fails, an answer is plain text. HTML in it stays text, pictures come from files of this server alone.
import { createContext, memo, type ReactNode, Suspense, use, useContext, useDeferredValue } from "react";
import Markdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";
import { BASE } from "../base.ts";
import "../theme/prose.css";
import { CopyButton } from "./parts.tsx";
import { useWords } from "./words.ts";

export default function Rendered({ text }: { text: string }): ReactNode {
  // whoever types or presses comes first; the text of a long answer follows
  const now = useDeferredValue(text);
  return <div className="prose">{sectionsOf(now).map((section, index) => <Section key={index} text={section} />)}</div>;
}

/** While an answer is written only its last section changes, and the others are not read again. */
const Section = memo(function Section({ text }: { text: string }): ReactNode {
  if (TOO_DEEP.test(text)) {
    return <InBlock value><Code language={undefined}>{text}</Code></InBlock>;
  }
  return <Markdown remarkPlugins={PLUGINS} components={COMPONENTS} urlTransform={addressOf}>{text}</Markdown>;
});

const FENCE = /^ {0,3}(`{3,}|~{3,})/;
/** A line that cannot belong to what stands before the empty line: no list, no indentation, no quote. */
const BEGINS = /^(?![-*+>\s]|\d+[.)])\S/;
/** Links by name and footnotes may be told of anywhere. */
const NAMES = /^ {0,3}\[[^\]]+\]:/m;

/** Cut at empty lines, where nothing before can change what stands behind. */
export function sectionsOf(text: string): readonly string[] {
  if (NAMES.test(text)) {
    return [text];
  }
  const sections: string[][] = [[]];
  let fence: string | undefined;
  let isAfterEmpty = false;
  for (const line of text.split("\n")) {
    const mark = FENCE.exec(line)?.[1];
    if (fence === undefined && isAfterEmpty && BEGINS.test(line)) {
      sections.push([]);
    }
    sections.at(-1)?.push(line);
    if (fence === undefined) {
      fence = mark;
    } else if (mark?.startsWith(fence) === true && line.trim() === mark) {
      fence = undefined;
    }
    isAfterEmpty = line.trim() === "";
  }
  return sections.map((lines) => lines.join("\n"));
}

interface Node {
  readonly type: string;
  readonly value?: string;
  children?: readonly Node[];
}

/** Lists in lists, 25 of them. More is nothing that anybody reads, and a few hundred bring a browser down. */
const DEEPEST = 50;
/** A line of so many marks takes the parser many seconds, so it is not even read. */
const TOO_DEEP = /^(?:[ \t]*(?:>|[-*+][ \t]|\d{1,9}[.)][ \t])){100}/m;

/** What is nested deeper is shown as it was written. */
function asTextIfTooDeep(): (root: Node, file: unknown) => void {
  return (root, file) => {
    if (isDeeperThan(DEEPEST, root)) {
      root.children = [{ type: "code", value: String(file) }];
    }
  };
}

/** Level by level: a function that calls itself would be brought down by what it looks for. */
function isDeeperThan(levels: number, root: Node): boolean {
  let level: readonly Node[] = [root];
  for (let depth = 0; depth <= levels && level.length > 0; depth += 1) {
    level = level.flatMap(({ children = [] }) => children);
  }
  return level.length > 0;
}

const PLUGINS = [remarkGfm, asTextIfTooDeep];
const OWN_FILE = /^(?:\/[^?#\\]*)?(?:\/api\/files\/)?(blob_[0-9a-f]{32})$/;

/** http and https, places in the text itself, and files of this server. */
export function addressOf(url: string): string {
  const file = OWN_FILE.exec(url)?.[1];
  if (file !== undefined) {
    return `${BASE}/api/files/${file}`;
  }
  return /^https?:\/\/|^#/i.test(url) ? url : "";
}

const InBlock = createContext(false);
const InLink = createContext(false);

const COMPONENTS: Components = {
  a: ({ href = "", children }) => <Link href={href}>{children}</Link>,
  img: ({ src, alt }) => <Picture src={typeof src === "string" ? src : ""} alt={alt ?? ""} />,
  pre: ({ children }) => <InBlock value>{children}</InBlock>,
  code: ({ className, children }) => <Code language={/language-(\S+)/.exec(className ?? "")?.[1]}>{children}</Code>,
  table: ({ children }) => <div className="wide" tabIndex={0} role="group"><table>{children}</table></div>,
  input: ({ checked }) => <input type="checkbox" checked={checked === true} disabled aria-label={checked === true ? "✓" : "–"} />,
};

function Link({ href, children }: { href: string; children: ReactNode }): ReactNode {
  if (!/^https?:/i.test(href)) {
    return href.startsWith("#") ? <a href={href} onClick={(event) => event.preventDefault()}>{children}</a> : <>{children}</>;
  }
  const host = URL.canParse(href) ? new URL(href).host : "";
  // as a word of its own: "nasa.com" does not show that a link goes to "a.co"
  const isShown = typeof children === "string" && children.toLowerCase().split(/[\s/]+/).includes(host);
  return <a href={href} target="_blank" rel="noopener noreferrer" title={href}><InLink value>{children}</InLink>{!isShown && <span className="host">{` ${host}`}</span>}</a>;
}

/** Nothing is loaded from elsewhere: an address in an answer could tell others what was said. */
function Picture({ src, alt }: { src: string; alt: string }): ReactNode {
  const words = useWords();
  const name = alt || words.image;
  const isLinked = useContext(InLink);
  return src.startsWith(`${BASE}/api/files/`) ? <img src={src} alt={name} loading="lazy" /> : src === "" || isLinked ? <>{name}</> : <Link href={src}>{name}</Link>;
}

function Code({ language, children }: { language: string | undefined; children: ReactNode }): ReactNode {
  const isBlock = useContext(InBlock);
  const words = useWords();
  if (!isBlock) {
    return <code>{children}</code>;
  }
  const text = String(children).replace(/\n$/, "");
  return (
    <div className="code">
      <div className="code-head"><span>{language ?? ""}</span><CopyButton text={text} label={words.copyCode} /></div>
      <pre tabIndex={0}><code><Suspense fallback={text}><Coloured language={language} text={text} /></Suspense></code></pre>
    </div>
  );
}

/** Loaded when code appears; without it, code is shown plainly. */
const highlighter = lazily(async () => (await import("./highlight.ts")).highlight, () => undefined);

const Coloured = memo(function Coloured({ language, text }: { language: string | undefined; text: string }): ReactNode {
  const highlight = use(highlighter());
  return language === undefined || highlight === undefined ? text : highlight(language, text);
});

function lazily<T>(load: () => Promise<T>, otherwise: () => undefined): () => Promise<T | undefined> {
  let loading: Promise<T | undefined> | undefined;
  return () => (loading ??= load().catch(otherwise));
}
