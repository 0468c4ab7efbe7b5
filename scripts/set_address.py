"""Writes the public address of the repository into every manifest: `python scripts/set_address.py URL`.

Owns where an address stands: `repository`, `homepage` and `bugs` of each npm package, and `[project.urls]` of
`pyproject.toml`. Everything else in those files stays as it is, byte for byte, and a second run with the same
address changes nothing.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = "ts/packages"
AFTER = "license"
"""The field that the address follows in a `package.json`."""

# a host, then a path: no name, password, query or fragment
_ADDRESS = re.compile(r"https://[\w.-]+(?::\d+)?(?:/[\w.~-]+)+", re.ASCII)
_SECTION = re.compile(r"^\[project\.urls\]\n(?:(?!\[).*\n)*", re.MULTILINE)
_NEXT_SECTION = "[project.scripts]\n"


def checked(address: str) -> str:
    """The address without a trailing slash or `.git`; ValueError if no public repository can have it."""
    found = _ADDRESS.fullmatch(address.removesuffix("/").removesuffix(".git"))
    if found is None:
        raise ValueError(f"{address!r} is no address of a repository; give one like https://HOST/OWNER/NAME.")
    return found[0]


def with_address(manifest: str, *, address: str, directory: str) -> str:
    """The text of a `package.json` with the address in it."""
    known = json.loads(manifest)
    fields = {
        "repository": {"type": "git", "url": f"git+{address}.git", "directory": directory},
        "homepage": address,
        "bugs": {"url": f"{address}/issues"},
    }
    others = {name: value for name, value in known.items() if name not in fields}
    if as_json(known) != manifest or AFTER not in others:
        raise ValueError(f"{directory}/package.json is not formatted as npm formats it.")
    told: dict[str, object] = {}
    for name, value in others.items():
        told[name] = value
        if name == AFTER:
            told.update(fields)
    return as_json(told)


def with_urls(pyproject: str, *, address: str) -> str:
    """The text of `pyproject.toml` with the address in it."""
    section = (
        f'[project.urls]\nHomepage = "{address}"\nRepository = "{address}"\nIssues = "{address}/issues"\n\n'
    )
    if _SECTION.search(pyproject):
        written = _SECTION.sub(section, pyproject, count=1)
    else:
        written = pyproject.replace(_NEXT_SECTION, f"{section}{_NEXT_SECTION}", 1)
    if tomllib.loads(written)["project"].get("urls", {}).get("Repository") != address:
        raise ValueError(f"pyproject.toml has no {_NEXT_SECTION.strip()} for [project.urls] to stand before.")
    return written


def as_json(value: dict[str, object]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def set_address(root: Path, address: str) -> list[Path]:
    """Writes the address below `root` and gives the files that changed; all of them, or none."""
    address = checked(address)
    pyproject = root / "pyproject.toml"
    texts = {pyproject: with_urls(pyproject.read_text(), address=address)}
    for manifest in sorted((root / PACKAGES).glob("*/package.json")):
        directory = manifest.parent.relative_to(root).as_posix()
        texts[manifest] = with_address(manifest.read_text(), address=address, directory=directory)
    changed = [path for path, text in texts.items() if path.read_text() != text]
    for path in changed:
        path.write_text(texts[path])
    return changed


def main(arguments: Sequence[str]) -> str | None:
    """The complaint, if there is one."""
    if len(arguments) != 1:
        return "usage: python scripts/set_address.py https://HOST/OWNER/NAME"
    try:
        changed = set_address(ROOT, arguments[0])
    except ValueError as error:
        return f"set_address: {error}"
    for path in changed:
        print(f"set_address: {path.relative_to(ROOT)}")
    print(f"set_address: {len(changed)} files changed")
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
