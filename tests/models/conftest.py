from __future__ import annotations

from pathlib import Path

import pytest

from tests.models.stage import PROVIDERS, Provider, deleted, noted


@pytest.fixture(params=PROVIDERS, ids=lambda provider: provider.name)
def provider(request: pytest.FixtureRequest) -> Provider:
    """Each adapter in turn, with its provider's fake."""
    chosen: Provider = request.param
    return chosen


@pytest.fixture
def file_store(tmp_path: Path) -> str:
    """A store that outlives the agent."""
    return f"sqlite:///{tmp_path}/farhand.db"


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    deleted.clear()
    noted.clear()
