"""Documentation and examples use only public modules, and everything in those can be imported."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from tests.requirement import requirement

ROOT = Path(__file__).resolve().parents[2]
PUBLIC = (
    "farhand",
    "farhand.auth",
    "farhand.bridges",
    "farhand.bridges.anthropic",
    "farhand.bridges.bridge",
    "farhand.bridges.openai",
    "farhand.client",
    "farhand.errors",
    "farhand.messages",
    "farhand.models",
    "farhand.testing",
)
SHOWN = ("README.md", "docs", "examples")
IMPORT = re.compile(r"^\s*(?:from|import) (farhand[\w.]*)", re.MULTILINE)
INTERNAL_PART = re.compile(
    r"\b(?:app|hands|agent)\.(?:service|spec|state|sessions|faces|values|store_address|configure|_\w+)\b"
)
# they measure parts by themselves: the log, a store, a wire, or a trip without an HTTP server
MEASURE_PARTS = {
    "bench/apps/older.py",
    "bench/apps/whole.py",
    "bench/costs.py",
    "bench/held_streams.py",
    "bench/logs.py",
    "bench/p07.py",
    "bench/p08.py",
    "bench/p12.py",
    "bench/p15.py",
    "bench/pending.py",
    "bench/synthetic_run.py",
    "bench/reads.py",
    "bench/targets.py",
}


@requirement("surface:public")
def test_documentation_and_examples_import_public_modules_alone() -> None:
    assert [found for found in _imports(*SHOWN) if not _is_public(found[1])] == []


@requirement("surface:public")
def test_documentation_and_examples_use_no_internal_parts_of_an_app() -> None:
    used = [(path, part) for path, text in _texts(*SHOWN) for part in INTERNAL_PART.findall(text)]
    assert used == []


@requirement("surface:public")
@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_module_has_a_docstring_and_every_name_that_it_lists(name: str) -> None:
    module = import_module(name)
    assert module.__doc__
    assert sorted(module.__all__) == sorted(set(module.__all__))
    assert [each for each in module.__all__ if getattr(module, each, None) is None] == []


def test_of_the_benchmarks_only_those_of_parts_import_internal_modules() -> None:
    assert {path for path, module in _imports("bench") if not _is_public(module)} <= MEASURE_PARTS


def _is_public(module: str) -> bool:
    return module in PUBLIC or module.startswith("farhand.bridges")


def _imports(*places: str) -> Iterator[tuple[str, str]]:
    for path, text in _texts(*places):
        for module in IMPORT.findall(text):
            yield path, module


def _texts(*places: str) -> Iterator[tuple[str, str]]:
    for place in places:
        root = ROOT / place
        files = [root] if root.is_file() else [*root.rglob("*.py"), *root.rglob("*.md")]
        for file in sorted(file for file in files if "node_modules" not in file.parts):
            yield file.relative_to(ROOT).as_posix(), file.read_text()
