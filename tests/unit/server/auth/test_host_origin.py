"""Host and Origin: which requests are meant for this server, and which pages may make them."""

from __future__ import annotations

import pytest
from starlette.types import Scope

from farhand.errors import BadSetting, NotAllowed
from farhand.server.auth.host_origin import HostOriginPolicy
from tests.requirement import requirement
from tests.unit.server.asgi_requests import visit

LISTED = "http://localhost:5173"


@pytest.fixture
def local() -> HostOriginPolicy:
    """As without a hook."""
    return HostOriginPolicy(origins=[LISTED], hosts=["box.example"], local=True)


@pytest.fixture
def public() -> HostOriginPolicy:
    """As with one."""
    return HostOriginPolicy(origins=[LISTED], hosts=["agent.example.org"], local=False)


def refusal(policy: HostOriginPolicy, scope: Scope) -> str:
    with pytest.raises(NotAllowed) as refused:
        policy.check(scope)
    return str(refused.value)


@requirement("auth:host")
def test_an_app_inside_another_program_names_the_argument_instead_of_the_flag(
    local: HostOriginPolicy,
) -> None:
    local.has_options = False
    said = refusal(local, visit(host="box.example.org"))
    assert 'create_app(..., allow_hosts=["box.example.org"])' in said
    said += refusal(local, visit({"origin": "https://a.example"}))
    assert 'create_app(..., allow_origins=["https://a.example"])' in said
    assert "--allow" not in said


@requirement("auth:host")
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
def test_names_of_this_machine_and_allowed_hosts_are_accepted(host: str, local: HostOriginPolicy) -> None:
    local.check(visit(host=host))
    local.check(visit(host=host))


@requirement("auth:host")
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
def test_every_other_host_is_refused_and_the_error_names_the_flag(host: str, local: HostOriginPolicy) -> None:
    assert f"--allow-host {host}" in refusal(local, visit(host=host))


@requirement("auth:host")
@pytest.mark.parametrize(
    "host", [None, "", "a b", "a/b", "[::1", "x:99999", "user@localhost", "localhost,evil.example"]
)
def test_a_missing_or_malformed_host_is_refused(host: str | None, local: HostOriginPolicy) -> None:
    assert "Host header" in refusal(local, visit(host=host))


@requirement("auth:host")
def test_a_duplicate_security_header_is_refused(local: HostOriginPolicy) -> None:
    for name in ("host", "origin", "authorization", "sec-fetch-site"):
        value = "127.0.0.1:8787" if name == "host" else "x"
        doubled = [(name, value)] if name == "host" else [(name, value), (name, value)]
        assert "twice" in refusal(local, visit(doubled))


def test_split_cookie_headers_are_joined(local: HostOriginPolicy) -> None:
    heads = local.check(
        visit(
            [("cookie", "a=1"), ("cookie", "b=2"), ("sec-fetch-site", "same-origin"), ("x", "1"), ("x", "2")]
        )
    )
    assert heads[b"cookie"] == b"a=1; b=2"


@requirement("auth:host")
@pytest.mark.parametrize("client", ["10.0.0.7", "::ffff:10.0.0.7", "testclient", ""])
def test_without_a_hook_other_machines_are_refused(
    client: str, local: HostOriginPolicy, public: HostOriginPolicy
) -> None:
    assert "on this machine" in refusal(local, visit(client=client))
    public.check(visit(client=client))


@requirement("auth:host")
@pytest.mark.parametrize("client", ["127.0.0.1", "::1", "::ffff:127.0.0.1", None])
def test_this_machine_has_access_over_a_unix_socket_too(client: str | None, local: HostOriginPolicy) -> None:
    local.check(visit(client=client))


@requirement("auth:host")
def test_with_a_hook_an_address_is_accepted_and_a_name_only_if_allowed(public: HostOriginPolicy) -> None:
    for host in ("10.0.0.7:80", "[fe80::1]", "agent.example.org", "localhost"):
        public.check(visit(host=host))
    assert "--allow-host other.example.org" in refusal(public, visit(host="other.example.org"))


def test_the_memory_of_hosts_is_bounded(public: HostOriginPolicy) -> None:
    for number in range(1_000):
        public.check(visit(host=f"10.0.{number // 250}.{number % 250}"))
    assert len(public._passed) <= 256


@requirement("auth:origin")
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_the_servers_own_pages_and_allowed_origins_are_accepted(method: str, local: HostOriginPolicy) -> None:
    for origin in ("http://127.0.0.1:8787", LISTED):
        local.check(visit({"origin": origin, "cookie": "a=1"}, method=method))


@requirement("auth:origin")
@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "", "http://127.0.0.1", "http://127.0.0.1:5173", "http://localhost:8787",
     "http://localhost:5173/", "http://localhost:5173.evil.example", "file://", "ftp://127.0.0.1:8787",
     "http://evil127.0.0.1:8787", "http://evil@127.0.0.1:8787"],
)  # fmt: skip
def test_every_other_origin_is_refused_and_the_error_names_the_flag(
    origin: str, local: HostOriginPolicy
) -> None:
    assert f"--allow-origin {origin}" in refusal(local, visit({"origin": origin})) + " "


@requirement("auth:origin")
def test_a_page_without_an_origin_is_not_told_to_allow_every_such_page(local: HostOriginPolicy) -> None:
    said = refusal(local, visit({"origin": "null"}))
    assert "may not use this server" in said
    assert "--allow-origin" not in said


