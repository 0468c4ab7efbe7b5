"""The limits of a connection with older versions of uvicorn: the oldest that farhand takes, and one between.

Fetches them, so it needs the network, and runs with `make tests-walk`. The newest is in the lock.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.process import ROOT

TESTS = ("tests/unit/cli/test_http_protocol.py", "tests/unit/cli/test_serve.py", "tests/chaos/test_serve.py")


@pytest.mark.timeout(900)
@pytest.mark.parametrize("version", ["0.34", "0.44"])
def test_connections_behave_the_same_with_another_uvicorn(version: str, tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "-qq", "--no-deps", "--disable-pip-version-check"]
    subprocess.run([*pip, "--target", str(tmp_path), f"uvicorn=={version}.*"], check=True)
    # older versions build on a part of websockets that warns of its end
    plain = ["-q", "-p", "no:cacheprovider", "-o", "filterwarnings="]
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *plain, *TESTS],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-5_000:]
    found = [sys.executable, "-c", "import uvicorn; print(uvicorn.__version__)"]
    used = subprocess.run(found, env={**os.environ, "PYTHONPATH": path}, check=True, capture_output=True)
    assert used.stdout.decode().startswith(f"{version}.")
