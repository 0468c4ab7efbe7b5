"""The README as a package index shows it: a metadata hook for hatchling, named in pyproject.toml.

An index resolves no relative link, so a link to a file of this repository becomes its text, and a picture of
this repository is left out. Links with an address of their own stay.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

WHERE = "The documentation is in the folder `docs` of the source distribution."
_PICTURE = re.compile(r"^!\[[^\]]*\]\((?!https?:)[^)]*\)\n+", re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?!https?:|#)[^)]*\)")


def for_package_index(readme: str) -> str:
    """The same text without relative links, and a sentence that says where the documentation is."""
    text = _LINK.sub(r"\1", _PICTURE.sub("", readme))
    return f"{text.rstrip()}\n\n{WHERE}\n"


class ReadmeHook(MetadataHookInterface):
    # Any: what hatchling's interface takes
    def update(self, metadata: dict[str, Any]) -> None:
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": for_package_index(text)}
