"""Optional libraries: where they are imported, and the error when one is missing."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

from tests.requirement import requirement

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "src" / "farhand"
# library -> the one package that may import it; `testing` comes with tests, which have them all, and a bridge
# of the same name mentions its types
HOMES: dict[str, str | tuple[str, ...]] = {
    "agents": "bridges/openai_agents.py",
    "anthropic": ("models/anthropic", "bridges/anthropic.py"),
    "asyncpg": "store/postgres",
    "backboard": "models/backboard",
    "google": "bridges/google_adk.py",
    "jwt": "auth",
    "langchain_core": "bridges/langgraph.py",
    "langgraph": "bridges/langgraph.py",
    "openai": ("models/openai", "bridges/openai.py"),
    "pydantic_ai": "bridges/pydantic_ai.py",
    "rich": "cli",
    "stamina": "client",
    "typer": "cli",
    "uvicorn": "cli",
    "yaml": "models/scripted",
}
# what needs it, the library, the extra that has it
NEEDED = [
    ("import farhand.models.anthropic", "anthropic", "anthropic"),
    ("import farhand.models.backboard", "backboard", "backboard"),
    ("import farhand.models.openai", "openai", "openai"),
    ("import farhand.bridges.google_adk", "google.adk", "google-adk"),
    ("import farhand.bridges.langgraph", "langchain_core", "langgraph"),
    ("import farhand.bridges.openai_agents", "agents", "openai-agents"),
    ("import farhand.bridges.pydantic_ai", "pydantic_ai", "pydantic-ai"),
    ("import farhand.client", "httpx2", "client"),
    ("import farhand.client", "stamina", "client"),
    ("from farhand.auth import WebToken", "jwt", "jwt"),
    ("from farhand import serve", "uvicorn", "serve"),
    ("from farhand import serve", "typer", "serve"),
    ("import farhand.cli; farhand.cli.main()", "typer", "serve"),
    ("from farhand.testing import FarClient", "httpx2", "testing"),
    ("from farhand.testing import serve_app", "uvicorn", "testing"),
    ("import farhand; farhand.ScriptedModel.from_yaml('-')", "yaml", "yaml"),
]


@pytest.mark.parametrize("library", HOMES)
def test_an_optional_library_is_imported_by_one_package_alone(library: str) -> None:
    homes = {home for home in _importers()[library] if not home.startswith("testing")}
    assert homes
    assert all(home.startswith(HOMES[library]) for home in homes), homes


@requirement("surface:extras")
@pytest.mark.parametrize(("line", "library", "extra"), NEEDED)
def test_what_needs_a_missing_library_names_its_extra(line: str, library: str, extra: str) -> None:
    hidden = f"import sys; sys.modules[{library!r}] = None; {line}"
    ended = subprocess.run([sys.executable, "-c", hidden], capture_output=True, text=True, check=False)
    assert ended.returncode != 0
    assert ended.stderr.rstrip().endswith(f"Install it: pip install 'farhand[{extra}]'."), ended.stderr


@requirement("surface:extras")
def test_programs_that_walk_through_all_modules_skip_those_whose_library_is_missing() -> None:
    hidden = {library: None for _, library, _ in NEEDED}
    walk = "import pkgutil, farhand; print(len([*pkgutil.walk_packages(farhand.__path__, 'farhand.')]))"
    program = f"import sys; sys.modules.update({hidden}); {walk}"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert int(ended.stdout) > 100


def test_every_library_that_is_imported_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    declared = " ".join([*project["dependencies"], *(line for extra in extras for line in extra)]).lower()
    names = {"backboard": "backboard-sdk", "jwt": "pyjwt", "yaml": "pyyaml", "pydantic_core": "pydantic"}
    # it comes with uvicorn[standard]
    others = set(_importers()) - sys.stdlib_module_names - {"farhand", "uvloop"}
    missing = {name for name in others if names.get(name, name.replace("_", "-")) not in declared}
    assert missing == set()


@cache
def _importers() -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for path in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Import(names=names):
                    libraries = [alias.name for alias in names]
                case ast.ImportFrom(module=str(module)):
                    libraries = [module]
                case _:
                    continue
            for library in libraries:
                found[library.partition(".")[0]].add(path.relative_to(SOURCES).as_posix())
    return found
