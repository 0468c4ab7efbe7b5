"""What `farhand run` loads before it answers, counted: everybody who starts a server waits for it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from farhand.cli.gc_tuning import YOUNG
from tests.process import farhand_process

NEVER = {
    "anthropic", "asyncpg", "backboard", "fastapi", "hypothesis", "httpx2", "jwt", "openai", "pygments",
    "pydantic_settings", "pytest", "rich", "stamina", "yaml",
}  # fmt: skip
"""Libraries of what a server with SQLite does not do."""
WHEN_ASKED = {
    "farhand.cli.remote.requests",
    "farhand.cli.doctor",
    "farhand.cli.purge",
    "farhand.cli.rebuild",
    "farhand.cli.remote.http",
    "farhand.cli.remote.render",
    "farhand.cli.types",
    "farhand.store.postgres",
    "farhand.testing",
}
"""Parts of ours that somebody has to ask for."""
AT_MOST = 480
"""Modules beside those of Python itself."""


async def test_a_server_loads_what_it_needs_and_looks_through_it_no_more(tmp_path: Path) -> None:
    place = anyio.Path(tmp_path / "told.json")
    async with farhand_process(
        "tests.guards.reporting_agent:agent", env={"TOLD_AT": str(place)}, fresh=True
    ) as server:
        async with server.client() as client:
            assert (await client.get("/api/chat")).status_code == 200
        assert await server.stop() == 0
    told = json.loads(await place.read_text())
    loaded = set(told["modules"])
    assert loaded & NEVER == set()
    assert loaded & WHEN_ASKED == set()
    assert len(_ours_and_others(loaded)) <= AT_MOST, sorted(loaded)
    assert told["enabled"] is True
    assert told["threshold"] == YOUNG
    assert told["frozen"] > 10_000


def test_the_young_are_left_alone_for_longer_than_python_would() -> None:
    assert YOUNG >= 10_000


@pytest.mark.parametrize("asked", ["--help", "--version"])
def test_help_and_version_load_no_server(asked: str) -> None:
    program = (
        "import atexit, sys, farhand.cli\n"
        "atexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
        f"sys.argv = ['farhand', {asked!r}]\n"
        "farhand.cli.main()"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert set(ran.stderr.split()) & {"uvicorn", "starlette", "pydantic", "farhand.server.app"} == set()


def _ours_and_others(loaded: set[str]) -> list[str]:
    # what measures coverage and the tests' own agent are in the process as well
    beside = {"__main__", "coverage", "tests", *sys.stdlib_module_names}
    return [name for name in loaded if name.partition(".")[0] not in beside]
