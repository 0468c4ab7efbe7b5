"""What a look-up prints: a plain table for people, or the server's own JSON."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence

import msgspec
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from farhand.cli.lines import plain
from farhand.wire.visible_text import fold, visible_text

_ANY_WIDTH = 10_000
_NAME_AT_MOST = 40
_VALUE_AT_MOST = 120
# those that JSON leaves as they are; they occur in strings alone
_CONTROL = re.compile("[\x7f-\x9f]")


def show(rows: Iterable[Sequence[str]], *, columns: Sequence[str], nothing: str) -> None:
    """One line per row; `nothing` is said where there is none. Foreign words are shown, never obeyed."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for number, column in enumerate(columns):
        # the first names the row and is what one copies, so it stays whole however narrow the terminal
        table.add_column(column, no_wrap=number == 0, overflow="ignore" if number == 0 else "fold")
    for row in rows:
        table.add_row(*(Text(plain(cell)) for cell in row))
    console = _roomy(table)
    console.print(table if table.row_count else Text(nothing, style="dim"))


def show_value(value: object) -> None:
    """A text as it is, anything else as JSON that is easy to read. A terminal shows it and obeys none of it;
    into a pipe or a file goes every character."""
    text = value if isinstance(value, str) else _pretty(value)
    console = Console()
    if not console.is_terminal:
        console.file.write(text + "\n")
        return
    lines = (plain(line.expandtabs()) for line in text.replace("\r\n", "\n").split("\n"))
    console.print(Text("\n".join(lines)), soft_wrap=True, highlight=False)


def show_json(value: object) -> None:
    """For programs: one line. What a terminal might obey stands in it as JSON spells it."""
    text = msgspec.json.encode(value).decode()
    Console().file.write(_CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n")


def first_line(text: str, *, at_most: int = 80) -> str:
    line = next((line for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= at_most else f"{line[: at_most - 1]}…"


def spell_input(given: object) -> str:
    """What a call would run with, for somebody who decides by it: the beginning of every parameter, and marks
    for what cannot be seen. Texts are quoted, so that none can pass for another parameter."""
    if not isinstance(given, dict):
        return _spell_value(given)
    return "  ".join(
        f"{visible_text(str(name), at_most=_NAME_AT_MOST)}={_spell_value(value)}"
        for name, value in given.items()
    )


def _spell_value(value: object) -> str:
    if not isinstance(value, str):
        return visible_text(msgspec.json.encode(value).decode(), at_most=_VALUE_AT_MOST)
    folded = fold(value, at_most=_VALUE_AT_MOST)
    quoted = folded.text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{quoted}"{folded.rest}'


def _roomy(table: Table) -> Console:
    """A terminal as it is; into a pipe or a file, as wide as it takes."""
    console = Console(soft_wrap=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _ANY_WIDTH
        console.width = console.measure(table).maximum
    return console


def _pretty(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
