from __future__ import annotations

import pytest

from farhand.models import http_client
from farhand.models.aiohttp_transport import AiohttpTransport
from farhand.models.http_client import client_options

PROXIES = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)


def test_requests_go_through_aiohttp_and_each_client_has_connections_of_its_own() -> None:
    first, second = (client_options("Anthropic", 2)["transport"] for _ in range(2))
    assert isinstance(first, AiohttpTransport)
    assert first is not second


@pytest.mark.parametrize("name", ["https_proxy", "HTTP_PROXY", "all_proxy"])
def test_a_proxy_is_left_to_the_client_of_the_library(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "http://127.0.0.1:3128")
    assert client_options("Anthropic", 2).keys() == {"event_hooks"}


def test_without_aiohttp_the_library_uses_its_own_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "make_transport", None)
    assert client_options("Anthropic", 2).keys() == {"event_hooks"}
