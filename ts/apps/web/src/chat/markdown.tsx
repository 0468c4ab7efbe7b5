// Renders the model's Markdown (GitHub's flavour). A separate chunk, loaded with the first answer; until then, or if it fails to load, an
// answer is plain text. HTML stays text, and only images stored on this server are shown.
import { createContext, memo, type ReactNode, Suspense, use, useContext, useDeferredValue } from "react";
import Markdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";
import { BASE } from "../base.ts";
import "../theme/prose.css";
import { CopyButton } from "./parts.tsx";
import { useWords } from "./words.ts";

export default function Rendered({ text }: { text: string }): ReactNode {
  // typing and clicking have priority over rendering a long answer
  const now = useDeferredValue(text);
  return <div className="prose">{sectionsOf(now).map((section, index) => <Section key={index} text={section} />)}</div>;
}

/** While an answer is written, only its last section changes; the others are not parsed again. */
const Section = memo(function Section({ text }: { text: string }): ReactNode {
  if (TOO_DEEP.test(text)) {
    return <InBlock value><Code language={undefined}>{text}</Code></InBlock>;
  }
  return <Markdown remarkPlugins={PLUGINS} components={COMPONENTS} urlTransform={addressOf}>{text}</Markdown>;
});

const FENCE = /^ {0,3}(`{3,}|~{3,})/;
/** A line that cannot belong to the text before the empty line: not a list item, not indented, not a quote. */
const BEGINS = /^(?![-*+>\s]|\d+[.)])\S/;
/** The definition of a link or a footnote, which may be used anywhere in the text. */
const NAMES = /^ {0,3}\[[^\]]+\]:/m;

/** The text, split at empty lines where the text before cannot change what follows. */
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

/** 25 nested lists. Nobody reads more, and a few hundred levels crash a browser. */
const DEEPEST = 50;
/** A line with this many markers takes the parser many seconds, so it is not parsed. */
const TOO_DEEP = /^(?:[ \t]*(?:>|[-*+][ \t]|\d{1,9}[.)][ \t])){100}/m;

/** A remark plugin that shows text with deeper nesting as it was written. */
function asTextIfTooDeep(): (root: Node, file: unknown) => void {
  return (root, file) => {
    if (isDeeperThan(DEEPEST, root)) {
      root.children = [{ type: "code", value: String(file) }];
    }
  };
}

/** Level by level: a recursive function would overflow the stack on the very input that it looks for. */
function isDeeperThan(levels: number, root: Node): boolean {
  let level: readonly Node[] = [root];
  for (let depth = 0; depth <= levels && level.length > 0; depth += 1) {
    level = level.flatMap(({ children = [] }) => children);
  }
  return level.length > 0;
}

const PLUGINS = [remarkGfm, asTextIfTooDeep];
const OWN_FILE = /^(?:\/[^?#\\]*)?(?:\/api\/files\/)?(blob_[0-9a-f]{32})$/;

/** The address that a link may have: http and https, anchors in the text, and files of this server; empty for any other. */
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
  // as a separate word: the text "nasa.com" does not show that a link goes to "a.co"
  const isShown = typeof children === "string" && children.toLowerCase().split(/[\s/]+/).includes(host);
  return <a href={href} target="_blank" rel="noopener noreferrer" title={href}><InLink value>{children}</InLink>{!isShown && <span className="host">{` ${host}`}</span>}</a>;
}

/** Loads nothing from elsewhere: an address in an answer could leak the conversation to another server. */
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

/** Loaded when code appears; without it, code is shown without colours. */
const highlighter = lazily(async () => (await import("./highlight.ts")).highlight, () => undefined);

const Coloured = memo(function Coloured({ language, text }: { language: string | undefined; text: string }): ReactNode {
  const highlight = use(highlighter());
  return language === undefined || highlight === undefined ? text : highlight(language, text);
});

function lazily<T>(load: () => Promise<T>, otherwise: () => undefined): () => Promise<T | undefined> {
  let loading: Promise<T | undefined> | undefined;
  return () => (loading ??= load().catch(otherwise));
}
