"""The tests named in pages next to the code exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "src").rglob("*.md"))
FOLDERS = ("tests", "src/farhand/testing")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_test_that_a_page_of_edge_cases_names_is_there(page: Path) -> None:
    named = set(re.findall(r"`(test_\w+)`", page.read_text()))
    files = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    known = {name for path in files for name in re.findall(r"def (test_\w+)\(", path.read_text())}
    assert named
    assert named - known == set()
