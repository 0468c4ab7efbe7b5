"""The example of a tool that knows whom it works for runs as its page says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_two_customers_and_a_manager_are_told_apart() -> None:
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("COV_", "FARHAND_"))}
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-m", "examples.orders.show"],
        cwd=ROOT,
        env=plain,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.endswith("ann reads: A-2 refunded for ann, approved by mia\n")
