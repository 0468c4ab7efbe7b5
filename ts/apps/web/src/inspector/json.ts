// Splits JSON into coloured pieces, as text: nothing in it is ever interpreted as HTML. Pure.

export interface Piece {
  readonly kind: "name" | "text" | "number" | "word" | "sign";
  readonly text: string;
}

const TOKEN = /("(?:[^"\\]|\\.)*")(\s*:)?|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\b(?:true|false|null)\b/g;

/** More than anybody reads in a panel; the rest is counted, not shown. */
export const SHOWN_CHARS = 40_000;

export function writtenOf(value: unknown): string {
  const text = JSON.stringify(value, null, 2) ?? "null";
  return text.length <= SHOWN_CHARS ? text : `${text.slice(0, SHOWN_CHARS)}\n… ${text.length - SHOWN_CHARS} more characters`;
}

export function piecesOf(text: string): readonly Piece[] {
  const pieces: Piece[] = [];
  let from = 0;
  const push = (kind: Piece["kind"], piece: string): void => void (piece !== "" && pieces.push({ kind, text: piece }));
  for (const match of text.matchAll(TOKEN)) {
    push("sign", text.slice(from, match.index));
    const [whole, quoted, colon] = match;
    if (quoted !== undefined) {
      push(colon === undefined ? "text" : "name", quoted);
      push("sign", colon ?? "");
    } else {
      push(/^[tfn]/.test(whole) ? "word" : "number", whole);
    }
    from = match.index + whole.length;
  }
  push("sign", text.slice(from));
  return pieces;
}
