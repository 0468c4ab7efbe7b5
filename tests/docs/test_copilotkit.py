"""The example with CopilotKit runs as its page says, its types hold, and the how-to prints its code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.browser.doc_pages import printed
from tests.requirement import requirement

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "examples/copilotkit/page"


@requirement("docs:examples")
@pytest.mark.timeout(240)
def test_a_copilotkit_page_is_used_on_farhand() -> None:
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("COV_", "FARHAND_"))}
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-m", "examples.copilotkit.show"],
        cwd=ROOT,
        env=plain,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == [
        "you: Put the room on my list",
        "assistant: It is on your list: Book a room.",
        "you: Find a time to meet",
        "a card after a reload: [Tuesday at 10:00]",
        "assistant: Then we meet on Tuesday at 10:00.",
        "you: Invite Ada",
        "an approval after a reload: [Approve]",
        "assistant: ada@example.com is invited for Tuesday at 10:00.",
        "you: Book a room",
        "a form after a reload: [Send]",
        "assistant: A room for 6 is booked for Tuesday at 10:00. Ground floor.",
    ]


def test_the_page_has_no_type_errors() -> None:
    checked = subprocess.run(
        [ROOT / "ts/node_modules/.bin/tsc", "-p", PAGE], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout


def test_the_how_to_prints_code_of_the_example() -> None:
    code = "\n".join(flat((PAGE / name).read_text()) for name in ("main.tsx", "vite.config.ts"))
    blocks = [block.code for block in printed() if block.source == "docs/how-to/copilotkit.md"]
    assert blocks
    assert [block for block in blocks if flat(block) not in code] == []


def flat(code: str) -> str:
    """Without indentation: a part of a function stands at the margin in the docs."""
    return "\n".join(line.strip() for line in code.strip().splitlines())
