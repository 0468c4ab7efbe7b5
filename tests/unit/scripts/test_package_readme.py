"""The README of the package has no link that leads nowhere on a package index."""

from __future__ import annotations

import re
from pathlib import Path

from hatchling.builders.wheel import WheelBuilder

from scripts.package_readme import WHERE, for_package_index

ROOT = Path(__file__).resolve().parents[3]
RELATIVE = re.compile(r"\]\((?!https?:|#)")


def test_links_into_the_repository_become_text_and_its_pictures_are_left_out() -> None:
    kept = "[Python](https://python.org) and [below](#x)."
    text = f"# farhand\n\n![A picture](docs/a.svg)\n\nSee [the\ndocs](docs/a.md), {kept}\n"
    assert for_package_index(text) == f"# farhand\n\nSee the\ndocs, {kept}\n\n{WHERE}\n"


def test_the_metadata_of_the_package_has_no_relative_link() -> None:
    core = WheelBuilder(str(ROOT)).metadata.core
    assert core.readme_content_type == "text/markdown"
    assert core.readme.startswith("# farhand")
    assert RELATIVE.findall((ROOT / "README.md").read_text())
    assert RELATIVE.findall(core.readme) == []
