"""Runs the tests that depend on other libraries with the oldest versions that pyproject.toml allows.

Owns the environment for them, created once for each set of versions and stored in `.cache` under a hash of
them. Test tools have the locked versions; indirect dependencies are the newest that fit.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

from scripts.lock import FRAMEWORK_EXTRAS

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache"
FASTAPI = "fastapi==0.136.3"
"""Half a year old: people mount farhand in apps that they do not upgrade for it."""
TOOLS = (
    "hatchling",
    "hypothesis",
    "inline-snapshot",
    "pytest",
    "pytest-timeout",
    "pytest-xdist",
    "websockets",
)
NOT_HERE = frozenset({"testing", *FRAMEWORK_EXTRAS})
"""Frameworks need newer versions of farhand's dependencies; `scripts/frameworks.py` tests those."""
LEFT_OUT = "postgres or sqlite or slow or repository or storm or sweep or tools or conformance or frameworks"
PACKAGES = (
    "auth",
    "bridges",
    "cli",
    "client",
    "models",
    "server",
    "store",
    "testing",
    "tools",
    "wire",
)
TESTS = (
    "tests/faces",
    "tests/models",
    "tests/unit/core/test_event.py",
    *(f"tests/unit/{name}" for name in PACKAGES),
)
"""HTTP servers and clients, providers, schemas, the command line, and structs on every wire and in the store.
The other packages use only msgspec's structs and anyio's tasks of those libraries, as every face does."""
IGNORED = (
    # they start a server for each case; the tests beside them use the providers' libraries without one
    "tests/models/test_demo.py",
    "tests/models/test_kill.py",
    # no other library has a part in what these look at: it is our own code alone, or Python's own SQLite
    "tests/faces/inspector/test_redaction.py",
    "tests/faces/ui_stream/test_checker.py",
    "tests/unit/cli/test_target.py",
    "tests/unit/models/scripted/test_model.py",
    "tests/unit/models/scripted/test_moment.py",
    "tests/unit/models/scripted/test_plain_yaml.py",
    "tests/unit/models/scripted/test_rules.py",
    "tests/unit/models/test_sse_reader.py",
    "tests/unit/models/test_stream_guard.py",
    "tests/unit/server/auth/test_login_limiter.py",
    "tests/unit/server/test_rate_limiter.py",
    "tests/unit/store/test_open.py",
    "tests/unit/store/test_sqlite_crash.py",
    "tests/unit/store/test_sqlite_file.py",
    "tests/unit/store/test_sqlite_migrate.py",
    "tests/unit/store/test_sqlite_purge.py",
    "tests/unit/store/test_sqlite_queries.py",
    "tests/unit/store/test_sqlite_writer.py",
    "tests/unit/store/test_totals.py",
    "tests/unit/tools/test_options.py",
    "tests/unit/tools/test_timeouts.py",
    "tests/unit/tools/test_typescript.py",
    "tests/unit/wire/test_markup.py",
    "tests/unit/wire/test_sse.py",
    "tests/unit/wire/test_time_limit.py",
    "tests/unit/wire/test_visible_text.py",
)
_LINE = re.compile(r"(?P<name>[\w-]+)(?P<extra>\[\w+\])?>=(?P<floor>[\w.]+),")
_PINNED = re.compile(r"^(?P<name>[\w.-]+)==(?P<version>\S+)", re.MULTILINE)


def main() -> int:
    wanted = [*floors(ROOT / "pyproject.toml"), FASTAPI, *_tools(ROOT / "requirements" / "dev.txt")]
    python = environment(CACHE, wanted)
    # libraries of that age use features that others have deprecated since
    options = ["-q", "-p", "no:cacheprovider", "-W", "ignore::DeprecationWarning"]
    options += ["--hypothesis-profile=quick"]
    options += [f"--ignore={path}" for path in IGNORED]
    command = [python, "-m", "pytest", *options, "-m", f"not ({LEFT_OUT})", *TESTS]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def floors(project: Path) -> list[str]:
    """The oldest version of every library that farhand or an extra of it needs, each named once."""
    table = tomllib.loads(project.read_text())["project"]
    extras = {name: lines for name, lines in table["optional-dependencies"].items() if name not in NOT_HERE}
    found: dict[str, str] = {}
    for line in [*table["dependencies"], *(line for lines in extras.values() for line in lines)]:
        parts = _LINE.match(line)
        assert parts is not None, f"{line} has no floor"
        found[parts["name"]] = f"{parts['name']}{parts['extra'] or ''}=={parts['floor']}"
    return sorted(found.values())


def environment(cache: Path, wanted: list[str]) -> str:
    """The Python of an environment with these versions; an existing one is reused."""
    key = hashlib.sha256("\n".join([sys.version, *wanted]).encode()).hexdigest()[:12]
    folder = cache / f"lowest-{key}"
    python = str(folder / "bin" / "python")
    ready = folder / "ready"
    if ready.exists():
        return python
    for old in cache.glob("lowest-*"):
        shutil.rmtree(old)
    print(f"lowest: installing {', '.join(wanted)}", flush=True)
    venv.create(folder, with_pip=True)
    pip = [python, "-m", "pip", "install", "-qq", "--no-input", "--disable-pip-version-check"]
    subprocess.run([*pip, *wanted], check=True)
    subprocess.run([*pip, "--no-deps", "--no-build-isolation", "-e", str(ROOT)], check=True)
    ready.touch()
    return python


def _tools(lock: Path) -> list[str]:
    pinned = {found["name"]: found["version"] for found in _PINNED.finditer(lock.read_text())}
    return [f"{name}=={pinned[name]}" for name in TOOLS]


if __name__ == "__main__":
    sys.exit(main())
