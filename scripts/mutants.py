"""Plants one fault at a time and runs the tests that must fail: `make mutants`.

Each entry of tests/mutants.toml breaks one promise on purpose. The fault is written into a temporary copy of
the tree, never into the tree itself. If no test fails, the fault has survived: a test is missing.
"""

from __future__ import annotations

import argparse
import ast
import os
import shutil
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from fnmatch import fnmatch
from importlib import import_module
from importlib.util import cache_from_source
from multiprocessing import get_context
from pathlib import Path
from typing import Literal

import msgspec
import pytest
from msgspec import Struct

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "tests/mutants.toml"
COPIED = ("src", "tests", "scripts", "examples", "docs", "schema", "changes", "pyproject.toml", "README.md")
RUN_WITHIN_SEC = 900
PRELOADED = (
    "anyio.pytest_plugin",
    "asyncpg",
    "httpx2",
    "hypothesis.stateful",
    "jsonschema_rs",
    "starlette.testclient",
    "uvicorn",
)
"""Imported once for all tests: many of them need these, and they contain no planted faults."""


class Mutant(Struct, frozen=True, forbid_unknown_fields=True):
    """`old` occurs exactly once in `file`; with `new` in its place, one of `tests` must fail."""

    id: str
    promise: str
    file: str
    old: str
    new: str
    tests: list[str]
    proof: Literal["", "lives", "decide", "append", "takeover"] = ""
    """Which part of the exactly-once argument it breaks, if it breaks one."""


class Verdict(StrEnum):
    KILLED = "killed"
    SURVIVED = "SURVIVED"
    NO_VERDICT = "NO VERDICT"


