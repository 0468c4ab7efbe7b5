"""Host and Origin: which requests are meant for this server, and which pages may make them."""

from __future__ import annotations

import pytest
from starlette.types import Scope

from farhand.errors import BadSetting, NotAllowed
from farhand.server.screen import Screen
from tests.requirement import requirement
from tests.unit.server.visits import visit

LISTED = "http://localhost:5173"


@pytest.fixture
def local() -> Screen:
    """As without a hook."""
    return Screen(origins=[LISTED], hosts=["box.example"], local=True)


@pytest.fixture
def public() -> Screen:
    """As with one."""
    return Screen(origins=[LISTED], hosts=["agent.example.org"], local=False)


def refusal(screen: Screen, scope: Scope) -> str:
    with pytest.raises(NotAllowed) as refused:
        screen.check(scope)
    return str(refused.value)


@requirement("door:host")
def test_an_app_inside_another_program_names_the_argument_instead_of_the_flag(local: Screen) -> None:
    local.has_options = False
    said = refusal(local, visit(host="box.example.org"))
    assert 'create_app(..., allow_hosts=["box.example.org"])' in said
    said += refusal(local, visit({"origin": "https://a.example"}))
    assert 'create_app(..., allow_origins=["https://a.example"])' in said
    assert "--allow" not in said


@requirement("door:host")
@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.0.0.1:8787",
        "localhost:8787",
        "LOCALHOST",
        "localhost.",
        "[::1]:8787",
        "127.9.9.9",
        "box.example:80",
    ],
)
def test_names_of_this_machine_and_listed_ones_are_ours(host: str, local: Screen) -> None:
    local.check(visit(host=host))
    local.check(visit(host=host))


@requirement("door:host")
@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "10.0.0.7",
        "box.example.org",
        "0.0.0.0",
    ],
)
def test_every_other_name_is_refused_and_the_flag_is_named(host: str, local: Screen) -> None:
    assert f"--allow-host {host}" in refusal(local, visit(host=host))


@requirement("door:host")
@pytest.mark.parametrize(
    "host", [None, "", "a b", "a/b", "[::1", "x:99999", "user@localhost", "localhost,evil.example"]
)
def test_a_missing_or_malformed_host_is_refused(host: str | None, local: Screen) -> None:
    assert "Host header" in refusal(local, visit(host=host))


@requirement("door:host")
def test_a_header_that_counts_given_twice_is_refused(local: Screen) -> None:
    for name in ("host", "origin", "authorization", "sec-fetch-site"):
        value = "127.0.0.1:8787" if name == "host" else "x"
        doubled = [(name, value)] if name == "host" else [(name, value), (name, value)]
        assert "twice" in refusal(local, visit(doubled))


def test_headers_that_may_come_in_parts_are_joined(local: Screen) -> None:
    heads = local.check(
        visit(
            [("cookie", "a=1"), ("cookie", "b=2"), ("sec-fetch-site", "same-origin"), ("x", "1"), ("x", "2")]
        )
    )
    assert heads[b"cookie"] == b"a=1; b=2"


@requirement("door:host")
@pytest.mark.parametrize("client", ["10.0.0.7", "::ffff:10.0.0.7", "testclient", ""])
def test_without_a_hook_other_machines_are_refused(client: str, local: Screen, public: Screen) -> None:
    assert "on this machine" in refusal(local, visit(client=client))
    public.check(visit(client=client))


@requirement("door:host")
@pytest.mark.parametrize("client", ["127.0.0.1", "::1", "::ffff:127.0.0.1", None])
def test_this_machine_is_let_in_also_over_a_unix_socket(client: str | None, local: Screen) -> None:
    local.check(visit(client=client))


@requirement("door:host")
def test_with_a_hook_an_address_is_ours_and_a_name_only_if_listed(public: Screen) -> None:
    for host in ("10.0.0.7:80", "[fe80::1]", "agent.example.org", "localhost"):
        public.check(visit(host=host))
    assert "--allow-host other.example.org" in refusal(public, visit(host="other.example.org"))


def test_the_memory_of_hosts_is_bounded(public: Screen) -> None:
    for number in range(1_000):
        public.check(visit(host=f"10.0.{number // 250}.{number % 250}"))
    assert len(public._passed) <= 256


@requirement("door:origin")
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_the_servers_own_pages_and_listed_ones_may_use_it(method: str, local: Screen) -> None:
    for origin in ("http://127.0.0.1:8787", LISTED):
        local.check(visit({"origin": origin, "cookie": "a=1"}, method=method))


