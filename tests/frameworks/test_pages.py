"""The pages of the bridges run as printed, in the environment that has the frameworks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.test_pages import BLOCK
from tests.requirement import requirement

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs/how-to").glob("bridge-*.md"))


@requirement("docs:pages-run")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_blocks_of_a_page_run_as_printed(page: Path, tmp_path: Path) -> None:
    program = tmp_path / "page.py"
    program.write_text("\n".join(BLOCK.findall(page.read_text())))
    ran = subprocess.run(
        [sys.executable, str(program)], cwd=tmp_path, capture_output=True, text=True, timeout=50, check=False
    )
    assert ran.returncode == 0, ran.stderr
