"""Plain lines for the terminal, one per fact, never wrapped. Tables are in `remote/render.py`."""

from __future__ import annotations

import os
from collections.abc import Iterable

from farhand.errors import not_installed

try:
    from typer import echo, style
except ModuleNotFoundError as error:
    raise not_installed("The command line and `farhand.serve`", "serve") from error


def print_facts(facts: Iterable[tuple[str, str]], *, title: str) -> None:
    """A title, and below it one line per fact."""
    lines = [style(title, bold=True)]
    lines += [style(f"  {name:<8}", dim=True) + value for name, value in facts]
    echo("\n".join(lines), color=_colour())


def print_line(text: str) -> None:
    echo(text, color=_colour())


def print_warning(text: str) -> None:
    _print_line("warning", "yellow", text)


def print_error(text: str) -> None:
    _print_line("error", "red", text)


def printable_text(text: str) -> str:
    """The text without characters that a terminal would interpret."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)


def _print_line(kind: str, colour: str, message: str) -> None:
    line = printable_text(" ".join(message.split()))
    text = style("farhand: ", bold=True) + style(f"{kind}: ", fg=colour, bold=True) + line
    echo(text, err=True, color=_colour())


def _colour() -> bool | None:
    """None lets typer decide: files and pipes get no colours."""
    return False if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" else None


def address_of(host: str, port: int) -> str:
    """The address to open in a browser."""
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"
