"""Fails when our code uses a private part of another library, with one line per offender.

A name is private if it begins with one underscore and is not documented. Five kinds of use are found: an
import, an attribute of something imported, a private name that nothing in this repository defines, an
attribute inherited from another library's class, and a name of ours that such a class also uses.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeGuard

FOLDERS = ("src", "tests", "scripts", "examples", "bench")
OURS = frozenset({"farhand", "tests", "scripts", "examples", "bench"})
DOCUMENTED = frozenset({"os._exit", "sys._getframe"})
"""Part of the library's public documentation despite their names."""
DOCUMENTED_ATTRIBUTES = frozenset({"_asdict", "_fields", "_replace", "_make", "_field_defaults"})
"""Those of named tuples."""

_BY_NAME = frozenset({"getattr", "setattr", "hasattr", "delattr", "setitem"})
_OWN_ATTRIBUTE = re.compile(r"\bself\.(_[a-z]\w*)")


class Class(NamedTuple):
    """A class of ours: what it defines, and its bases as full names."""

    module: str
    defines: frozenset[str]
    bases: tuple[str, ...]


class Module(NamedTuple):
    name: str
    nodes: tuple[ast.AST, ...]
    imports: dict[str, str]
    """Every imported name, and its full name."""


def main() -> None:
    offenders = check(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
    print(*offenders, sep="\n", end="\n" if offenders else "")
    sys.exit(1 if offenders else 0)


def check(root: Path) -> list[str]:
    modules = list(_modules(root))
    defined = frozenset(name for module in modules for name in _defined_in(module.nodes))
    classes = {
        f"{_dotted(module.name)}.{node.name}": _class(node, module)
        for module in modules
        for node in module.nodes
        if isinstance(node, ast.ClassDef)
    }
    offenders = [
        f"{module.name}:{line}: {what}"
        for module in modules
        for line, what in (*_imports(module), *_attributes(module, defined), *_inherited(module, classes))
    ]
    return list(dict.fromkeys(offenders))


def _modules(root: Path) -> Iterator[Module]:
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.py")):
            if "node_modules" in path.parts:
                continue
            tree = ast.parse(path.read_text(), filename=str(path))
            nodes = tuple(ast.walk(tree))
            yield Module(path.relative_to(root).as_posix(), nodes, dict(_imported(nodes)))


def _imported(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, str]]:
    for node in nodes:
        if isinstance(node, ast.Import):
            for each in node.names:
                first = each.name.partition(".")[0]
                yield (each.asname, each.name) if each.asname else (first, first)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for each in node.names:
                yield each.asname or each.name, f"{node.module}.{each.name}"


