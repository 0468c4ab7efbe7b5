// The input of a call, for somebody who decides by it: nothing hides in it, and the beginning of every value is in sight.
import { type ReactNode, type RefObject, useEffect, useMemo, useRef, useState } from "react";
import { fold, grouped, type Piece, piecesOf } from "../visible.ts";

export type Input = Readonly<Record<string, unknown>>;
export type Drafts = Readonly<Record<string, string>>;

const NAME_AT_MOST = 60;
const VALUE_AT_MOST = 200;
/** Fewer than these are shown rather than counted. */
const WORTH_FOLDING = 40;
const LINES_AT_MOST = 3;

/** A text with its marks, on one line as long as it takes; `isWhole` breaks the lines where the text does. */
export function VisibleText({ pieces, isWhole = false }: { pieces: readonly Piece[]; isWhole?: boolean }): ReactNode {
  return (
    <bdi>
      {pieces.map(({ kind, text }, index) => (
        // the pieces of one text, which is replaced as a whole
        kind === "text" ? <span key={index}>{text}</span> : <span key={index}><Mark text={text} />{isWhole && kind === "break" ? "\n" : ""}</span>
      ))}
    </bdi>
  );
}

function Mark({ text }: { text: string }): ReactNode {
  return <span className="fh-mark" role="img" aria-label={spokenMark(text)}>{text}</span>;
}

function spokenMark(text: string): string {
  return text.replaceAll("⏎", "line break").replaceAll("␣", "blank").replaceAll("⇥", "tab").replaceAll("×", "times ");
}

