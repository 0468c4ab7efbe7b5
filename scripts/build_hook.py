"""A build hook for hatchling, named in pyproject.toml: fails if the pages have not been built.

An editable install needs no pages: it serves those of the clone once they are built.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

WITHOUT = "FARHAND_WITHOUT_PAGES"
MISSING = (
    "farhand: the pages are not built: run `make ui` first (it needs Node.js), "
    f"or set {WITHOUT}=1 to build without the chat page and the Inspector"
)


# Any: the configuration of a builder, which hatchling does not name
class PagesHook(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """`version` is the kind of build: `standard`, or `editable`."""
        pages = Path(self.root) / "src/farhand/_ui/index.html"
        if version == "editable" or pages.is_file() or os.environ.get(WITHOUT):
            return
        self.app.abort(MISSING)
