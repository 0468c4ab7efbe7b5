"""What the command line prints: plain lines, one per fact, never wrapped."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.text import Text


def say(facts: Iterable[tuple[str, str]], *, title: str) -> None:
    """A title and under it one line per fact."""
    console = Console()
    _print(console, Text(title, style="bold"))
    for name, value in facts:
        _print(console, Text.assemble((f"  {name:<7}", "dim"), value))
    console.file.flush()


def warn(text: str) -> None:
    _complain("warning", "yellow", text)


def fail(text: str) -> None:
    _complain("error", "red", text)


def _complain(kind: str, colour: str, text: str) -> None:
    line = " ".join(text.split())
    _print(Console(stderr=True), Text.assemble(("farhand: ", "bold"), (f"{kind}: ", f"bold {colour}"), line))


def _print(console: Console, text: Text) -> None:
    console.print(text, soft_wrap=True, highlight=False)
