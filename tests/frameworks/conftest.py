"""The bridges with the frameworks themselves: `make tests-frameworks` runs these in an environment of theirs.

Elsewhere the frameworks are missing, and nothing here is collected.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.frameworks.stage import Stage

pytest.register_assert_rewrite("tests.frameworks.laws")

HERE = Path(__file__).parent
NEEDED = ("agents", "dbos", "google.adk", "langgraph", "pydantic_ai")


def _is_missing(library: str) -> bool:
    try:
        return find_spec(library) is None
    except ModuleNotFoundError:
        return True


missing = [library for library in NEEDED if _is_missing(library)]
collect_ignore_glob = ["**/test_*.py"] if missing else []


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker("frameworks")


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    """Hands with a store in memory."""
    async with Stage("memory:", tmp_path) as stage:
        yield stage
