"""The example of mounting runs as its page says, and shows what it asserts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.requirement import requirement

ROOT = Path(__file__).parents[2]


@requirement("docs:examples")
def test_the_hosts_keep_their_own_sign_in() -> None:
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("COV_", "FARHAND_"))}
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-m", "examples.mounted.show"],
        cwd=ROOT,
        env=plain,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "FastAPI, ada: You said: hello" in ran.stdout
    assert ran.stdout.endswith("Starlette, after the logout: 401\n")
