"""Runs the tests of the bridges with the frameworks themselves: `-m scripts.frameworks [pytest options]`.

Owns the environment for them, created once for each lock and stored in `.cache` under a hash of it: the
frameworks need other versions of some libraries than our own tests. Code that imports a framework is also
type-checked there.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import time
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache"
LOCK = ROOT / "requirements" / "frameworks.txt"
PYRIGHT = ROOT / "ts" / "node_modules" / ".bin" / "pyright"
TYPED = ("src/farhand/bridges", "tests/frameworks", "examples/bridges")
"""Folders that mypy and pyright skip if the frameworks are missing."""


def main(options: list[str]) -> int:
    python = environment(CACHE, LOCK)
    if options:
        return _run([python, "-m", "pytest", "-p", "no:cacheprovider", *options])
    files = [str(path) for folder in TYPED for path in sorted((ROOT / folder).rglob("*.py"))]
    # `make check` has other versions of these libraries: in one cache each would discard the other's results
    own_cache = ["--cache-dir", str(CACHE / "mypy-frameworks")]
    checks = [[python, "-m", "mypy", "--no-error-summary", *own_cache, *files]]
    if PYRIGHT.exists():
        checks.append([str(PYRIGHT), "--project", str(_pyright_settings(Path(python).parents[1]))])
    tests = [python, "-m", "pytest", "-p", "no:cacheprovider", "-q", "-n", "2", "--dist", "worksteal"]
    return next((code for command in [*checks, [*tests, "tests/frameworks"]] if (code := _run(command))), 0)


def environment(cache: Path, lock: Path) -> str:
    """The Python of an environment with the packages of the lock; an existing one is reused."""
    key = hashlib.sha256(f"{sys.version}\n{lock.read_text()}".encode()).hexdigest()[:12]
    folder = cache / f"frameworks-{key}"
    python = str(folder / "bin" / "python")
    ready = folder / "ready"
    if ready.exists():
        return python
    for old in cache.glob("frameworks-*"):
        shutil.rmtree(old)
    began = time.monotonic()
    print(f"frameworks: installing {lock.name} ...", flush=True)
    venv.create(folder, with_pip=True)
    pip = [python, "-m", "pip", "install", "-qq", "--no-input", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*pip, "--require-hashes", "-r", str(lock)], check=True)
    subprocess.run([*pip, "--no-build-isolation", "-e", str(ROOT)], check=True)
    ready.touch()
    print(f"frameworks: installed in {time.monotonic() - began:.0f} s", flush=True)
    return python


def _pyright_settings(folder: Path) -> Path:
    """In a file, since pyproject.toml names the other environment and takes precedence over options."""
    settings = {
        "include": ["../../src/farhand/bridges", "../../examples/bridges"],
        "extraPaths": ["../.."],
        "pythonVersion": "3.11",
        "typeCheckingMode": "standard",
        "venv": folder.name,
        "venvPath": str(folder.parent),
    }
    file = folder / "pyrightconfig.json"
    file.write_text(json.dumps(settings))
    return file


def _run(command: list[str]) -> int:
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
