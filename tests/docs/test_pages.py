"""Every Python block in the how-to and explanation pages runs, in order, in one namespace per page."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.requirement import requirement

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = sorted(
    page
    for folder in ("how-to", "explanation", "reference")
    for page in (ROOT / "docs" / folder).glob("*.md")
    # tests/frameworks runs the pages of the bridges, where the frameworks are
    if BLOCK.search(page.read_text()) and not page.name.startswith("bridge-")
)


@requirement("docs:pages-run")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_blocks_of_a_page_run_as_printed(page: Path, tmp_path: Path) -> None:
    program = tmp_path / "page.py"
    program.write_text("\n".join(BLOCK.findall(page.read_text())))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COV_")}
    ran = subprocess.run(
        [sys.executable, "-W", "error", str(program)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
