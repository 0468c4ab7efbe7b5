"""The example runs as its page says, and shows what it asserts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_desktop_program_lends_its_tools_to_a_chat(tmp_path: Path) -> None:
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("COV_", "FARHAND_"))}
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-m", "examples.desktop_notes.show"],
        cwd=ROOT,
        env={**plain, "XDG_CONFIG_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "find milk: The lamp in the hall needs a small bulb." in ran.stdout
    assert ran.stdout.endswith("left after the desk was closed: {}\n")
