"""The list of promises and the tests that prove them agree in both directions.

Marks are read from the source text: every worker of a parallel run sees all of them, and the TypeScript tests
count as well.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TypedDict

import pytest

ROOT = Path(__file__).resolve().parents[2]
ID = re.compile(r"[a-z0-9][a-z0-9-]*:[a-z0-9][a-z0-9-]*")
NUMBERED = {"C": 15, "R": 5, "S": 4, "D": 3}
NUMBER = re.compile(r"\b([CRSD]\d{1,2})(?=[,)])")
TYPESCRIPT_MARK = re.compile(r"""\brequirement\(\s*["'`]([^"'`]+)["'`]""")


class Promise(TypedDict, total=False):
    id: str
    sentence: str
    source: str
    gap: str


def promises() -> list[Promise]:
    listed: list[Promise] = tomllib.loads((ROOT / "tests/requirements.toml").read_text()).get(
        "requirement", []
    )
    return listed


def test_every_promise_has_an_id_a_sentence_and_a_source() -> None:
    incomplete = [
        promise
        for promise in promises()
        if not ID.fullmatch(promise.get("id", "")) or not promise.get("sentence") or not promise.get("source")
    ]
    assert incomplete == []


def test_ids_are_unique() -> None:
    counted = Counter(promise["id"] for promise in promises())
    assert [name for name, times in counted.items() if times > 1] == []


def test_a_gap_gives_its_reason() -> None:
    assert [promise["id"] for promise in promises() if "gap" in promise and not promise["gap"].strip()] == []


def test_every_promise_without_a_gap_is_proved_by_a_test() -> None:
    proved = marks()
    assert [
        promise["id"] for promise in promises() if "gap" not in promise and promise["id"] not in proved
    ] == []


def test_every_mark_names_a_listed_promise() -> None:
    listed = {promise["id"] for promise in promises()}
    assert sorted(marks() - listed) == []


def test_every_numbered_promise_of_the_design_is_listed() -> None:
    """A call, a run, a stream and a dependency have numbered promises; sentences end with their numbers."""
    numbered = {f"{kind}{number}" for kind, last in NUMBERED.items() for number in range(1, last + 1)}
    found = {number for promise in promises() for number in NUMBER.findall(promise["sentence"])}
    assert numbered - found == set()


MARKED = """
import pytest
from tests.requirement import requirement

pytestmark = [requirement("module:mark"), pytest.mark.slow]

@requirement("function:mark")
async def test_one() -> None: ...

@requirement("class:mark")
class TestMany:
    @requirement("method:mark")
    def test_two(self) -> None: ...

CASES = [pytest.param(1, marks=requirement("case:mark"))]
"""


@pytest.mark.parametrize("kind", ["module", "function", "class", "method", "case"])
def test_marks_are_found_on(kind: str, tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_marked.py").write_text(MARKED)
    assert f"{kind}:mark" in set(marks_in(tmp_path))


def test_typescript_marks_are_found_outside_installed_packages(tmp_path: Path) -> None:
    for folder in ("ts/packages/client/src", "ts/node_modules/other"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "a.test.ts").write_text(f"it(requirement('{folder[-3:]}:once'), () => {{}})")
    assert set(marks_in(tmp_path)) == {"src:once"}


@cache
def marks() -> frozenset[str]:
    """Those of this repository."""
    return frozenset(marks_in(ROOT))


def marks_in(root: Path) -> Iterator[str]:
    """The id of every mark in the tests of both languages."""
    for path in python_files(root / "tests"):
        text = path.read_text()
        if "requirement(" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            mark = mark_of(node)
            if mark is not None:
                yield mark
    for path in (root / "ts").rglob("*.test.ts*"):
        if "node_modules" not in path.parts:
            yield from TYPESCRIPT_MARK.findall(path.read_text())


def mark_of(node: ast.AST) -> str | None:
    match node:
        case ast.Call(func=ast.Name(id="requirement"), args=[ast.Constant(value=str() as name)]):
            return name
        case _:
            return None


def python_files(folder: Path) -> Iterator[Path]:
    yield from sorted(folder.rglob("*.py"))
