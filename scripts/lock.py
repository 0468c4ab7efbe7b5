"""Writes the lock files in requirements/ from the dependencies in pyproject.toml.

Owns which parts of pyproject.toml go into which lock file. A lock file has versions and hashes and names no
index: the machine that installs from it decides where the files come from.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path
from typing import Any, TypeAlias

ROOT = Path(__file__).resolve().parent.parent
# the oldest version we support: a newer one could omit packages that only the old one needs
PYTHON = (3, 11)
# extras whose code the tests run
TESTED_EXTRAS = ("anthropic", "backboard", "client", "jwt", "openai", "postgres")
# extras for other frameworks: they need other versions of some libraries than our own tests
FRAMEWORK_EXTRAS = ("google-adk", "langgraph", "openai-agents", "pydantic-ai")
# extras that the demo needs
DEMO_EXTRAS = ("serve", "yaml")

# tomllib returns plain dictionaries whose shape only pyproject.toml knows
Project: TypeAlias = dict[str, Any]


def main() -> None:
    options = _options()
    if sys.version_info[:2] != PYTHON:
        sys.exit("lock: lock files are written with Python 3.11; run: make lock PYTHON=python3.11")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    with tempfile.TemporaryDirectory() as room:
        compiler = _compiler(Path(room), wanted_of_group(project, "lock"))
        newest = ["--upgrade"] if options.upgrade else []
        _compile([*compiler, *newest], "run", wanted_to_run(project))
        # the demo and the tests use the same versions
        _compile([*compiler, *newest, "--constraint", str(_lock("run"))], "dev", wanted_to_develop(project))
        _compile([*compiler, *newest], "frameworks", wanted_for_frameworks(project))
        _compile(compiler, "oldest-server", wanted_as_oldest_server(project))


def wanted_to_run(project: Project) -> list[str]:
    """What the demo needs, and the build backend, because farhand itself is installed without isolation."""
    extras = project["project"]["optional-dependencies"]
    demo = [line for extra in DEMO_EXTRAS for line in extras[extra]]
    return [*project["project"]["dependencies"], *demo, *project["build-system"]["requires"]]


def wanted_to_develop(project: Project) -> list[str]:
    """What the checks and tests need on top of that."""
    extras = project["project"]["optional-dependencies"]
    tested = [line for extra in TESTED_EXTRAS for line in extras[extra]]
    return [*wanted_to_run(project), *tested, *wanted_of_group(project, "dev")]


def wanted_for_frameworks(project: Project) -> list[str]:
    """farhand, the frameworks that it has bridges to, and what their tests need."""
    extras = project["project"]["optional-dependencies"]
    bridged = [
        line for extra in (*FRAMEWORK_EXTRAS, "anthropic", "client", "openai") for line in extras[extra]
    ]
    own = [*project["project"]["dependencies"], *project["build-system"]["requires"]]
    return [*own, *bridged, *wanted_of_group(project, "frameworks")]


def wanted_as_oldest_server(project: Project) -> list[str]:
    """The oldest uvicorn that farhand supports; some tests use it in addition to the locked one."""
    [oldest] = re.findall(r"uvicorn\S*>=([0-9.]+)", "\n".join(wanted_to_develop(project)))[:1]
    return [f"uvicorn=={oldest}.*"]


def wanted_of_group(project: Project, group: str) -> list[str]:
    """The lines of one dependency group and of the groups that it includes."""
    lines: list[str] = []
    for entry in project["dependency-groups"][group]:
        if isinstance(entry, str):
            lines.append(entry)
        else:
            lines.extend(wanted_of_group(project, entry["include-group"]))
    return lines


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Write the locks in requirements/.")
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions")
    return parser.parse_args()


def _compiler(room: Path, wanted: list[str]) -> list[str]:
    # in its own environment: pip-tools pins pip and setuptools, which do not belong in our lock files
    venv.create(room, with_pip=True)
    python = str(room / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "-qq", *wanted], check=True)
    return [python, "-m", "piptools", "compile"]


def _compile(compiler: list[str], name: str, wanted: list[str]) -> None:
    lock = _lock(name)
    flags = "--quiet --generate-hashes --strip-extras --no-header --no-annotate --no-config"
    silent = "--no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-emit-options"
    command = [*compiler, *flags.split(), *silent.split(), "--output-file", str(lock), "-"]
    if subprocess.run(command, input="\n".join(wanted), text=True, cwd=ROOT, check=False).returncode:
        sys.exit(f"lock: {lock.relative_to(ROOT)} is unchanged; see the error of pip-compile above")
    lock.write_text(_header(name) + _without_comments(lock.read_text()))
    print(f"lock: {lock.relative_to(ROOT)} written")


def _lock(name: str) -> Path:
    return ROOT / "requirements" / f"{name}.txt"


def _header(name: str) -> str:
    command = "demo" if name == "run" else "test"
    return f"# What `make {command}` installs. Written by `make lock`; do not edit.\n"


def _without_comments(lock: str) -> str:
    return re.sub(r"^\s*#.*\n", "", lock, flags=re.MULTILINE).lstrip("\n")


if __name__ == "__main__":
    main()