def main() -> None:
    options = _options()
    mutants = [each for each in read_mutants(LIST) if _is_chosen(each, options.names, proof=options.proof)]
    faults = list(faults_in(mutants, ROOT))
    if faults or not mutants:
        sys.exit("\n".join(faults) or f"mutants: none is called {' or '.join(options.names)}")
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = Path(folder)
        _copy_tree(copy)
        for name in PRELOADED:
            import_module(name)
        tests = options.tests or sorted({each for mutant in mutants for each in mutant.tests})
        if not options.unchecked and run_tests(copy, tests, says_why=True) is not Verdict.SURVIVED:
            sys.exit("mutants: the tests fail without any fault; fix them first")
        verdicts = Counter(_try(mutant, copy, options.tests or mutant.tests) for mutant in mutants)
    print(", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items())))
    if set(verdicts) != {Verdict.KILLED}:
        sys.exit(1)


def read_mutants(path: Path) -> list[Mutant]:
    listed: object = tomllib.loads(path.read_text()).get("mutant", [])
    return msgspec.convert(listed, list[Mutant])


def faults_in(mutants: Iterable[Mutant], root: Path) -> Iterator[str]:
    """One line for each entry of the list that is no longer valid."""
    seen: set[str] = set()
    for mutant in mutants:
        if mutant.id in seen:
            yield f"tests/mutants.toml: two mutants are called {mutant.id}"
        seen.add(mutant.id)
        yield from (f"{mutant.id}: {wrong}" for wrong in _wrong_with(mutant, root))


def _wrong_with(mutant: Mutant, root: Path) -> Iterator[str]:
    if not mutant.tests:
        yield "it names no test that must notice it"
    for test in mutant.tests:
        if not _exists(root, test):
            yield f"there is no {test or 'test without a name'}; name the test that notices this fault now"
    file = root / mutant.file
    text = file.read_text() if file.is_file() else ""
    if text.count(mutant.old) != 1:
        yield (
            f"its old text occurs {text.count(mutant.old)} times in {mutant.file}, not once. The code has "
            "changed: in tests/mutants.toml, plant the same fault where the promise is kept now, or remove "
            f"the entry if the promise is gone ({mutant.promise})"
        )
        return
    try:
        ast.parse(text.replace(mutant.old, mutant.new))
    except SyntaxError as error:
        yield f"with its new text {mutant.file} is no Python: {error}"


def _exists(root: Path, test: str) -> bool:
    """True for a file or a test in it. A folder would run all its tests for one fault."""
    name, _, inside = test.partition("::")
    path = root / name
    if not path.is_file():
        return False
    if not inside:
        return True
    text = path.read_text()
    # a class may inherit its tests
    return f"def {inside}(" in text or f"class {inside}(" in text


def run_tests(copy: Path, tests: Sequence[str], *, says_why: bool = False) -> Verdict:
    """Runs the tests in a forked process, which has this one's imports. Prints the names of failed tests;
    with
    `says_why` also the end of their output."""
    with tempfile.TemporaryFile() as output:
        process = get_context("fork").Process(target=_run_in, args=(copy, tests, output.fileno()))
        process.start()
        process.join(RUN_WITHIN_SEC)
        if process.exitcode is None:
            # a fault that makes the tests hang counts as noticed
            process.kill()
            process.join()
            return Verdict.KILLED
        output.seek(0)
        text = output.read().decode(errors="replace")
    if process.exitcode == pytest.ExitCode.TESTS_FAILED:
        if says_why:
            print(text[-2500:])
        _print_failures(text)
        return Verdict.KILLED
    if process.exitcode == pytest.ExitCode.OK:
        return Verdict.SURVIVED
    print(text[-2500:])
    return Verdict.NO_VERDICT


def _run_in(copy: Path, tests: Sequence[str], output: int) -> None:
    os.chdir(copy)
    os.dup2(output, 1)
    os.dup2(output, 2)
    # before the path of the editable install, including processes that a test starts
    sys.path[:0] = [str(copy), str(copy / "src")]
    os.environ["PYTHONPATH"] = str(copy / "src")
    for name in [name for name in sys.modules if name.partition(".")[0] in ("farhand", "tests", "scripts")]:
        del sys.modules[name]
    # schemathesis takes longer to import than most tests take to run, and no test of a fault needs it
    plugins = ("-p", "no:cacheprovider", "-p", "no:schemathesis")
    # about plugins that are already imported
    quiet = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
    sys.exit(pytest.main(["-x", "-q", *plugins, *quiet, "--timeout=60", *tests]))


def _try(mutant: Mutant, copy: Path, tests: Sequence[str]) -> Verdict:
    file = copy / mutant.file
    sound = file.read_text()
    _write(file, sound.replace(mutant.old, mutant.new))
    try:
        verdict = run_tests(copy, tests)
    finally:
        _write(file, sound)
    print(
        f"{verdict}: {mutant.id}" + ("" if verdict is Verdict.KILLED else f" ({mutant.promise})"), flush=True
    )
    return verdict


def _write(file: Path, text: str) -> None:
    file.write_text(text)
    # two faults of the same length within a second would share the compiled file
    Path(cache_from_source(str(file))).unlink(missing_ok=True)


def _print_failures(output: str) -> None:
    for line in output.splitlines():
        if line.startswith(("FAILED ", "ERROR ")):
            print(f"  {line[:200]}")


def _copy_tree(copy: Path) -> None:
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, copy / name)


def _is_chosen(mutant: Mutant, names: Sequence[str], *, proof: bool) -> bool:
    is_named = not names or any(fnmatch(mutant.id, name) for name in names)
    return is_named and (bool(mutant.proof) or not proof)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Plants one fault at a time and runs the tests that notice it."
    )
    parser.add_argument(
        "names", nargs="*", help="ids of mutants, * stands for anything; all if there is none"
    )
    parser.add_argument(
        "--proof",
        action="store_true",
        help="only the faults in the argument of docs/explanation/exactly-once.md",
    )
    parser.add_argument("--tests", action="append", help="run these tests instead of those of each mutant")
    parser.add_argument("--unchecked", action="store_true", help="do not run the tests without a fault first")
    return parser.parse_args()


if __name__ == "__main__":
    main()
