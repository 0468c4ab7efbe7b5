"""Which modules `import farhand` loads, in a fresh process."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.requirement import requirement

LIST = "import sys, json; print(json.dumps(sorted(set(sys.modules) - set(sys.stdlib_module_names))))"
PROVIDERS = {"anthropic", "openai", "backboard"}
FRAMEWORKS = {"agents", "google", "langchain_core", "langgraph", "pydantic_ai"}
EXTRAS = {*PROVIDERS, *FRAMEWORKS, "asyncpg", "httpx", "httpx2", "jwt", "stamina", "pytest", "hypothesis"}
SERVER = {"starlette", "uvicorn", "websockets", "typer", "rich", "yaml"}


def loaded_by(line: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"{line}\n{LIST}"], capture_output=True, text=True, check=True
    )
    modules: list[str] = json.loads(done.stdout)
    return set(modules)


def libraries(modules: set[str]) -> set[str]:
    return {module.partition(".")[0] for module in modules}


@requirement("surface:light-import")
def test_importing_farhand_loads_farhand_and_nothing_else() -> None:
    ours = {module for module in loaded_by("import farhand") if module.startswith("farhand")}
    assert ours == {"farhand"}
    assert libraries(loaded_by("import farhand")) & (EXTRAS | SERVER | {"msgspec", "pydantic"}) == set()


@requirement("surface:light-import")
def test_an_agent_loads_no_extra_no_server_and_no_provider() -> None:
    modules = loaded_by(
        "from farhand import Agent, ScriptedModel, Toolbox, tool; Agent(ScriptedModel(['Hi.']))"
    )
    assert libraries(modules) & (EXTRAS | SERVER) == set()
    assert not any(module.startswith(("farhand.server", "farhand.faces")) for module in modules)


@requirement("surface:light-import")
@pytest.mark.parametrize("name", ["anthropic", "openai"])
def test_a_bridge_for_loops_by_hand_loads_no_library_of_a_provider(name: str) -> None:
    modules = loaded_by(f"import farhand.bridges.{name}")
    assert libraries(modules) & (PROVIDERS | FRAMEWORKS) == set()


@requirement("surface:light-import")
@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("from farhand.models.anthropic import Anthropic", {"anthropic"}),
        ("from farhand.models.openai import OpenAI, OpenAIChat", {"openai"}),
        ("from farhand.models.backboard import Backboard", {"backboard"}),
    ],
)
def test_a_model_loads_its_own_library_and_no_other(line: str, wanted: set[str]) -> None:
    assert libraries(loaded_by(line)) & PROVIDERS == wanted
