"""The example of a page beside a script runs as its page says, in a real browser."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.requirement import requirement

ROOT = Path(__file__).parents[2]


@requirement("docs:examples")
@pytest.mark.browser
@pytest.mark.timeout(180)
def test_a_page_without_a_chat_shows_and_approves_what_a_script_calls() -> None:
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("COV_", "FARHAND_"))}
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-m", "examples.inbox_beside.show"],
        cwd=ROOT,
        env=plain,
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "the script was stopped, and paid so far: I-7 120\n" in ran.stdout
    assert ran.stdout.endswith("paid 80 for I-8\n")
