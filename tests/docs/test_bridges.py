"""The tests that the page about bridges names exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"`(test_\w+)`")
DEFINED = re.compile(r"def (test_\w+)")


def test_every_test_that_the_page_names_exists() -> None:
    folders = (ROOT / "tests/frameworks", ROOT / "tests/unit/bridges")
    files = [path for folder in folders for path in folder.rglob("*.py")]
    defined = {name for path in files for name in DEFINED.findall(path.read_text())}
    named = set(NAMED.findall((ROOT / "docs/explanation/bridges.md").read_text()))
    assert len(named) > 10
    assert sorted(named - defined) == []
