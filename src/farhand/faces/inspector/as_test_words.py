"""Words of a generated test: literals, names, the steps of a script. Knows no run."""

from __future__ import annotations

import re
from pprint import pformat

from farhand.core.thread import Asked, AssistantMessage, File, Reasoning, Text, printable

WIDTH = 96


def literal(value: object) -> str:
    """The value as Python writes it; long ones over several lines, inside brackets of their own."""
    text = pformat(value, width=WIDTH, sort_dicts=False)
    if "\n" not in text:
        return text
    # a long string becomes several pieces, which need brackets around them
    return text if text[0] in "[{(" else f"({text})"


def slug_of(title: str) -> str:
    """The end of a function's name."""
    words = re.findall(r"[a-z0-9]+", title.lower())
    return "_".join(words)[:50].rstrip("_") or "a_recorded_run"


def sentence(title: str) -> str:
    """As the first line of a docstring."""
    words = printable(title).replace("\\", "/").replace('"', "'")[:90].strip()
    return words if words.endswith((".", "?", "!")) else f"{words}."


def step_of(message: AssistantMessage) -> str:
    """One step of the script: what the model said and asked for, in its order."""
    return f"[{', '.join(_item(part) for part in message.parts)}]"


def _item(part: Text | Reasoning | File | Asked) -> str:
    match part:
        case Text(text=text):
            return literal(text)
        case Reasoning(text=text):
            return f"Think({literal(text)})"
        case File(name=name):
            return literal(f"[{name}]")
        case Asked(tool=tool, input=input):
            return f"Ask({literal(tool)}, {literal(input)})"
