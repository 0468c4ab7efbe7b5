"""The results: a line for each figure, and their table."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from statistics import median
from typing import Any

NO_TARGET = "–"
"""For a line without a target."""


@dataclass(frozen=True)
class Effort:
    """How long a measurement may take."""

    rounds: int = 3
    seconds: float = 3.0
    scale: float = 1.0
    """Factor for the number of held, parked or expired calls."""

    def many(self, count: int) -> int:
        return max(1, int(count * self.scale))


@dataclass(frozen=True)
class Line:
    number: str
    what: str
    target: str
    measured: str
    ok: bool | None
    """None if it could not be measured here, or has no target."""
    detail: str = ""
    values: dict[str, Any] = field(default_factory=dict)
    on: str = ""
    """The configuration that the measured servers reported themselves."""
    is_client_busy: bool = False
    """The load client was the bottleneck, so the figure may be its own."""

    @classmethod
    def of(cls, plain: dict[str, Any]) -> Line:
        """The line that `plain` saved."""
        return cls(**{name: value for name, value in plain.items() if name != "verdict"})

    @property
    def verdict(self) -> str:
        if self.is_client_busy:
            return "not measured (load client busy)"
        if self.target == NO_TARGET:
            return "no target"
        return "not measured" if self.ok is None else "reached" if self.ok else "missed"

    def plain(self) -> dict[str, Any]:
        return asdict(self) | {"verdict": self.verdict}


BUSY = 0.9
"""A load client that is busy for this share of the time may have measured itself."""

BY_THE_WALL = frozenset({"P1", "P2", "P3", "P9", "P10"})
"""Figures that a busy client distorts; the server's processor time does not depend on the client."""


def judge(line: Line) -> Line:
    """The line without its verdict if the load client may have measured itself."""
    if line.number in BY_THE_WALL and any(share >= BUSY for share in _shares(line.values)):
        return replace(line, ok=None, is_client_busy=True)
    return line


def busiest(lines: list[Line]) -> str:
    """How busy the load client was at most."""
    found = [(share, line.number) for line in lines for share in _shares(line.values)]
    if not found:
        return "was not needed"
    shares = {number: share for share, number in sorted(found)}
    number = max(shares, key=lambda each: shares[each])
    text = f"busy for {shares[number]:.0%} of the time at most ({number})"
    over = [each for each, share in shares.items() if share >= BUSY]
    return f"{text}; the bottleneck of {', '.join(over)}" if over else text


def _shares(values: dict[str, Any]) -> list[float]:
    results = [each for each in values.values() if isinstance(each, dict) and each.get("seconds")]
    return [each["client"] / each["seconds"] for each in results if "client" in each]


def medians(results: list[dict[str, Any]]) -> dict[str, float]:
    """Of each value over the rounds."""
    return {key: median(each[key] for each in results) for key in results[0]}


def format_lines(lines: list[Line]) -> str:
    head = ("", "what", "target", "measured", "verdict")
    rows = [head, *((each.number, each.what, each.target, each.measured, each.verdict) for each in lines)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    text: list[str] = []
    for row, line in zip(rows, [None, *lines], strict=True):
        text.append("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        if line is not None:
            details = (line.detail, f"on: {line.on}" if line.on else "")
            text += [" " * (widths[0] + 2) + each for each in details if each]
    return "\n".join(text)


def ms(seconds: float) -> str:
    return f"{seconds * 1000:.2f} ms"


def us(seconds: float) -> str:
    return f"{seconds * 1e6:.1f} µs"
