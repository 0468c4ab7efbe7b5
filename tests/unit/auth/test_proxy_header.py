"""A header of a trusted proxy is accepted only from that proxy."""

from __future__ import annotations

import pytest
from starlette.requests import HTTPConnection

from farhand.auth import ProxyHeader
from farhand.core.principal import Principal
from farhand.errors import BadSetting
from farhand.server.auth.authenticator import Authenticator
from tests.requirement import requirement
from tests.unit.server.asgi_requests import Headers, visit


def hook() -> ProxyHeader:
    return ProxyHeader("X-User", peers=["10.0.0.7", "fd00::/8"], tenant="house", scopes=["chat"])


def asking(headers: Headers, client: str | None = "10.0.0.7") -> HTTPConnection:
    return HTTPConnection(visit(headers, client=client))


@requirement("auth:proxy-header")
@pytest.mark.parametrize("proxy", ["10.0.0.7", "::ffff:10.0.0.7", "fd00::1"])
def test_the_proxy_says_who_asks(proxy: str) -> None:
    assert hook()(asking({"x-user": "ada"}, proxy)) == Principal("house", "ada", frozenset({"chat"}))


@requirement("auth:proxy-header")
@pytest.mark.parametrize("client", ["10.0.0.8", "127.0.0.1", "fe80::1", "unix", "", None])
def test_from_any_other_address_the_header_says_nothing(client: str | None) -> None:
    assert hook()(asking({"x-user": "ada", "x-forwarded-for": "10.0.0.7"}, client)) is None


@requirement("auth:proxy-header")
@pytest.mark.parametrize(
    "headers",
    [{}, {"x-user": ""}, {"x-user": "  "}, {"x-user": "a\x00b"}, {"x-user": "x" * 300},
     [("x-user", "ada"), ("x-user", "root")]],
    ids=["none", "empty", "blank", "control", "long", "twice"],
)  # fmt: skip
def test_a_header_that_names_nobody_or_two_is_nobody(headers: Headers) -> None:
    assert hook()(asking(headers)) is None


@requirement("auth:proxy-header")
def test_the_server_is_told_to_leave_the_address_of_the_peer_alone() -> None:
    assert Authenticator(authenticate=hook()).needs_peer
    assert not Authenticator(authenticate=lambda request: None).needs_peer


@requirement("auth:proxy-header")
@pytest.mark.parametrize("peers", [[], "10.0.0.7", ["proxy.example"], ["10.0.0.7/8"]])
def test_a_hook_that_trusts_nobody_in_particular_cannot_be_made(peers: list[str]) -> None:
    with pytest.raises(BadSetting):
        ProxyHeader("X-User", peers=peers, tenant="house")
    with pytest.raises(BadSetting):
        ProxyHeader("X User:", peers=["10.0.0.7"], tenant="house")
    with pytest.raises(BadSetting):
        ProxyHeader("X-User", peers=["10.0.0.7"], tenant="")
