from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from scripts.check_sizes import check

ROOT = Path(__file__).resolve().parents[3]
SMALL = "def small() -> None: ...\n" * 40


@pytest.mark.parametrize(
    ("path", "limit"),
    [("src/farhand/big.py", 500), ("scripts/big.py", 500), ("tests/unit/test_big.py", 700)],
)
def test_a_file_may_reach_its_limit_but_not_cross_it(path: str, limit: int, tmp_path: Path) -> None:
    plant(tmp_path, path, "x = 1\n" * limit)
    assert check(tmp_path, {}) == []
    plant(tmp_path, path, "x = 1\n" * (limit + 1))
    assert check(tmp_path, {}) == [f"{path}: {limit + 1} lines, {limit} at most; split it by noun"]


def test_a_function_may_reach_sixty_lines_but_not_cross_them(tmp_path: Path) -> None:
    plant(tmp_path, "src/farhand/a.py", SMALL + function("long", lines=60))
    assert check(tmp_path, {}) == []
    plant(tmp_path, "src/farhand/a.py", SMALL + function("long", lines=61))
    assert check(tmp_path, {}) == ["src/farhand/a.py:41: long() has 61 lines, 60 at most"]


def test_an_async_method_is_measured_too(tmp_path: Path) -> None:
    method = "".join(f"    {line}\n" for line in f"async {function('slow', lines=61)}".splitlines())
    plant(tmp_path, "tests/unit/test_a.py", "class A:\n" + method)
    assert check(tmp_path, {}) == ["tests/unit/test_a.py:2: slow() has 61 lines, 60 at most"]


def test_a_docstring_costs_a_function_nothing(tmp_path: Path) -> None:
    docstring = '    """' + "\n    More words." * 30 + '\n    """\n'
    text = function("long", lines=60).replace(":\n", ":\n" + docstring, 1)
    plant(tmp_path, "src/farhand/a.py", SMALL + text)
    assert check(tmp_path, {}) == []


def test_one_function_in_ten_may_be_long(tmp_path: Path) -> None:
    plant(tmp_path, "src/farhand/a.py", "def small() -> None: ...\n" * 9 + function("long", lines=36))
    assert check(tmp_path, {}) == []
    plant(tmp_path, "src/farhand/a.py", "def small() -> None: ...\n" * 8 + function("long", lines=36))
    assert check(tmp_path, {}) == ["src: 1 of 9 functions have over 35 lines; one in ten at most"]


@pytest.mark.parametrize(("package", "limit"), [("farhand/core", 12), ("farhand", 40)])
def test_a_package_may_show_only_so_many_names(package: str, limit: int, tmp_path: Path) -> None:
    init = f"src/{package}/__init__.py"
    plant(tmp_path, init, f"__all__ = {[f'Name{i}' for i in range(limit)]}\n")
    assert check(tmp_path, {}) == []
    plant(tmp_path, init, f"__all__ = {[f'Name{i}' for i in range(limit + 1)]}\n")
    assert check(tmp_path, {}) == [f"{init}: {limit + 1} public names, {limit} at most"]


def test_names_of_a_package_without_a_list_are_counted_as_bound(tmp_path: Path) -> None:
    bound = ["import a.b", "from c import d as e", "def f(): ...", "class G: ...", "H = 1", "I: int = 2"]
    hidden = ["from __future__ import annotations", "_j = 1", "from k import l as _l"]
    more = [f"from m import n{i}" for i in range(12 - len(bound))]
    plant(tmp_path, "src/farhand/core/__init__.py", "\n".join([*hidden, *bound, *more]))
    assert check(tmp_path, {}) == []
    plant(tmp_path, "src/farhand/core/__init__.py", "\n".join([*hidden, *bound, *more, "o = 1"]))
    assert check(tmp_path, {}) == ["src/farhand/core/__init__.py: 13 public names, 12 at most"]


def test_a_listed_file_may_be_large(tmp_path: Path) -> None:
    plant(tmp_path, "src/farhand/big.py", "x = 1\n" * 501)
    assert check(tmp_path, {"src/farhand/big.py": "A table reads best in one piece."}) == []


def test_five_exceptions_are_the_most(tmp_path: Path) -> None:
    names = [f"src/farhand/big{i}.py" for i in range(6)]
    for name in names:
        plant(tmp_path, name, "x = 1\n" * 501)
    assert check(tmp_path, dict.fromkeys(names, "A reason.")) == [
        "scripts/check_sizes.py: 6 exceptions, 5 at most"
    ]


def test_an_exception_without_a_reason_or_without_need_is_an_offender(tmp_path: Path) -> None:
    plant(tmp_path, "src/farhand/big.py", "x = 1\n" * 501)
    exceptions = {"src/farhand/big.py": " ", "src/farhand/gone.py": "It was large once."}
    assert check(tmp_path, exceptions) == [
        "scripts/check_sizes.py: the exception for src/farhand/big.py gives no reason",
        "scripts/check_sizes.py: src/farhand/gone.py needs no exception any more",
    ]


def test_the_command_prints_offenders_and_fails(tmp_path: Path) -> None:
    plant(tmp_path, "src/farhand/big.py", "x = 1\n" * 501)
    command = [sys.executable, str(ROOT / "scripts/check_sizes.py"), str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (
        1,
        "src/farhand/big.py: 501 lines, 500 at most; split it by noun\n",
    )


def plant(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def function(name: str, *, lines: int) -> str:
    return f"def {name}() -> None:\n" + "    x = 1\n" * (lines - 1)
