from __future__ import annotations

from pathlib import Path

import pytest

from farhand.models import http_client as client_choice
from tests.models.stage import PROVIDERS, Provider, deleted, noted


@pytest.fixture(params=PROVIDERS, ids=lambda provider: provider.name)
def provider(request: pytest.FixtureRequest) -> Provider:
    """Each adapter in turn, with its provider's fake."""
    chosen: Provider = request.param
    return chosen


@pytest.fixture(params=["aiohttp", "httpx"])
def http_client(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each HTTP client under the libraries in turn."""
    name: str = request.param
    if name == "httpx":
        monkeypatch.setattr(client_choice, "make_transport", None)
    return name


@pytest.fixture
def file_store(tmp_path: Path) -> str:
    """A store that outlives the agent."""
    return f"sqlite:///{tmp_path}/farhand.db"


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    deleted.clear()
    noted.clear()