export function InputTable({ input }: { input: Input }): ReactNode {
  return (
    <table className="fh-table">
      <tbody>
        {Object.entries(input).map(([name, value]) => (
          <tr key={name}>
            <th scope="row"><Name name={name} /></th>
            <td><Value value={value} /></td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Name({ name }: { name: string }): ReactNode {
  const { pieces, hidden } = fold(name, NAME_AT_MOST);
  return <><VisibleText pieces={pieces} />{hidden > 0 && <Hidden count={hidden} />}</>;
}

function Hidden({ count }: { count: number }): ReactNode {
  return <span className="fh-more">{`… ${grouped(count)} ${count === 1 ? "character" : "characters"} more`}</span>;
}

function Value({ value }: { value: unknown }): ReactNode {
  const [isWhole, setWhole] = useState(false);
  const text = lineOf(value);
  const { pieces, hidden } = useMemo(() => fold(text, VALUE_AT_MOST), [text]);
  const whole = useMemo(() => (isWhole ? wholeOf(value) : []), [value, isWhole]);
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    // a card that has grown keeps its buttons in sight
    if (isWhole) {
      button.current?.closest(".fh-card")?.scrollIntoView({ block: "nearest" });
    }
  }, [isWhole]);
  if (hidden < WORTH_FOLDING) {
    const short = piecesOf(text);
    // a few lines are shown as such; many would push the beginnings of the others out of sight
    return <VisibleText pieces={short} isWhole={short.filter(({ kind }) => kind === "break").length <= LINES_AT_MOST} />;
  }
  return (
    <>
      {isWhole ? (
        <span className="fh-whole" tabIndex={0}><VisibleText pieces={whole} isWhole /></span>
      ) : (
        <><VisibleText pieces={pieces} /><Hidden count={hidden} /></>
      )}
      <button ref={button} type="button" className="fh-unfold" aria-expanded={isWhole} onClick={() => setWhole(!isWhole)}>{isWhole ? "Show less" : `Show all ${sizeOf(text)}`}</button>
    </>
  );
}

function sizeOf(text: string): string {
  const words = text.split(/\s+/).filter((word) => word !== "").length;
  return words > 20 ? `${grouped(words)} words` : `${grouped([...text].length)} characters`;
}

/** Texts as they are, everything else as JSON on one line. */
function lineOf(value: unknown): string {
  // a line break inside of a text is written as \n in JSON, so the others are only its layout
  return typeof value === "string" ? value : shown(value).replace(/\n\s*/g, " ");
}

function wholeOf(value: unknown): readonly Piece[] {
  if (typeof value === "string") {
    return piecesOf(value);
  }
  const lines = shown(value).split("\n");
  return lines.flatMap((line, number) => {
    const indent = /^ */.exec(line)?.[0] ?? "";
    return [layout(`${number === 0 ? "" : "\n"}${indent}`), ...piecesOf(line.slice(indent.length))];
  });
}

function layout(text: string): Piece {
  return { kind: "text", text, length: 0 };
}

interface FormProps {
  readonly input: Input;
  readonly drafts: Drafts;
  readonly onChange: (drafts: Drafts) => void;
  readonly isOff: boolean;
}

export function InputForm({ input, drafts, onChange, isOff }: FormProps): ReactNode {
  return (
    <div className="fh-form">
      {Object.entries(drafts).map(([name, draft]) => {
        const isWrong = valueOf(input[name], draft) === undefined;
        return (
          <div key={name} className="fh-field">
            <label className="fh-field">
              <span><Name name={name} /></span>
              <textarea className="fh-input" rows={draft.includes("\n") ? 4 : 1} value={draft} disabled={isOff} aria-invalid={isWrong} onChange={(event) => onChange({ ...drafts, [name]: event.target.value })} />
            </label>
            {isWrong ? <span className="fh-bad" role="alert">This is not JSON.</span> : <Spelling text={draft} />}
          </div>
        );
      })}
    </div>
  );
}

/** A field shows no marks: where it would need some, what is in it is spelled below. */
function Spelling({ text }: { text: string }): ReactNode {
  const { pieces, hidden } = useMemo(() => fold(text, VALUE_AT_MOST), [text]);
  const isStrange = pieces.some(({ kind, text: shown }) => kind === "mark" || (kind === "break" && shown !== "⏎"));
  return isStrange ? <span>Sent as: <span className="fh-spelling"><VisibleText pieces={pieces} />{hidden > 0 && <Hidden count={hidden} />}</span></span> : null;
}

export function draftsOf(input: Input): Drafts {
  return Object.fromEntries(Object.entries(input).map(([name, value]) => [name, typeof value === "string" ? value : spelled(value)]));
}

/** Texts are edited as they are, everything else as JSON. */
function spelled(value: unknown): string {
  return JSON.stringify(value, undefined, 1) ?? "null";
}

/** As JSON, for reading: a number that this browser could not keep exactly says so, since another one would run. */
function shown(value: unknown): string {
  return JSON.stringify(value, (_, each: unknown) => (isRounded(each) ? `about ${String(each)}, rounded by this browser` : each), 1) ?? "null";
}

function isRounded(value: unknown): boolean {
  return typeof value === "number" && Math.abs(value) > Number.MAX_SAFE_INTEGER;
}

/** Whether all of it can be sent back as it is: an edit would replace a rounded number by the rounded one. */
export function isExact(value: unknown): boolean {
  return typeof value === "object" && value !== null ? Object.values(value).every(isExact) : !isRounded(value);
}

function valueOf(before: unknown, draft: string): { readonly value: unknown } | undefined {
  if (typeof before === "string") {
    return { value: draft };
  }
  try {
    return { value: JSON.parse(draft) as unknown };
  } catch {
    return undefined;
  }
}

export function inputOf(input: Input, drafts: Drafts): { ok: true; input: Input } | { ok: false } {
  const values = Object.entries(drafts).map(([name, draft]) => [name, valueOf(input[name], draft)] as const);
  const isWhole = values.every(([, value]) => value !== undefined);
  return isWhole ? { ok: true, input: Object.fromEntries(values.map(([name, value]) => [name, value?.value])) } : { ok: false };
}

/** Calls `onRead` once the end of the list has been in sight. */
export function useReading(list: RefObject<HTMLElement | null>, onRead: () => void): void {
  useEffect(() => {
    const box = list.current;
    const look = (): void => {
      if (box === null || box.scrollHeight - box.scrollTop - box.clientHeight <= AT_THE_END_PX) {
        onRead();
      }
    };
    look();
    box?.addEventListener("scroll", look, { passive: true });
    addEventListener("resize", look);
    return () => {
      box?.removeEventListener("scroll", look);
      removeEventListener("resize", look);
    };
  });
}

const AT_THE_END_PX = 4;
