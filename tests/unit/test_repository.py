"""The checks themselves: each violation is planted in a copy of the tree, and `make` must fail."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FORBIDDEN_NAMES = {"utils", "helpers", "common", "manager", "handler", "data", "info", "process"}
SUPPRESSION = re.compile(r"#\s*(noqa|type: ignore)\b")

# contract -> the file that breaks it and what stands in it
BROKEN_IMPORTS = {
    "imports point one way": ("calls/planted.py", "import farhand.agent"),
    "the SDK for outside programs imports": ("client.py", "import farhand.calls"),
    "faces do not know each other": ("faces/ack/planted.py", "import farhand.faces.awaiting"),
    "only store/open.py names a backend": ("agent/planted.py", "import farhand.store.sqlite"),
    "faces never import store": ("faces/awaiting/planted.py", "import farhand.store"),
    "core is pure": ("core/planted.py", "import asyncio"),
    "wire knows no calls": ("wire/planted.py", "import farhand.core"),
}

# rule -> code that breaks it
BAD_SHAPES = {
    "complex-structure": "def branches(x: int) -> int:\n"
    + "".join(f"    if x == {i}:\n        x += 1\n" for i in range(8))
    + "    return x\n",
    "too-many-arguments": "def many(a: int, b: int, c: int, d: int, e: int, f: int, g: int) -> None: ...\n",
    "too-many-nested-blocks": "def nesting(x: int) -> None:\n"
    + "".join("    " * (i + 1) + f"while x > {i}:\n" for i in range(4))
    + "    " * 5
    + "x -= 1\n",
}


@pytest.mark.tools
def test_the_map_as_it_stands_keeps_every_import_contract(tmp_path: Path) -> None:
    ended = make("check-imports", in_=copy_of_the_map(tmp_path))
    assert ended.returncode == 0, ended.stdout
    assert f"{len(BROKEN_IMPORTS)} kept, 0 broken" in ended.stdout


@pytest.mark.tools
def test_each_import_contract_is_broken_by_a_planted_import(tmp_path: Path) -> None:
    root = copy_of_the_map(tmp_path)
    for name, line in BROKEN_IMPORTS.values():
        plant(root / "src/farhand" / name, f"{line}\n")
    ended = make("check-imports", in_=root)
    assert ended.returncode != 0
    for contract in BROKEN_IMPORTS:
        assert re.search(rf"^{contract}.* BROKEN$", ended.stdout, flags=re.MULTILINE), contract


@pytest.mark.tools
def test_a_new_package_must_be_placed_on_the_map(tmp_path: Path) -> None:
    root = copy_of_the_map(tmp_path)
    plant(root / "src/farhand/attic/__init__.py", "")
    ended = make("check-imports", in_=root)
    assert ended.returncode != 0
    assert "attic" in ended.stdout


@pytest.mark.tools
def test_a_planted_large_file_fails_the_check(tmp_path: Path) -> None:
    root = copy_of_the_map(tmp_path)
    plant(root / "src/farhand/core/planted.py", "x = 1\n" * 501)
    ended = make("check-sizes", in_=root)
    assert ended.returncode != 0
    assert "src/farhand/core/planted.py: 501 lines" in ended.stdout


@pytest.mark.tools
@pytest.mark.parametrize("rule", BAD_SHAPES)
def test_a_planted_bad_shape_fails_the_check(rule: str, tmp_path: Path) -> None:
    root = copy_of_the_map(tmp_path)
    assert make("check-lint", in_=root).returncode == 0
    plant(root / "src/farhand/core/planted.py", BAD_SHAPES[rule])
    ended = make("check-lint", in_=root)
    assert ended.returncode != 0
    assert "planted.py" in ended.stdout
    assert rule in ended.stdout


@pytest.mark.tools
@pytest.mark.parametrize(
    ("command", "text"),
    [("check-types", "def f(x):\n    return x\n"), ("check-format", "x=1\n")],
    ids=["types", "format"],
)
def test_a_planted_missing_type_or_bad_format_fails_the_check(
    command: str, text: str, tmp_path: Path
) -> None:
    root = copy_of_the_map(tmp_path)
    plant(root / "src/farhand/core/planted.py", text)
    ended = make(command, in_=root)
    assert ended.returncode != 0
    assert "planted.py" in ended.stdout + ended.stderr


def test_make_alone_lists_the_commands_for_a_newcomer() -> None:
    listed = re.findall(r"^  ([a-z]+) ", make(in_=ROOT).stdout, flags=re.MULTILINE)
    assert {"help", "demo", "test", "check", "docs", "bench", "lock", "clean"} <= set(listed)


def test_continuous_integration_runs_what_a_contributor_runs() -> None:
    script = ROOT / ".ci/run"
    assert os.access(script, os.X_OK)
    assert script.read_text().endswith("exec make test\n")


def test_no_module_has_a_name_that_says_nothing() -> None:
    modules = (ROOT / "src/farhand").rglob("*.py")
    assert [str(path) for path in modules if FORBIDDEN_NAMES & {path.stem, path.parent.name}] == []


def test_every_silenced_rule_gives_its_reason_on_the_line_above() -> None:
    silent = []
    for path in sorted((ROOT / "src").rglob("*.py")):
        lines = path.read_text().splitlines()
        for number, line in enumerate(lines):
            if SUPPRESSION.search(line) and not lines[number - 1].lstrip().startswith("#"):
                silent.append(f"{path.relative_to(ROOT)}:{number + 1}")
    assert silent == []


def copy_of_the_map(room: Path) -> Path:
    """The real file names with nothing in them: what fails afterwards is what was planted."""
    for path in (ROOT / "src/farhand").rglob("*.py"):
        plant(room / path.relative_to(ROOT), "")
    for face in ("ack", "awaiting"):
        plant(room / f"src/farhand/faces/{face}/__init__.py", "")
    for name in ("Makefile", "pyproject.toml", "scripts/__init__.py", "scripts/check_sizes.py"):
        (room / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, room / name)
    for folder in ("tests", "examples", "bench"):
        plant(room / folder / "__init__.py", "")
    return room


def plant(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def make(*commands: str, in_: Path) -> subprocess.CompletedProcess[str]:
    """Run the real Makefile with the environment these tests run in, and without setting it up again."""
    # the make that may be running these tests must not hand its own flags down
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    venv = sys.prefix
    return subprocess.run(
        ["make", "-o", f"{venv}/.ready-to-develop", f"VENV={venv}", *commands],
        cwd=in_,
        env=inherited | {"PYTHONPATH": str(in_ / "src"), "COLUMNS": "200", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
