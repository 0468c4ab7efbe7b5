"""What was measured, and how it is told: a line for each figure, a table of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from statistics import median
from typing import Any

NO_TARGET = "–"
"""Of a line that only tells."""


@dataclass(frozen=True)
class Effort:
    """How long a measurement may take."""

    rounds: int = 3
    seconds: float = 3.0
    scale: float = 1.0
    """Of how many things are held, parked or expired."""

    def many(self, count: int) -> int:
        return max(1, int(count * self.scale))


@dataclass(frozen=True)
class Line:
    number: str
    what: str
    target: str
    measured: str
    ok: bool | None
    """None where it could not be measured here, or where no target is."""
    detail: str = ""
    values: dict[str, Any] = field(default_factory=dict)
    on: str = ""
    """What the measured servers themselves told of how they were configured."""
    is_client_busy: bool = False
    """The load client had no time to spare, so that the figure may be its own."""

    @classmethod
    def of(cls, plain: dict[str, Any]) -> Line:
        """As `plain` wrote it down."""
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
"""A load client that works for this much of the time may have measured itself."""

BY_THE_WALL = frozenset({"P1", "P2", "P3", "P9", "P10"})
"""What a busy client spoils; processor time of the server is the same however slowly it is asked."""


def judged(line: Line) -> Line:
    """Without a verdict, where the load client may have been what was measured."""
    if line.number in BY_THE_WALL and any(share >= BUSY for share in _shares(line.values)):
        return replace(line, ok=None, is_client_busy=True)
    return line


def busiest(lines: list[Line]) -> str:
    """Whether the load client had time to spare, over all that it measured."""
    found = [(share, line.number) for line in lines for share in _shares(line.values)]
    if not found:
        return "was not needed"
    shares = {number: share for share, number in sorted(found)}
    number = max(shares, key=lambda each: shares[each])
    told = f"busy for {shares[number]:.0%} of the time at most ({number})"
    over = [each for each, share in shares.items() if share >= BUSY]
    return f"{told}; what it measured of itself: {', '.join(over)}" if over else told


def _shares(values: dict[str, Any]) -> list[float]:
    results = [each for each in values.values() if isinstance(each, dict) and each.get("seconds")]
    return [each["client"] / each["seconds"] for each in results if "client" in each]


def medians(results: list[dict[str, Any]]) -> dict[str, float]:
    """Of each value over the rounds."""
    return {key: median(each[key] for each in results) for key in results[0]}


def printed(lines: list[Line]) -> str:
    head = ("", "what", "target", "measured", "verdict")
    rows = [head, *((each.number, each.what, each.target, each.measured, each.verdict) for each in lines)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    told: list[str] = []
    for row, line in zip(rows, [None, *lines], strict=True):
        told.append("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        if line is not None:
            said = (line.detail, f"on: {line.on}" if line.on else "")
            told += [" " * (widths[0] + 2) + each for each in said if each]
    return "\n".join(told)


def ms(seconds: float) -> str:
    return f"{seconds * 1000:.2f} ms"


def us(seconds: float) -> str:
    return f"{seconds * 1e6:.1f} µs"
