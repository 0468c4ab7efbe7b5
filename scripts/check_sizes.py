"""Fails when a file, a function or a package outgrows its limit, with one line per offender.

Owns the limits and the list of exceptions. Branches, arguments and nesting are checked by the linter.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

SOURCE_LINES = 500
TEST_LINES = 700
FUNCTION_LINES = 60
# nine in ten functions have at most this many
USUAL_FUNCTION_LINES = 35
PACKAGE_NAMES = 12
# modules that collect the names for users
PUBLIC_NAMES = 40
PUBLIC = ("src/farhand/__init__.py", "src/farhand/models/__init__.py")
EXCEPTIONS_AT_MOST = 5

# path -> one sentence why a split would read worse; lifts every limit for that file
EXCEPTIONS: dict[str, str] = {}

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


def main() -> None:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    offenders = check(root, EXCEPTIONS)
    for offender in offenders:
        print(offender)
    if offenders:
        sys.exit(1)


def check(root: Path, exceptions: dict[str, str]) -> list[str]:
    """One line for everything that is too large, and for every exception that is not needed."""
    found: dict[str, list[str]] = {}
    lengths: list[int] = []
    for path in _files(root):
        tree = ast.parse(path.read_text(), filename=str(path))
        name = path.relative_to(root).as_posix()
        found[name] = [f"{name}{line}" for line in _offenders(path, name, tree)]
        if name.startswith("src/"):
            lengths.extend(_length(function) for function in _functions(tree))
    kept = [line for name, lines in found.items() if name not in exceptions for line in lines]
    return [*kept, *_too_many_long(lengths), *_bad_exceptions(exceptions, found)]


def _files(root: Path) -> Iterator[Path]:
    for folder in ("src", "tests", "scripts", "examples", "bench"):
        yield from sorted(path for path in (root / folder).rglob("*.py") if "node_modules" not in path.parts)


def _offenders(path: Path, name: str, tree: ast.Module) -> Iterator[str]:
    lines = len(path.read_text().splitlines())
    limit = TEST_LINES if name.startswith("tests/") else SOURCE_LINES
    if lines > limit:
        yield f": {lines} lines, {limit} at most; split it by noun"
    for function in _functions(tree):
        length = _length(function)
        if length > FUNCTION_LINES:
            yield f":{function.lineno}: {function.name}() has {length} lines, {FUNCTION_LINES} at most"
    if name.startswith("src/") and path.name == "__init__.py":
        yield from _too_many_names(name, tree)


def _functions(tree: ast.Module) -> Iterator[Function]:
    for node in ast.walk(tree):
        if isinstance(node, Function):
            yield node


def _length(function: Function) -> int:
    """Lines from `def` to the last one, without the docstring."""
    length = (function.end_lineno or function.lineno) - function.lineno + 1
    if ast.get_docstring(function, clean=False) is None:
        return length
    docstring = function.body[0]
    return length - ((docstring.end_lineno or docstring.lineno) - docstring.lineno + 1)


def _too_many_names(name: str, tree: ast.Module) -> Iterator[str]:
    limit = PUBLIC_NAMES if name in PUBLIC else PACKAGE_NAMES
    names = _public_names(tree)
    if len(names) > limit:
        yield f": {len(names)} public names, {limit} at most"


def _public_names(tree: ast.Module) -> set[str]:
    """The names in `__all__`; without a plain list, every name without an underscore."""
    names: set[str] = set()
    for node in tree.body:
        for name, value in _bindings(node):
            if name == "__all__" and isinstance(value, ast.List | ast.Tuple):
                return {ast.unparse(item) for item in value.elts}
            if not name.startswith("_"):
                names.add(name)
    return names - {"annotations"}


def _bindings(node: ast.stmt) -> Iterator[tuple[str, ast.expr | None]]:
    match node:
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            for alias in aliases:
                yield alias.asname or alias.name.split(".")[0], None
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name, None
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                if isinstance(target, ast.Name):
                    yield target.id, value
        case ast.AnnAssign(target=ast.Name(id=name), value=value):
            yield name, value
        case _:
            return


def _too_many_long(lengths: list[int]) -> Iterator[str]:
    long = sum(length > USUAL_FUNCTION_LINES for length in lengths)
    if long * 10 > len(lengths):
        share = f"{long} of {len(lengths)} functions"
        yield f"src: {share} have over {USUAL_FUNCTION_LINES} lines; one in ten at most"


def _bad_exceptions(exceptions: dict[str, str], found: dict[str, list[str]]) -> Iterator[str]:
    if len(exceptions) > EXCEPTIONS_AT_MOST:
        yield f"scripts/check_sizes.py: {len(exceptions)} exceptions, {EXCEPTIONS_AT_MOST} at most"
    for name, reason in exceptions.items():
        if not reason.strip():
            yield f"scripts/check_sizes.py: the exception for {name} gives no reason"
        if not found.get(name):
            yield f"scripts/check_sizes.py: {name} needs no exception any more"


if __name__ == "__main__":
    main()
