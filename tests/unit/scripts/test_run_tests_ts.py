"""The same second attempt for what vitest runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SCRIPT = ROOT / "scripts/run_tests.py"
MODULES = ROOT / "ts/node_modules"

HEAD = 'import { existsSync, writeFileSync } from "node:fs";\nimport { expect, it } from "vitest";\n'
STEADY = 'it("passes", () => {});\n'
BROKEN = 'it("fails", () => expect(1).toBe(2));\n'
UNSTEADY = """
it("fails once", () => {
  const first = !existsSync("seen");
  writeFileSync("seen", "");
  expect(first).toBe(false);
});
"""

pytestmark = pytest.mark.skipif(not MODULES.exists(), reason="needs the packages of ts/")


def outcome_of(folder: Path, text: str) -> tuple[int, str]:
    (folder / "node_modules").symlink_to(MODULES)
    (folder / "it.test.ts").write_text(HEAD + text)
    (folder / "other.test.ts").write_text(HEAD + STEADY)
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "vitest"], cwd=folder, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout


def test_a_steady_run_is_run_once(tmp_path: Path) -> None:
    code, output = outcome_of(tmp_path, STEADY)
    assert code == 0
    assert "once more" not in output


def test_what_fails_once_is_named_as_unsteady(tmp_path: Path) -> None:
    code, output = outcome_of(tmp_path, STEADY + UNSTEADY)
    assert code == 0
    assert "UNSTEADY" in output
    assert "it.test.ts > fails once" in output


@pytest.mark.parametrize("text", [BROKEN, 'import "./nowhere.ts";\n'], ids=["a test", "a file"])
def test_what_fails_twice_fails_the_run(tmp_path: Path, text: str) -> None:
    code, output = outcome_of(tmp_path, text)
    assert code == 1
    assert "once more" in output


def test_many_failures_are_not_run_again(tmp_path: Path) -> None:
    code, output = outcome_of(
        tmp_path, "".join(f'it("fails {n}", () => expect(1).toBe(2));\n' for n in range(4))
    )
    assert code == 1
    assert "once more" not in output
