"""Lists public names that mean more than one thing, and fails when there are more of them than before.

Owns what counts as one thing: a name that every wire, provider or backend defines in its own package is one
role of all of them, and a command's function has the name of the command. Every other public class or
function has a unique name, so that a search for it finds one place.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

LIMIT = 7
"""It may only fall. The aim is 10."""
FAMILIES = ("faces", "models", "store", "testing", "bridges")
"""Packages whose sub-packages do the same job for different peers."""

Definition: TypeAlias = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def main() -> None:
    parser = argparse.ArgumentParser(description="Find public names that mean more than one thing.")
    parser.add_argument("root", nargs="?", type=Path, default=Path())
    parser.add_argument("--list", action="store_true", help="print them even if they are few enough")
    options = parser.parse_args()
    names = shared_names(options.root)
    if options.list or len(names) > LIMIT:
        print(*(f"{name}: {', '.join(modules)}" for name, modules in names.items()), sep="\n")
    if len(names) > LIMIT:
        sys.exit(
            f"{len(names)} public names mean more than one thing, at most {LIMIT} may: rename the new ones"
        )
    if len(names) < LIMIT:
        print(f"{len(names)} public names mean more than one thing; lower LIMIT in scripts/check_names.py")


def shared_names(root: Path) -> dict[str, list[str]]:
    """Names with more than one meaning and the modules that define them, the most frequent first."""
    modules: dict[str, list[str]] = defaultdict(list)
    roles: dict[str, set[str]] = defaultdict(set)
    package = root / "src" / "farhand"
    for path in sorted(package.rglob("*.py")):
        place = path.relative_to(package)
        for name in set(_public_names(path)):
            modules[name].append(place.as_posix())
            roles[name].add(_role(place))
    shared = [name for name in modules if len(roles[name]) > 1]
    return {name: modules[name] for name in sorted(shared, key=lambda name: (-len(modules[name]), name))}


def _role(place: Path) -> str:
    family = place.parts[0]
    # a bridge is one file
    if family in FAMILIES and (len(place.parts) > 2 or family == "bridges"):
        return family
    return place.as_posix()


def _public_names(path: Path) -> Iterator[str]:
    for node in ast.parse(path.read_text(), filename=str(path)).body:
        if isinstance(node, Definition) and not node.name.startswith("_") and not _is_command(node):
            yield node.name


def _is_command(node: Definition) -> bool:
    return any(".command(" in ast.unparse(decorator) for decorator in node.decorator_list)


if __name__ == "__main__":
    main()