@requirement("door:origin")
@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "", "http://127.0.0.1", "http://127.0.0.1:5173", "http://localhost:8787",
     "http://localhost:5173/", "http://localhost:5173.evil.example", "file://", "ftp://127.0.0.1:8787",
     "http://evil127.0.0.1:8787", "http://evil@127.0.0.1:8787"],
)  # fmt: skip
def test_every_other_origin_is_refused_and_told_the_flag(origin: str, local: Screen) -> None:
    assert f"--allow-origin {origin}" in refusal(local, visit({"origin": origin})) + " "


@requirement("door:origin")
def test_a_page_without_an_origin_is_not_told_to_allow_every_such_page(local: Screen) -> None:
    said = refusal(local, visit({"origin": "null"}))
    assert "may not use this server" in said
    assert "--allow-origin" not in said


@requirement("door:origin")
def test_a_page_that_was_not_encrypted_may_not_use_an_encrypted_server(public: Screen) -> None:
    public.check(visit({"origin": "https://agent.example.org"}, host="agent.example.org", scheme="http"))
    public.check(visit({"origin": "https://agent.example.org"}, host="agent.example.org", scheme="https"))
    downgraded = visit({"origin": "http://agent.example.org"}, host="agent.example.org", scheme="https")
    assert "may not use" in refusal(public, downgraded)


@requirement("door:origin")
def test_a_socket_is_judged_by_its_origin_too(local: Screen) -> None:
    local.check(visit({"origin": "http://127.0.0.1:8787"}, kind="websocket", scheme="ws"))
    assert "--allow-origin" in refusal(
        local, visit({"origin": "https://evil.example"}, kind="websocket", scheme="ws")
    )


@requirement("door:origin")
def test_a_program_needs_no_origin(local: Screen) -> None:
    local.check(visit({"authorization": "Bearer x"}, method="POST"))
    local.check(visit({"authorization": "bearer x", "cookie": "a=1"}, method="POST"))


@requirement("door:origin")
@pytest.mark.parametrize("site", ["same-origin", "none"])
def test_a_browser_that_was_not_asked_by_another_site_needs_no_origin(site: str, local: Screen) -> None:
    local.check(visit({"cookie": "a=1", "sec-fetch-site": site}))


@requirement("door:origin")
@pytest.mark.parametrize("site", ["cross-site", "same-site", "anything"])
@pytest.mark.parametrize("more", [{}, {"cookie": "a=1"}, {"authorization": "Bearer x"}])
def test_a_picture_or_script_on_a_page_from_elsewhere_is_refused(
    site: str, more: dict[str, str], local: Screen
) -> None:
    assert "another site" in refusal(local, visit({"sec-fetch-site": site, **more}))


@requirement("door:origin")
def test_cookies_without_origin_need_the_page_they_come_from(local: Screen) -> None:
    local.check(visit({"cookie": "a=1", "referer": "http://127.0.0.1:8787/chat?x=1"}))
    for more in (
        {},
        {"referer": "https://evil.example/"},
        {"referer": "http://127.0.0.1:87870/"},
        {"authorization": "Basic eA=="},
    ):
        assert "which page" in refusal(local, visit({"cookie": "a=1", **more}))


@pytest.mark.parametrize(
    "origin", ["*", "null", "localhost:5173", "http://a.example/page", "http://*.a.example", "http://a b", ""]
)
def test_only_exact_origins_can_be_listed(origin: str) -> None:
    with pytest.raises(BadSetting, match="is not an origin"):
        Screen(origins=[origin], hosts=(), local=True)


def test_origins_are_kept_as_browsers_send_them() -> None:
    screen = Screen(origins=["HTTPS://App.Example:443/", "http://[::1]:5173"], hosts=(), local=True)
    screen.check(visit({"origin": "https://app.example"}))
    screen.check(visit({"origin": "http://[::1]:5173"}))


@pytest.mark.parametrize("host", ["*", "*.example.org", "a.example:80", "http://a.example", "", "ä.example"])
def test_only_exact_hosts_can_be_listed(host: str) -> None:
    with pytest.raises(BadSetting, match="is not a host"):
        Screen(origins=(), hosts=[host], local=True)


def test_foreign_words_in_a_refusal_are_short_and_printable(local: Screen) -> None:
    sentence = refusal(local, visit({"origin": "http://\x1b[31m" + "x" * 10_000}))
    assert len(sentence) < 500
    assert sentence.isprintable()
