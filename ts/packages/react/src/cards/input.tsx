// The input of a call, for a person who decides about it: nothing can be hidden in it, and the beginning of every value is visible.
import { type ReactNode, type RefObject, useEffect, useId, useMemo, useRef, useState } from "react";
import { type Draft, type Field, type FieldDrafts, firstDrafts } from "../fields.ts";
import { useWords } from "../thread.tsx";
import type { CardView } from "../view.ts";
import { fold, grouped, type Piece, piecesOf } from "../visible-text.ts";
import type { Words } from "../words.ts";
import { Fields } from "./controls.tsx";

export type Input = Readonly<Record<string, unknown>>;

const NAME_AT_MOST = 60;
const VALUE_AT_MOST = 200;
/** Fewer lines than this are shown instead of counted. */
const WORTH_FOLDING = 40;
const LINES_AT_MOST = 3;

/** A text with its marks, on one line; with `isWhole`, each mark for a line break is followed by one. */
export function VisibleText({ pieces, isWhole = false }: { pieces: readonly Piece[]; isWhole?: boolean }): ReactNode {
  return (
    <bdi>
      {pieces.map(({ kind, text }, index) => (
        // the pieces of one text, which is always replaced as a whole
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

type RunsWith = CardView["runsWith"];

export function InputTable({ input, runsWith }: { input: Input; runsWith?: RunsWith }): ReactNode {
  return (
    <table className="fh-table">
      <tbody>
        {Object.entries(input).map(([name, value]) => (
          <tr key={name}>
            <th scope="row"><Name name={name} /></th>
            <td><Value value={value} /><Default names={defaultsIn(name, runsWith)} isBySchema={runsWith?.bySchema} /></td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Which part of a parameter is a default: the names of its members, an empty list for all of it, or undefined if the model wrote all of it. */
export function defaultsIn(name: string, runsWith: RunsWith): readonly string[] | undefined {
  const paths = runsWith?.defaults?.filter(([first]) => first === name) ?? [];
  return paths.length === 0 ? undefined : paths.flatMap(([, ...inner]) => (inner.length === 0 ? [] : [inner.join(".")]));
}

export function Default({ names, isBySchema = false }: { names: readonly string[] | undefined; isBySchema?: boolean | undefined }): ReactNode {
  const words = useWords();
  return names === undefined ? null : <span className="fh-default"><Folded text={(isBySchema ? words.bySchema : words.byDefault)(names.join(", "))} /></span>;
}

/** The names of the parameters that are not set, for a person who would have set one. */
export function LeftOut({ runsWith }: { runsWith: RunsWith }): ReactNode {
  const words = useWords();
  const names = runsWith?.leftOut ?? [];
  return names.length === 0 ? null : <p className="fh-context"><Folded text={words.leftOut(names.map(nameWords).join(", "))} /></p>;
}

function Folded({ text }: { text: string }): ReactNode {
  const { pieces, hidden } = fold(text, VALUE_AT_MOST);
  return <><VisibleText pieces={pieces} />{hidden > 0 && <Hidden count={hidden} />}</>;
}

function nameWords(name: string): string {
  // as words, like the labels of a form
  return name.replace(/(?<=\w)_(?=\w)/g, " ");
}

function Name({ name }: { name: string }): ReactNode {
  const { pieces, hidden } = fold(nameWords(name), NAME_AT_MOST);
  return <><VisibleText pieces={pieces} />{hidden > 0 && <Hidden count={hidden} />}</>;
}

function Hidden({ count }: { count: number }): ReactNode {
  return <span className="fh-more">{useWords().more(grouped(count))}</span>;
}

function Value({ value }: { value: unknown }): ReactNode {
  const words = useWords();
  const [isWhole, setWhole] = useState(false);
  const text = lineOf(value);
  const { pieces, hidden } = useMemo(() => fold(text, VALUE_AT_MOST), [text]);
  const whole = useMemo(() => (isWhole ? wholeOf(value) : []), [value, isWhole]);
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    // a card that has grown keeps its buttons visible
    if (isWhole) {
      button.current?.closest(".fh-card")?.scrollIntoView({ block: "nearest" });
    }
  }, [isWhole]);
  if (hidden < WORTH_FOLDING) {
    const short = piecesOf(text);
    // a few lines are shown as lines; many would push the beginnings of the other values out of view
    return <VisibleText pieces={short} isWhole={short.filter(({ kind }) => kind === "break").length <= LINES_AT_MOST} />;
  }
  return (
    <>
      {isWhole ? (
        <span className="fh-whole" tabIndex={0}><VisibleText pieces={whole} isWhole /></span>
      ) : (
        <><VisibleText pieces={pieces} /><Hidden count={hidden} /></>
      )}
      <button ref={button} type="button" className="fh-unfold" aria-expanded={isWhole} onClick={() => setWhole(!isWhole)}>{isWhole ? words.showLess : words.showAll(sizeOf(text, words))}</button>
    </>
  );
}

function sizeOf(text: string, words: Words): string {
  const count = text.split(/\s+/).filter((word) => word !== "").length;
  return count > 20 ? words.countWords(grouped(count)) : words.countCharacters(grouped([...text].length));
}

/** Strings as they are, everything else as JSON on one line. */
function lineOf(value: unknown): string {
  // JSON escapes line breaks inside strings as \n, so the remaining ones are only layout
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

/** A text whose first line is visible, and all of it after a press, with marks for invisible characters. */
export function Lines({ text }: { text: string }): ReactNode {
  const words = useWords();
  const [isWhole, setWhole] = useState(false);
  const lines = text.split("\n");
  const { pieces, hidden } = useMemo(() => fold(lines[0] ?? "", NAME_AT_MOST), [text]);
  const isFolded = lines.length > 1 || hidden > 0;
  const size = lines.length > 1 ? words.countLines(grouped(lines.length)) : sizeOf(text, words);
  return (
    <div>
      {isWhole ? <span className="fh-whole fh-mono" tabIndex={0}><VisibleText pieces={piecesOf(text)} isWhole /></span> : <p className="fh-mono fh-line"><VisibleText pieces={pieces} />{isFolded ? " …" : ""}</p>}
      {isFolded && <button type="button" className="fh-unfold" aria-expanded={isWhole} onClick={() => setWhole(!isWhole)}>{isWhole ? words.showLess : words.showAll(size)}</button>}
    </div>
  );
}

export interface InputFormProps {
  readonly fields: readonly Field[];
  readonly drafts: FieldDrafts;
  readonly errors: readonly string[];
  readonly onChange: (drafts: FieldDrafts) => void;
  readonly isOff: boolean;
  readonly runsWith?: RunsWith;
}

/** The input of a call as editable fields: one for each value, and JSON where no field can be made. */
export function InputForm({ fields, drafts, errors, onChange, isOff, runsWith }: InputFormProps): ReactNode {
  const id = useId();
  const first = useMemo(() => firstDrafts(fields), [fields]);
  const isUnchanged = (name: string): boolean => String(drafts[name]) === String(first[name]);
  return (
    <div className="fh-form">
      <Fields fields={fields} id={id} drafts={drafts} errors={errors} isOff={isOff} isTold={() => true} onChange={(name, draft) => onChange({ ...drafts, [name]: draft })} below={(field) => <><Spelling text={sentText(field, drafts[field.name])} /><Default names={isUnchanged(field.name) ? defaultsIn(field.name, runsWith) : undefined} isBySchema={runsWith?.bySchema} /></>} />
    </div>
  );
}

function sentText({ kind }: Field, draft: Draft = ""): string {
  // in JSON, line breaks and indentation are only layout: a line break inside a string is written as \n
  return kind === "json" ? String(draft).replace(/[ \t]*\n[ \t]*/g, " ") : String(draft);
}

/** A field cannot show marks: if its text needs some, the text is shown with marks below it. */
function Spelling({ text }: { text: string }): ReactNode {
  const words = useWords();
  const { pieces, hidden } = useMemo(() => fold(text, VALUE_AT_MOST), [text]);
  const isStrange = pieces.some(({ kind, text: shown }) => kind === "mark" || (kind === "break" && shown !== "⏎"));
  return isStrange ? <span>{words.sentAs} <span className="fh-spelling"><VisibleText pieces={pieces} />{hidden > 0 && <Hidden count={hidden} />}</span></span> : null;
}

/** As JSON for reading. A number that this browser cannot represent exactly says so, since the tool gets the exact one. */
function shown(value: unknown): string {
  return JSON.stringify(value, (_, each: unknown) => (isRounded(each) ? `about ${String(each)}, rounded by this browser` : each), 1) ?? "null";
}

function isRounded(value: unknown): boolean {
  return typeof value === "number" && Math.abs(value) > Number.MAX_SAFE_INTEGER;
}

/** Whether all of it can be sent back unchanged: an edit would replace a number by its rounded value. */
export function isExact(value: unknown): boolean {
  return typeof value === "object" && value !== null ? Object.values(value).every(isExact) : !isRounded(value);
}

/** Calls `onRead` once the end of the list has been visible. A list inside a hidden element is not visible. */
export function useReading(list: RefObject<HTMLElement | null>, isRead: boolean, onRead: () => void): void {
  const told = useRef(onRead);
  told.current = onRead;
  useEffect(() => {
    if (isRead) {
      return undefined;
    }
    const look = (): void => {
      const box = list.current;
      // without a list there is nothing to read
      if (box === null || (isShown(box) && box.scrollHeight - box.scrollTop - box.clientHeight <= AT_THE_END_PX)) {
        told.current();
      }
    };
    look();
    const box = list.current;
    box?.addEventListener("scroll", look, { passive: true });
    // there is no event when an enclosing element is shown, unfolded or faded in
    const timer = setInterval(look, LOOK_MS);
    return () => {
      box?.removeEventListener("scroll", look);
      clearInterval(timer);
    };
  }, [list, isRead]);
}

function isShown(box: HTMLElement): boolean {
  return box.checkVisibility?.({ visibilityProperty: true, opacityProperty: true }) ?? true;
}

const AT_THE_END_PX = 4;
const LOOK_MS = 200;