@requirement("auth:origin")
def test_an_http_page_may_not_use_an_https_server(public: HostOriginPolicy) -> None:
    public.check(visit({"origin": "https://agent.example.org"}, host="agent.example.org", scheme="http"))
    public.check(visit({"origin": "https://agent.example.org"}, host="agent.example.org", scheme="https"))
    downgraded = visit({"origin": "http://agent.example.org"}, host="agent.example.org", scheme="https")
    assert "may not use" in refusal(public, downgraded)


@requirement("auth:origin")
def test_the_origin_of_a_socket_is_checked_too(local: HostOriginPolicy) -> None:
    local.check(visit({"origin": "http://127.0.0.1:8787"}, kind="websocket", scheme="ws"))
    assert "--allow-origin" in refusal(
        local, visit({"origin": "https://evil.example"}, kind="websocket", scheme="ws")
    )


@requirement("auth:origin")
def test_a_program_needs_no_origin(local: HostOriginPolicy) -> None:
    local.check(visit({"authorization": "Bearer x"}, method="POST"))
    local.check(visit({"authorization": "bearer x", "cookie": "a=1"}, method="POST"))


@requirement("auth:origin")
@pytest.mark.parametrize("site", ["same-origin", "none"])
def test_a_browser_request_that_no_other_site_made_needs_no_origin(
    site: str, local: HostOriginPolicy
) -> None:
    local.check(visit({"cookie": "a=1", "sec-fetch-site": site}))


@requirement("auth:origin")
@pytest.mark.parametrize("site", ["cross-site", "same-site", "anything"])
@pytest.mark.parametrize("more", [{}, {"cookie": "a=1"}, {"authorization": "Bearer x"}])
def test_a_picture_or_script_on_a_page_of_another_site_is_refused(
    site: str, more: dict[str, str], local: HostOriginPolicy
) -> None:
    assert "other sites" in refusal(local, visit({"sec-fetch-site": site, **more}))


@requirement("auth:origin")
def test_a_request_with_cookies_but_no_origin_is_refused(local: HostOriginPolicy) -> None:
    local.check(visit({"cookie": "a=1", "referer": "http://127.0.0.1:8787/chat?x=1"}))
    for more in (
        {},
        {"referer": "https://evil.example/"},
        {"referer": "http://127.0.0.1:87870/"},
        {"authorization": "Basic eA=="},
    ):
        assert "name its origin" in refusal(local, visit({"cookie": "a=1", **more}))


@requirement("auth:origin")
def test_a_page_is_opened_from_a_link_anywhere_and_not_framed_or_fetched_there(
    public: HostOriginPolicy,
) -> None:
    opened = {"cookie": "a=1", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    for site in ("cross-site", "same-site", "same-origin", "none"):
        public.check_page(visit({**opened, "sec-fetch-site": site}))
    for dest in ("iframe", "empty", "image", "script"):
        with pytest.raises(NotAllowed, match="other sites"):
            public.check_page(visit({**opened, "sec-fetch-site": "cross-site", "sec-fetch-dest": dest}))
    with pytest.raises(NotAllowed, match="may not use"):
        public.check_page(visit({**opened, "origin": "https://evil.example"}))
    with pytest.raises(NotAllowed, match="does not serve"):
        public.check_page(visit(opened, host="evil.example"))


@requirement("auth:origin")
def test_over_plain_http_a_page_is_opened_and_its_requests_still_name_their_origin(
    public: HostOriginPolicy,
) -> None:
    host = "agent.example.org"
    # over plain http a browser sends no Sec-Fetch-Site
    bare = visit({"cookie": "a=1"}, host=host)
    public.check_page(bare)
    assert "name its origin" in refusal(public, bare)
    public.check(visit({"cookie": "a=1", "referer": f"http://{host}/"}, host=host))
    for referer in ("http://evil.example/", f"http://evil.example/{host}", f"http://{host}.evil.example/"):
        assert "name its origin" in refusal(public, visit({"cookie": "a=1", "referer": referer}, host=host))


@pytest.mark.parametrize(
    "origin", ["*", "null", "localhost:5173", "http://a.example/page", "http://*.a.example", "http://a b", ""]
)
def test_only_exact_origins_can_be_allowed(origin: str) -> None:
    with pytest.raises(BadSetting, match="is not an origin"):
        HostOriginPolicy(origins=[origin], hosts=(), local=True)


def test_origins_are_kept_as_browsers_send_them() -> None:
    policy = HostOriginPolicy(origins=["HTTPS://App.Example:443/", "http://[::1]:5173"], hosts=(), local=True)
    policy.check(visit({"origin": "https://app.example"}))
    policy.check(visit({"origin": "http://[::1]:5173"}))


@pytest.mark.parametrize("host", ["*", "*.example.org", "a.example:80", "http://a.example", "", "ä.example"])
def test_only_exact_hosts_can_be_allowed(host: str) -> None:
    with pytest.raises(BadSetting, match="is not a host"):
        HostOriginPolicy(origins=(), hosts=[host], local=True)


def test_text_from_outside_in_an_error_is_short_and_printable(local: HostOriginPolicy) -> None:
    sentence = refusal(local, visit({"origin": "http://\x1b[31m" + "x" * 10_000}))
    assert len(sentence) < 500
    assert sentence.isprintable()
