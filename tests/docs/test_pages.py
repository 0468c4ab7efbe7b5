"""Every Python block in the how-to and explanation pages runs, in order, in one namespace per page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.fork_server import shared_fork_server
from tests.process import environment
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
async def test_the_blocks_of_a_page_run_as_printed(page: Path, tmp_path: Path) -> None:
    program = tmp_path / "page.py"
    program.write_text(_blocks(page))
    plain = environment(tmp_path)
    out = tmp_path / "out.txt"
    ran = await shared_fork_server().start(
        [str(program)], plain, out, "tests.docs.program:main", cwd=tmp_path
    )
    try:
        code = await ran.wait()
    finally:
        ran.kill()
    assert code == 0, out.with_suffix(".err").read_text()


def _blocks(page: Path) -> str:
    return "\n".join(BLOCK.findall(page.read_text()))
