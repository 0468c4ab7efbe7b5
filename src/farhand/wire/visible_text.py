"""Makes hidden characters visible: whatever a reader cannot see, or cannot tell apart, becomes a mark. Pure.

For every place where a person decides by what they read. The cards have the same rules in TypeScript
(`ts/packages/react/src/visible-text.ts`); both are held to `tests/hostile_strings.json`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Literal, NamedTuple

BREAK, BLANK, TAB = "⏎", "␣", "⇥"

Ranges = tuple[tuple[int, int], ...]
# first and last code point of invisible, blank, reordering or unassigned characters, and of the signs of
# marks
MARKED: Ranges = (
    (0x0000, 0x001F), (0x007F, 0x00A0), (0x00AD, 0x00AD), (0x034F, 0x034F), (0x061C, 0x061C),
    (0x115F, 0x1160), (0x1680, 0x1680), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x2000, 0x200F),
    (0x2028, 0x202F), (0x205F, 0x206F), (0x21E5, 0x21E5), (0x23CE, 0x23CE), (0x2423, 0x2423),
    (0x27E6, 0x27E7), (0x2800, 0x2800), (0x3000, 0x3000), (0x3164, 0x3164), (0xD800, 0xF8FF),
    (0xFDD0, 0xFDEF), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFFC),
    (0xFFFE, 0xFFFF), (0x13430, 0x1345F), (0x1BCA0, 0x1BCA3), (0x1D159, 0x1D159), (0x1D173, 0x1D17A),
    (0xE0000, 0x10FFFF),
)  # fmt: skip
# characters that combine with the one before them; more than a few hide it
STACKED: Ranges = (
    (0x0300, 0x036F), (0x0483, 0x0489), (0x1AB0, 0x1AFF), (0x1DC0, 0x1DFF), (0x20D0, 0x20FF),
    (0xFE20, 0xFE2F),
)  # fmt: skip
STACKED_AT_MOST = 3
PICTURES: Ranges = ((0x203C, 0x3299), (0x1F000, 0x1FAFF))
JOINER, AS_PICTURE = 0x200D, 0xFE0F
MARKS_AT_MOST = 3
"""More marks than this in a row are shown as one, with their counts."""
SIGNS_AT_MOST = 6

_CHARACTER = re.compile(r"\r\n|.", re.DOTALL)


class Piece(NamedTuple):
    """`break` is a mark that stands for line breaks. `length` is how many characters it stands for."""

    kind: Literal["text", "mark", "break"]
    text: str
    length: int


class TextRun(NamedTuple):
    sign: str
    chars: list[str]


class FoldedText(NamedTuple):
    """The beginning of a text on one line. `hidden` is the number of characters cut from its end."""

    text: str
    hidden: int

    @property
    def rest(self) -> str:
        return f"… ⟦{self.hidden:,} characters more⟧" if self.hidden else ""


def visible_text(text: str, *, at_most: int) -> str:
    """On one line, marks in ⟦ ⟧; longer text is cut at its end, and the rest is counted."""
    folded = fold(text, at_most=at_most)
    return folded.text + folded.rest


def fold(text: str, *, at_most: int) -> FoldedText:
    parts: list[str] = []
    hidden, left = 0, at_most
    for piece in pieces_of(text):
        if left <= 0:
            hidden += piece.length
        elif piece.kind == "text":
            parts.append(piece.text[:left])
            hidden += max(0, piece.length - left)
        else:
            parts.append(f"⟦{piece.text}⟧")
        left -= len(piece.text)
    return FoldedText("".join(parts), hidden)


def pieces_of(text: str) -> list[Piece]:
    chars = _CHARACTER.findall(text)
    signs = [_sign(chars, at) for at in range(len(chars))]
    around = ["-", *signs, "-"]
    # a single blank between two words is harmless
    visible = [
        sign if sign != " " else "" if around[at] == around[at + 2] == "" else BLANK
        for at, sign in enumerate(signs)
    ]
    runs = [
        TextRun(sign, [char for _, char in group])
        for sign, group in groupby(zip(visible, chars, strict=True), key=lambda each: each[0])
    ]
    return list(_joined(runs))


def _sign(chars: Sequence[str], at: int) -> str:
    """How a character is shown: as itself (empty), as a blank that depends on its neighbours, or as a
    sign."""
    char = chars[at]
    if char in _SIGNS:
        return _SIGNS[char]
    code = ord(char)
    if _is_in(MARKED, code):
        is_hidden = not _is_of_picture(chars, at)
    else:
        is_hidden = _is_in(STACKED, code) and not _stands_on_text(chars, at)
    return f"U+{code:04X}" if is_hidden else ""


_SIGNS = {" ": " ", "\n": BREAK, "\r\n": BREAK, "\t": TAB}


def _is_of_picture(chars: Sequence[str], at: int) -> bool:
    """Emoji consist of several characters, some of which are invisible."""
    code, previous = _code(chars, at), _code(chars, at - 1)
    before = _code(chars, at - 2) if previous == AS_PICTURE else previous
    if not _is_in(PICTURES, before) or _is_in(MARKED, before):
        return False
    if code == AS_PICTURE:
        return previous != AS_PICTURE
    return code == JOINER and _is_in(PICTURES, _code(chars, at + 1))


def _stands_on_text(chars: Sequence[str], at: int) -> bool:
    base = at - 1
    # no further than it matters: a long stack would be walked from each of its characters
    while at - base <= STACKED_AT_MOST and _is_in(STACKED, _code(chars, base)):
        base -= 1
    return at - base <= STACKED_AT_MOST and base >= 0 and _sign(chars, base) == ""


def _code(chars: Sequence[str], at: int) -> int:
    return ord(chars[at][0]) if 0 <= at < len(chars) else -1


def _is_in(ranges: Ranges, code: int) -> bool:
    at = bisect_right(ranges, (code, 0x110000)) - 1
    return at >= 0 and code <= ranges[at][1]


def _joined(runs: Iterable[TextRun]) -> Iterator[Piece]:
    for is_text, group in groupby(runs, key=lambda run: run.sign == ""):
        if is_text:
            yield from (Piece("text", "".join(run.chars), len(run.chars)) for run in group)
        else:
            yield from _marks(list(group))


def _marks(runs: Sequence[TextRun]) -> list[Piece]:
    if len(runs) <= MARKS_AT_MOST:
        return [_mark({run.sign: len(run.chars)}, run.chars) for run in runs]
    counts: Counter[str] = Counter()
    for run in runs:
        counts[run.sign] += len(run.chars)
    return [_mark(counts, [char for run in runs for char in run.chars])]


def _mark(counts: dict[str, int], chars: Iterable[str]) -> Piece:
    named = [sign if times == 1 else f"{sign} ×{times:,}" for sign, times in counts.items()]
    others = sum(list(counts.values())[SIGNS_AT_MOST:])
    text = " ".join([*named[:SIGNS_AT_MOST], *([f"and {others:,} more"] if others else [])])
    return Piece("break" if BREAK in counts else "mark", text, sum(map(len, chars)))