def _imports(module: Module) -> Iterator[tuple[int, str]]:
    for node in module.nodes:
        if isinstance(node, ast.Import):
            names = [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{each.name}" for each in node.names]
        else:
            continue
        for name in names:
            if _is_foreign(name) and any(map(_is_private, name.split("."))) and name not in DOCUMENTED:
                yield node.lineno, f"imports {name}"


def _attributes(module: Module, defined: frozenset[str]) -> Iterator[tuple[int, str]]:
    for node in module.nodes:
        if not isinstance(node, ast.Attribute | ast.Call):
            continue
        found = _private_attribute(node)
        if found is None:
            continue
        owner, name = found
        full = _full_name(owner, module.imports)
        if name in DOCUMENTED_ATTRIBUTES or f"{full}.{name}" in DOCUMENTED:
            continue
        if full is not None and _is_foreign(full):
            yield node.lineno, f"uses {full}.{name}"
        elif name not in defined:
            yield node.lineno, f"uses {name}, which nothing in this repository defines"


def _private_attribute(node: ast.Attribute | ast.Call) -> tuple[ast.expr, str] | None:
    """`owner._name`, or the same through `getattr(owner, "_name")` and similar functions."""
    if isinstance(node, ast.Attribute):
        return (node.value, node.attr) if _is_private(node.attr) else None
    if len(node.args) < 2:
        return None
    called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    owner, name = node.args[:2]
    if called in _BY_NAME and isinstance(name, ast.Constant) and _is_private(name.value):
        return owner, str(name.value)
    return None


def _inherited(module: Module, classes: dict[str, Class]) -> Iterator[tuple[int, str]]:
    """Private names that a class shares with a base class in another library."""
    for node in module.nodes:
        if not isinstance(node, ast.ClassDef):
            continue
        own, foreign = _ancestry(f"{_dotted(module.name)}.{node.name}", classes)
        if not foreign:
            continue
        for inner in ast.walk(node):
            if _is_on_self(inner) and inner.attr not in own:
                yield inner.lineno, f"{node.name} uses {inner.attr}, which {' or '.join(foreign)} may define"
        theirs = frozenset(name for base in foreign for name in _private_names_of(base))
        for name in sorted(own & theirs):
            yield node.lineno, f"{node.name} defines {name}, which {' or '.join(foreign)} uses for itself"


def _ancestry(name: str, classes: dict[str, Class]) -> tuple[frozenset[str], list[str]]:
    """The private names that a class and its bases among ours define, and its bases in other libraries."""
    own: frozenset[str] = frozenset()
    foreign: list[str] = []
    waiting, seen = [name], {name}
    while waiting:
        found = classes[waiting.pop()]
        own |= found.defines
        for base in found.bases:
            if base in classes and base not in seen:
                seen.add(base)
                waiting.append(base)
            elif base not in classes and _is_foreign(base):
                foreign.append(base)
    return own, foreign


def _class(node: ast.ClassDef, module: Module) -> Class:
    bases = []
    for base in node.bases:
        plain = base.value if isinstance(base, ast.Subscript) else base
        full = _full_name(plain, module.imports)
        if full is None and isinstance(plain, ast.Name):
            full = f"{_dotted(module.name)}.{plain.id}"
        bases.extend([full] if full else [])
    return Class(module.name, _defined_in(ast.walk(node)), tuple(bases))


def _defined_in(nodes: Iterable[ast.AST]) -> frozenset[str]:
    return frozenset(name for node in nodes for name in _names(node) if _is_private(name))


def _names(node: ast.AST) -> Iterable[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return (name,)
        case (
            ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name)
        ):
            return (name,)
        case ast.Assign(targets=[ast.Name(id="__slots__")], value=ast.Tuple(elts=names)):
            return tuple(str(each.value) for each in names if isinstance(each, ast.Constant))
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return tuple(each.asname or each.name for each in names)
        case _:
            return ()


@cache
def _private_names_of(full: str) -> frozenset[str]:
    """The private names that another library's class uses; none for a class that is not written in Python."""
    module, _, name = full.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError):
        return frozenset()
    names: set[str] = set()
    for base in inspect.getmro(found) if isinstance(found, type) else ():
        names.update(name for name in vars(base) if _is_private(name) and not name.startswith("_abc"))
        try:
            names.update(_OWN_ATTRIBUTE.findall(inspect.getsource(base)))
        except (OSError, TypeError):
            continue
    return frozenset(names)


def _full_name(node: ast.expr, imports: dict[str, str]) -> str | None:
    if isinstance(node, ast.Name):
        return imports.get(node.id)
    if isinstance(node, ast.Attribute):
        owner = _full_name(node.value, imports)
        return None if owner is None else f"{owner}.{node.attr}"
    return None


def _is_on_self(node: ast.AST) -> TypeGuard[ast.Attribute]:
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in {"self", "cls"}
        and _is_private(node.attr)
        and node.attr not in DOCUMENTED_ATTRIBUTES
    )


def _is_private(name: object) -> bool:
    return isinstance(name, str) and len(name) > 1 and name[0] == "_" and name[1] != "_"


def _is_foreign(full: str) -> bool:
    return full.partition(".")[0] not in OURS


def _dotted(path: str) -> str:
    return path.removeprefix("src/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")


if __name__ == "__main__":
    main()
