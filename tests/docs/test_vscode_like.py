"""The example runs as its page says, and shows what it asserts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.requirement import requirement

ROOT = Path(__file__).parents[2]


@requirement("docs:examples")
@pytest.mark.timeout(180)
def test_an_editors_program_in_node_lends_its_tools_to_a_chat(tmp_path: Path) -> None:
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("COV_", "FARHAND_"))}
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-m", "examples.vscode_like.show", "--seconds", "8"],
        cwd=ROOT,
        env={**plain, "XDG_CONFIG_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "a person is asked before: client_editor_apply_patch" in ran.stdout
    assert 'The tests say: {"failed":[],"passed":9}' in ran.stdout
