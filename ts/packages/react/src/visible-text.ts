// Makes hidden characters visible: whatever a reader cannot see, or cannot tell apart, becomes a mark. Pure. Python has the same rules
// (`farhand/wire/visible_text.py`); both are tested with `tests/hostile_strings.json`.

/** `break` is a mark that stands for line breaks. `length` is how many characters of the text the piece represents. */
export interface Piece {
  readonly kind: "text" | "mark" | "break";
  readonly text: string;
  readonly length: number;
}

export interface Folded {
  readonly pieces: readonly Piece[];
  /** The number of characters cut from the end. */
  readonly hidden: number;
}

const BREAK = "⏎";
const BLANK = "␣";
const TAB = "⇥";

/** First and last code point of invisible, blank, reordering or unassigned characters, and of the signs of marks. */
const MARKED: readonly (readonly [number, number])[] = [
  [0x0000, 0x001f], [0x007f, 0x00a0], [0x00ad, 0x00ad], [0x034f, 0x034f], [0x061c, 0x061c], [0x115f, 0x1160], [0x1680, 0x1680],
  [0x17b4, 0x17b5], [0x180b, 0x180f], [0x2000, 0x200f], [0x2028, 0x202f], [0x205f, 0x206f], [0x21e5, 0x21e5],
  [0x23ce, 0x23ce], [0x2423, 0x2423], [0x27e6, 0x27e7], [0x2800, 0x2800], [0x3000, 0x3000], [0x3164, 0x3164], [0xd800, 0xf8ff], [0xfdd0, 0xfdef],
  [0xfe00, 0xfe0f], [0xfeff, 0xfeff], [0xffa0, 0xffa0], [0xfff0, 0xfffc], [0xfffe, 0xffff], [0x13430, 0x1345f], [0x1bca0, 0x1bca3],
  [0x1d159, 0x1d159], [0x1d173, 0x1d17a], [0xe0000, 0x10ffff],
];
/** Characters that combine with the one before them. More than a few hide it. */
const STACKED: typeof MARKED = [[0x0300, 0x036f], [0x0483, 0x0489], [0x1ab0, 0x1aff], [0x1dc0, 0x1dff], [0x20d0, 0x20ff], [0xfe20, 0xfe2f]];
const STACKED_AT_MOST = 3;
const PICTURES: typeof MARKED = [[0x203c, 0x3299], [0x1f000, 0x1faff]];
const JOINER = 0x200d;
const AS_PICTURE = 0xfe0f;
/** More marks than this in a row are shown as one, with their counts. */
const MARKS_AT_MOST = 3;
const SIGNS_AT_MOST = 6;

export function piecesOf(text: string): readonly Piece[] {
  const chars = text.match(/\r\n|[^]/gu) ?? [];
  const signs = chars.map((_, at) => signAt(chars, at));
  const shown = signs.map((sign, at) => (sign !== " " ? sign : signs[at - 1] === "" && signs[at + 1] === "" ? "" : BLANK));
  return joined(runsOf(chars, shown));
}

/** The beginning of a text, of about this length at most. The text is cut at its end, and the rest is counted. */
export function fold(text: string, atMost: number): Folded {
  const pieces: Piece[] = [];
  let left = atMost;
  let hidden = 0;
  for (const piece of piecesOf(text)) {
    const shown = [...piece.text];
    if (left <= 0) {
      hidden += piece.length;
    } else if (piece.kind === "text" && shown.length > left) {
      pieces.push({ kind: "text", text: shown.slice(0, left).join(""), length: left });
      hidden += piece.length - left;
    } else {
      pieces.push(piece);
    }
    left -= shown.length;
  }
  return { pieces, hidden };
}

/** How a character is shown: as itself (empty), as a blank that depends on its neighbours, or as a sign. */
function signAt(chars: readonly string[], at: number): string {
  const char = chars[at] ?? "";
  const code = char.codePointAt(0) ?? 0;
  if (char === " ") {
    return " ";
  }
  if (char === "\n" || char === "\r\n") {
    return BREAK;
  }
  if (char === "\t") {
    return TAB;
  }
  const isHidden = isIn(MARKED, code) ? !isOfPicture(chars, at) : isIn(STACKED, code) && !standsOn(chars, at);
  return isHidden ? `U+${code.toString(16).toUpperCase().padStart(4, "0")}` : "";
}

/** Emoji consist of several characters, some of which are invisible. */
function isOfPicture(chars: readonly string[], at: number): boolean {
  const code = codeAt(chars, at);
  const before = codeAt(chars, at - 1) === AS_PICTURE ? codeAt(chars, at - 2) : codeAt(chars, at - 1);
  const isAfterPicture = isIn(PICTURES, before) && !isIn(MARKED, before);
  return isAfterPicture && (code === AS_PICTURE ? before === codeAt(chars, at - 1) : code === JOINER && isIn(PICTURES, codeAt(chars, at + 1)));
}

function standsOn(chars: readonly string[], at: number): boolean {
  let base = at - 1;
  // no further than necessary: a long stack would otherwise be walked from each of its characters
  while (at - base <= STACKED_AT_MOST && isIn(STACKED, codeAt(chars, base))) {
    base -= 1;
  }
  return at - base <= STACKED_AT_MOST && base >= 0 && signAt(chars, base) === "";
}

function codeAt(chars: readonly string[], at: number): number {
  return chars[at]?.codePointAt(0) ?? -1;
}

function isIn(ranges: typeof MARKED, code: number): boolean {
  return ranges.some(([first, last]) => first <= code && code <= last);
}

interface Run {
  readonly sign: string;
  readonly chars: string[];
}

function runsOf(chars: readonly string[], signs: readonly string[]): Run[] {
  const runs: Run[] = [];
  chars.forEach((char, at) => {
    const sign = signs[at] ?? "";
    const last = runs.at(-1);
    if (last?.sign === sign) {
      last.chars.push(char);
    } else {
      runs.push({ sign, chars: [char] });
    }
  });
  return runs;
}

function joined(runs: readonly Run[]): Piece[] {
  const pieces: Piece[] = [];
  let marks: Run[] = [];
  for (const run of runs) {
    if (run.sign !== "") {
      marks.push(run);
      continue;
    }
    pieces.push(...marksOf(marks), { kind: "text", text: run.chars.join(""), length: run.chars.length });
    marks = [];
  }
  return [...pieces, ...marksOf(marks)];
}

function marksOf(runs: readonly Run[]): Piece[] {
  if (runs.length <= MARKS_AT_MOST) {
    return runs.map(({ sign, chars }) => markOf([[sign, chars.length]], chars));
  }
  const counts = new Map<string, number>();
  runs.forEach(({ sign, chars }) => counts.set(sign, (counts.get(sign) ?? 0) + chars.length));
  return [markOf([...counts], runs.flatMap(({ chars }) => chars))];
}

function markOf(signs: readonly (readonly [string, number])[], chars: readonly string[]): Piece {
  const named = signs.slice(0, SIGNS_AT_MOST).map(([sign, times]) => (times === 1 ? sign : `${sign} ×${grouped(times)}`));
  const others = signs.slice(SIGNS_AT_MOST).reduce((sum, [, times]) => sum + times, 0);
  const text = [...named, ...(others === 0 ? [] : [`and ${grouped(others)} more`])].join(" ");
  const length = chars.reduce((sum, char) => sum + (char === "\r\n" ? 2 : 1), 0);
  return { kind: signs.some(([sign]) => sign === BREAK) ? "break" : "mark", text, length };
}

/** A number with thousands separators: 1,600. */
export function grouped(count: number): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ",");
}
