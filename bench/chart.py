"""Draws the results as SVG: bars for ratios, processor time by part, growth."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape

from bench.table import Line

WIDTH, ROW, LEFT, BAR = 1180, 26, 620, 260
"""The left side fits the longest name of a figure, the right side a value with its target."""
INK, GOOD, BAD = "#1f2933", "#2f855a", "#c05621"
COLUMNS = 4
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
PARTS = (
    "#2b6cb0", "#2f855a", "#b7791f", "#6b46c1", "#c05621", "#718096", "#319795", "#a0aec0", "#97266d",
)  # fmt: skip


def draw(lines: Sequence[Line], parts: Sequence[tuple[str, float]], title: str) -> str:
    """The complete chart."""
    drawn: list[str] = []
    top = 64
    for line in lines:
        drawn += _row(line, top)
        top += ROW
    growth = next(filter(None, (_growing(line) for line in lines)), None)
    if growth is not None:
        top += 30
        drawn += _growth(growth, top)
        top += 22 + ROW * len(growth)
    top += 30
    if parts:
        drawn += _stack(parts, top)
        top += 74 + 20 * -(-len(parts) // COLUMNS)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{top + 16}" '
        f'font-family="system-ui, sans-serif" font-size="13" fill="{INK}">'
        f'<rect width="100%" height="100%" fill="white"/>'
        + _text(20, 28, "farhand: what was measured", size=17)
        + _text(20, 46, title, size=11)
        + "".join(drawn)
        + "</svg>\n"
    )


def _row(line: Line, top: int) -> list[str]:
    """How much of its target a figure reached; the mark is at 100 %."""
    words = _text(20, top + 14, f"{line.number}  {line.what}", size=11)
    beside = _text(LEFT + BAR + 12, top + 14, _label(line), size=11)
    if line.ok is None:
        # without a verdict there is no bar
        return [words, beside]
    share, half = min(2.0, _reached(line)), BAR / 2
    colour = GOOD if line.ok else BAD
    return [
        words,
        f'<rect x="{LEFT}" y="{top + 3}" width="{share * half:.0f}" height="14" fill="{colour}" rx="2"/>',
        f'<line x1="{LEFT + half}" y1="{top}" x2="{LEFT + half}" y2="{top + 20}" stroke="{INK}"/>',
        beside,
    ]


def _label(line: Line) -> str:
    if line.ok is not None:
        return f"{line.measured}  ({line.target})"
    return line.verdict if line.measured == "–" else f"{line.measured}, {line.verdict}"


def _reached(line: Line) -> float:
    """1 is the target, whether higher or lower is better."""
    target, measured = _NUMBER.search(line.target), _NUMBER.search(line.measured)
    if target is None or measured is None:
        return 2.0 if line.ok else 0.0
    wanted, got = float(target[0]), max(float(measured[0]), 1e-9)
    return got / wanted if "≥" in line.target else wanted / got


def _growing(line: Line) -> Mapping[str, Mapping[str, float]] | None:
    """The values by number of waiting calls, if a line has several of them."""
    counts = {count: each for count, each in line.values.items() if count.isdigit()}
    has_both = all({"rate", "each"} <= each.keys() for each in counts.values())
    return counts if line.number == "P7" and len(counts) > 1 and has_both else None


def _growth(values: Mapping[str, Mapping[str, float]], top: int) -> list[str]:
    """Throughput and the cost of settling a call, by number of waiting calls."""
    drawn = [
        _text(20, top, "throughput against waiting calls: results a second that the server takes", size=13)
    ]
    most = max(each["rate"] for each in values.values())
    for number, (count, each) in enumerate(values.items()):
        y = top + 12 + ROW * number
        width = 560 * each["rate"] / most
        drawn.append(_text(20, y + 14, f"{int(count):,} waiting", size=11))
        drawn.append(f'<rect x="160" y="{y + 3}" width="{width:.0f}" height="14" fill="{PARTS[0]}" rx="2"/>')
        label = f"{each['rate']:,.0f} a second; settling one: {each['each'] * 1e6:.0f} µs of processor time"
        drawn.append(_text(172 + width, y + 14, label, size=11))
    return drawn


def _stack(parts: Sequence[tuple[str, float]], top: int) -> list[str]:
    """One bar, divided."""
    whole = sum(value for _, value in parts)
    drawn = [
        _text(
            20,
            top,
            f"CPU per round trip by part: a durable one, {whole * 1000:.2f} ms of processor time",
            size=13,
        )
    ]
    left = 20.0
    for number, (name, value) in enumerate(parts):
        width = (WIDTH - 40) * value / whole
        colour = PARTS[number % len(PARTS)]
        drawn.append(f'<rect x="{left:.1f}" y="{top + 12}" width="{width:.1f}" height="24" fill="{colour}"/>')
        row, column = divmod(number, COLUMNS)
        x, y = 20 + column * (WIDTH // COLUMNS), top + 58 + row * 20
        drawn.append(f'<rect x="{x}" y="{y - 10}" width="10" height="10" fill="{colour}"/>')
        drawn.append(_text(x + 16, y, f"{name}: {value * 1e6:.0f} µs ({value / whole:.0%})", size=11))
        left += width
    return drawn


def _text(x: float, y: float, text: str, *, size: int) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}">{escape(text)}</text>'
