"""Prints the answers of a server: tables and values for people, JSON for programs, and progress."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.client import HTTPException
from typing import Any

import msgspec
from rich import box
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from farhand.cli.console import printable_text
from farhand.cli.remote.http import RemoteServer
from farhand.wire.visible_text import fold, visible_text

_ANY_WIDTH = 10_000
_NAME_AT_MOST = 40
_VALUE_AT_MOST = 120
_LINE_CHARS = 80
# those that JSON does not escape; they occur only in strings
_CONTROL = re.compile("[\x7f-\x9f]")


def print_table(rows: Iterable[Sequence[str]], *, columns: Sequence[str], nothing: str) -> None:
    """One line per row; `nothing` if there are none. Control characters are never sent to the terminal."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for number, column in enumerate(columns):
        # the first column is the id that people copy, so it is never cut
        table.add_column(column, no_wrap=number == 0, overflow="ignore" if number == 0 else "fold")
    for row in rows:
        table.add_row(*(Text(printable_text(cell)) for cell in row))
    console = _console_for(table)
    console.print(table if table.row_count else Text(nothing, style="dim"))


def print_value(value: object) -> None:
    """Text as it is, anything else as indented JSON. A terminal gets no control characters; a pipe or a file
    gets every character."""
    text = value if isinstance(value, str) else msgspec.json.format(msgspec.json.encode(value)).decode()
    console = Console()
    if not console.is_terminal:
        console.file.write(text + "\n")
        return
    lines = (printable_text(line.expandtabs()) for line in text.replace("\r\n", "\n").split("\n"))
    console.print(Text("\n".join(lines)), soft_wrap=True, highlight=False)


def print_json(value: object) -> None:
    """For programs: one line, with control characters as JSON escapes."""
    text = msgspec.json.encode(value).decode()
    Console().file.write(_CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n")


def first_line(text: str) -> str:
    line = next((line for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= _LINE_CHARS else f"{line[: _LINE_CHARS - 1]}…"


# Any: an object of the server's JSON
def format_input(given: object, runs_with: Mapping[str, Any] | None = None) -> str:
    """The input of a call, for a person who decides about it: the start of every parameter, with marks for
    invisible characters. Text is quoted, so that none can pass for another parameter. `runs_with` has the
    defaults too, as the inbox sends them."""
    if not isinstance(given, dict):
        return _spell_value(given)
    whole = runs_with or {"input": given}
    paths = whole.get("defaults", ())
    kind = "default in its schema" if whole.get("bySchema") else "default"
    shown = [
        f"{_spell_name(name)}={_spell_value(value)}{_default_mark(name, paths, kind)}"
        for name, value in whole["input"].items()
    ]
    left_out = ", ".join(map(_spell_name, whole.get("leftOut", ())))
    return "  ".join([*shown, *([f"(without {left_out})"] if left_out else [])])


def _default_mark(name: object, paths: Sequence[Sequence[str]], kind: str) -> str:
    """Says that this parameter, or what in it, is a default."""
    inner = [".".join(map(_spell_name, path[1:])) for path in paths if path[0] == name]
    if not inner:
        return ""
    named = ", ".join(each for each in inner if each)
    return f" ({kind}: {named})" if named else f" ({kind})"


def _spell_name(name: object) -> str:
    return visible_text(str(name), at_most=_NAME_AT_MOST)


def _spell_value(value: object) -> str:
    if not isinstance(value, str):
        return visible_text(msgspec.json.encode(value).decode(), at_most=_VALUE_AT_MOST)
    folded = fold(value, at_most=_VALUE_AT_MOST)
    quoted = folded.text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{quoted}"{folded.rest}'


def _console_for(table: Table) -> Console:
    """The width of the terminal; for a pipe or a file, the width of the table."""
    console = Console(soft_wrap=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _ANY_WIDTH
        console.width = console.measure(table).maximum
    return console


LISTENS_WITHIN_SEC = 2.0
LAST_REPORT_WITHIN_SEC = 1.0


@contextmanager
def show_progress(tool: str, to: RemoteServer, request_id: str) -> Iterator[None]:
    """Shows a spinner until the answer arrives. In a pipe, prints one line for each progress report."""
    console = Console(stderr=True)
    if not console.is_terminal:
        _write(f"waiting for {tool} …")
        all_shown = _listen(to, tool, request_id, lambda text: _write(f"{tool}: {text}"))
        yield
        # the answer has a connection of its own, and may arrive before the last report
        all_shown.wait(LAST_REPORT_WITHIN_SEC)
        return
    # the texts of a tool are not markup
    words = TextColumn("waiting for {task.description}", markup=False)
    columns = (SpinnerColumn(), words, TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        line = progress.add_task(tool)
        _listen(to, tool, request_id, lambda text: progress.update(line, description=f"{tool}: {text}"))
        yield


def _listen(to: RemoteServer, tool: str, request_id: str, show: Callable[[str], None]) -> threading.Event:
    """Returns once the server streams events, or refuses to; then there is only the spinner. The event is
    set once the end of the call has arrived; never for an answer that was stored before."""
    ready, all_shown = threading.Event(), threading.Event()
    reporting: set[object] = set()

    def read(event: dict[str, object]) -> None:
        kind, call_id, same_tool = event.get("type"), event.get("callId"), event.get("tool") == tool
        if kind == "call-progressed" and event.get("requestId") == request_id:
            reporting.add(call_id)
            show(printable_text(str(event.get("text"))))
        # only a report names the request: without one, calls of the tool look alike
        elif kind == "call-settled" and (call_id in reporting if reporting else same_tool):
            all_shown.set()

    def follow() -> None:
        try:
            for event in to.events():
                ready.set()
                read(event)
        except (OSError, HTTPException, ValueError):
            # the call itself reports the error
            pass
        finally:
            ready.set()
            all_shown.set()

    threading.Thread(target=follow, daemon=True).start()
    ready.wait(LISTENS_WITHIN_SEC)
    return all_shown


def _write(text: str) -> None:
    sys.stderr.write(f"farhand: {text}\n")
    sys.stderr.flush()
