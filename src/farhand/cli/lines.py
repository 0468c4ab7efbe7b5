"""What the command line prints: plain lines, one per fact, never wrapped. Tables are in `tables.py`."""

from __future__ import annotations

import os
from collections.abc import Iterable

from typer import echo, style


def say(facts: Iterable[tuple[str, str]], *, title: str) -> None:
    """A title and under it one line per fact."""
    lines = [style(title, bold=True)]
    lines += [style(f"  {name:<7}", dim=True) + value for name, value in facts]
    echo("\n".join(lines), color=_colour())


def warn(text: str) -> None:
    _complain("warning", "yellow", text)


def fail(text: str) -> None:
    _complain("error", "red", text)


def plain(text: str) -> str:
    """Without what a terminal would take for a command."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)


def _complain(kind: str, colour: str, text: str) -> None:
    line = plain(" ".join(text.split()))
    said = style("farhand: ", bold=True) + style(f"{kind}: ", fg=colour, bold=True) + line
    echo(said, err=True, color=_colour())


def _colour() -> bool | None:
    """None leaves it to where the line goes: a file and a pipe get none."""
    return False if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" else None
