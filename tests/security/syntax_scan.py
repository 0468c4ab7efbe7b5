"""Finds where the code reads and writes outside input, by its syntax instead of its text."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2] / "src" / "farhand"

READERS = {
    "json.load", "json.loads", "json.JSONDecoder", "msgspec.json.decode", "msgspec.json.Decoder",
    "orjson.loads",
    "msgspec.yaml.decode", "msgspec.toml.decode", "msgspec.msgpack.decode", "msgspec.msgpack.Decoder",
    "tomllib.load", "tomllib.loads", "yaml.load", "yaml.safe_load", "yaml.load_all", "yaml.unsafe_load",
    "yaml.compose", "yaml.parse", "pickle.load", "pickle.loads", "marshal.loads", "shelve.open", "eval",
    "exec",
    "compile", "ast.literal_eval", "urllib.parse.parse_qs", "urllib.parse.parse_qsl", "jwt.decode",
    "xml.etree.ElementTree.fromstring", "xml.etree.ElementTree.parse", "http.cookies.SimpleCookie",
    "starlette.requests.Request", "starlette.websockets.WebSocket",
}  # fmt: skip


@cache
def modules() -> list[tuple[str, ast.Module]]:
    """Every module but the fakes we publish for tests, parsed once."""
    paths = {path.relative_to(ROOT).as_posix(): path for path in sorted(ROOT.rglob("*.py"))}
    return [(name, ast.parse(path.read_text())) for name, path in paths.items() if name[:8] != "testing/"]


@cache
def readers_in(tree: ast.Module) -> frozenset[str]:
    """The readers of foreign text that are named here, whether called or kept for later."""
    names = _names(tree)
    found = {names.get(each.id, each.id) for each in _nodes(tree) if isinstance(each, ast.Name)}
    found |= {_dotted(each, names) for each in _nodes(tree) if isinstance(each, ast.Attribute)}
    return frozenset(found & READERS)


def texts_in(tree: ast.Module) -> Iterator[str]:
    """Every constant text or bytes outside of docstrings."""
    documents = {id(each.value) for each in _nodes(tree) if isinstance(each, ast.Expr)}
    for each in _nodes(tree):
        if isinstance(each, ast.Constant) and id(each) not in documents:
            if isinstance(each.value, bytes):
                yield each.value.decode("latin-1")
            elif isinstance(each.value, str):
                yield each.value


@cache
def names_in(tree: ast.Module) -> frozenset[str]:
    """Every function of another module that is named here, with the module's whole name."""
    names = _names(tree)
    found = {names[each.id] for each in _nodes(tree) if isinstance(each, ast.Name) and each.id in names}
    return frozenset(
        found | {_dotted(each, names) for each in _nodes(tree) if isinstance(each, ast.Attribute)}
    )


@cache
def _nodes(tree: ast.Module) -> tuple[ast.AST, ...]:
    """Walked through once for all questions."""
    return tuple(ast.walk(tree))


@cache
def _names(tree: ast.Module) -> dict[str, str]:
    """What each imported name stands for."""
    names: dict[str, str] = {}
    for each in _nodes(tree):
        if isinstance(each, ast.Import):
            names.update({alias.asname or alias.name.partition(".")[0]: (alias.asname and alias.name)
                          or alias.name.partition(".")[0] for alias in each.names})  # fmt: skip
        elif isinstance(each, ast.ImportFrom) and each.module:
            names.update({alias.asname or alias.name: f"{each.module}.{alias.name}" for alias in each.names})
    return names


def _dotted(node: ast.expr, names: dict[str, str]) -> str:
    if isinstance(node, ast.Name):
        return names.get(node.id, node.id)
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value, names)}.{node.attr}"
    return ""
