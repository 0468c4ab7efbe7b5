"""Browsers: a page of another origin gets nothing, even with the browser's cookies."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import product

import httpx2
import pytest

from tests.requirement import requirement
from tests.security.attack import ALL, BODIES, HTTP, SOCKETS, attack
from tests.security.target import (
    LISTED,
    NOBODY,
    TYPICAL,
    WELCOME,
    Json,
    Target,
    serve_development_target,
)

pytestmark = requirement("attack:browser")

EVIL = "https://evil.example"


@pytest.fixture
async def house() -> AsyncIterator[Target]:
    """A server as it is during development, and Ada's browser that is signed in."""
    async with serve_development_target() as target:
        yield target


async def cookie_of(house: Target) -> str:
    http = await house.http()
    opened = await http.get("/", params={"token": house.app.auth.token or ""})
    assert opened.status_code == 303
    http.cookies.clear()
    return str(opened.headers["set-cookie"].partition(";")[0])


def at_home(house: Target) -> str:
    return house.url


@attack(*ALL)
async def test_a_page_from_elsewhere_is_refused_although_the_browser_lends_it_the_cookie(
    house: Target, face: str
) -> None:
    cookie = await cookie_of(house)
    origins = (EVIL, "http://127.0.0.1", "http://localhost:1", f"{house.url}.evil.example", "http://[::1]")
    for origin in origins:
        found = await house.knock_everywhere(face, NOBODY, {"cookie": cookie, "origin": origin})
        assert set(found.values()) == {403}, (origin, found)
    assert await house.knock(face, NOBODY, {"cookie": cookie, "origin": at_home(house)}) == WELCOME[face]


@attack(*ALL)
async def test_a_page_without_an_origin_of_its_own_is_refused(house: Target, face: str) -> None:
    cookie = await cookie_of(house)
    for origin in ("null", "", "file://", "about:blank", "data:", "chrome-extension://abc"):
        assert await house.knock(face, NOBODY, {"cookie": cookie, "origin": origin}) == 403, origin


@attack(*ALL)
async def test_a_cookie_without_a_word_on_where_it_comes_from_is_refused(house: Target, face: str) -> None:
    cookie = await cookie_of(house)
    for more in ({}, {"referer": f"{EVIL}/page"}):
        found = await house.knock_everywhere(face, NOBODY, {"cookie": cookie, **more})
        assert set(found.values()) == {403}, found


@attack(*ALL)
async def test_a_request_that_the_browser_calls_cross_site_is_refused(house: Target, face: str) -> None:
    cookie = await cookie_of(house)
    for site in ("cross-site", "same-site", "nonsense"):
        assert await house.knock(face, NOBODY, {"cookie": cookie, "sec-fetch-site": site}) == 403, site


@attack(*ALL)
async def test_a_page_from_elsewhere_is_refused_with_the_token_too(house: Target, face: str) -> None:
    assert await house.knock(face, "ada", {"origin": EVIL}) == 403


@attack(*ALL)
async def test_a_cookie_that_was_made_up_or_belongs_to_another_port_opens_nothing(
    house: Target, face: str
) -> None:
    name, _, value = (await cookie_of(house)).partition("=")
    for cookie in (
        f"{name}=x",
        f"{name}=",
        f"{name}={value}x",
        f"farhand_1={value}",
        f"{name}={house.app.auth.token}",
    ):
        found = await house.knock(face, NOBODY, {"cookie": cookie, "origin": at_home(house)})
        assert found == 401, cookie


@attack(*ALL)
async def test_a_name_that_was_made_to_point_here_is_not_answered_for(house: Target, face: str) -> None:
    cookie = await cookie_of(house)
    port = house.url.rpartition(":")[2]
    for name in ("evil.example", f"evil.example:{port}", "127.0.0.1.nip.io", "localhost.evil.example"):
        heads = {"cookie": cookie, "host": name, "origin": f"http://{name}"}
        assert await house.knock(face, NOBODY, heads) == 403, name


@attack(*BODIES)
async def test_what_a_form_can_send_is_refused(house: Target, face: str) -> None:
    cookie = await cookie_of(house)
    http = await house.http()
    changing = [route for route in house.routes(face) if route.method not in ("GET", "HEAD")]
    assert changing
    for route, kind in product(changing, FORMS):
        heads = {"cookie": cookie, "origin": at_home(house), "content-type": kind}
        path = route.path.replace("{", "").replace("}", "")
        answer = await http.request(route.method, path, content=b"{}", headers=heads)
        assert answer.status_code == 415, (route.path, kind)


FORMS = (
    "text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "",
    "text/json",
)


@pytest.mark.parametrize("face", ["awaiting", "ui_stream", "threads"])
async def test_where_no_body_is_read_none_is_needed(house: Target, face: str) -> None:
    """The other side of it: programs send nothing at all, or JSON."""
    http = await house.http("ada")
    bare = [each for each in house.routes(face) if each.method not in ("GET", "HEAD") and not each.limit]
    for route in bare:
        path = route.path.replace("{", "").replace("}", "")
        bodies: tuple[Json, ...] = (None, {})
        for body in bodies:
            answer = await http.request(route.method, path, json=body)
            assert answer.status_code in (200, 404), (route.path, body)


@attack("files")
async def test_an_upload_that_a_form_could_send_is_refused(house: Target, face: str) -> None:
    cookie = await cookie_of(house)
    http = await house.http()
    heads = {"cookie": cookie, "origin": at_home(house), "content-type": "text/plain"}
    assert (await http.post("/api/files", content=b"x", headers=heads)).status_code == 403


@attack("files")
async def test_a_file_is_never_shown_as_a_page(house: Target, face: str) -> None:
    http = await house.http("ada")
    for kind in ("text/html", "image/svg+xml", "text/plain", "application/pdf"):
        heads = {"content-type": kind, "x-farhand": "1", "x-file-name": "a%22%0d%0aset-cookie%3a%20x=1.html"}
        sent = await http.post("/api/files", content=b"<script>alert(1)</script>", headers=heads)
        if sent.status_code != 201:
            continue
        shown = await http.get(f"/api/files/{sent.json()['ref']}")
        assert shown.headers["content-disposition"].startswith("attachment")
        assert shown.headers["x-content-type-options"] == "nosniff"
        assert "set-cookie" not in shown.headers


@attack(*HTTP)
async def test_a_question_before_a_request_from_elsewhere_is_answered_with_no(
    house: Target, face: str
) -> None:
    http = await house.http()
    method, path, _ = TYPICAL[face]
    asked = {"access-control-request-method": method, "access-control-request-headers": "content-type"}
    for origin in (EVIL, "null", f"{LISTED}.evil.example", LISTED.replace("http", "https"), f"{LISTED}1"):
        answer = await http.options(path, headers={**asked, "origin": origin})
        assert answer.status_code == 403
        assert not [name for name in answer.headers if name.startswith("access-control-allow")]
    listed = await http.options(path, headers={**asked, "origin": LISTED})
    assert (listed.status_code, listed.headers["access-control-allow-origin"]) == (204, LISTED)


@attack(*HTTP)
async def test_an_answer_names_no_origin_but_the_listed_one(house: Target, face: str) -> None:
    http = await house.http("ada")
    method, path, body = TYPICAL[face]
    for origin, told in ((EVIL, None), (LISTED, LISTED), (None, None)):
        heads = await house.typical_headers(face, {"origin": origin} if origin else {})
        async with http.stream(method, path, content=body, headers=heads) as answer:
            assert answer.headers.get("access-control-allow-origin") == told
            assert answer.headers.get("access-control-allow-origin") != "*"


@attack(*HTTP)
async def test_an_answer_opened_as_a_page_can_do_nothing(house: Target, face: str) -> None:
    http = await house.http("ada")
    method, path, body = TYPICAL[face]
    async with http.stream(method, path, content=body, headers=await house.typical_headers(face)) as answer:
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        assert "html" not in answer.headers["content-type"]


@attack("pages")
async def test_the_front_page_hands_out_no_cookie_and_no_token(house: Target, face: str) -> None:
    http = await house.http()
    token = house.app.auth.token or "?"
    for path in ("/", "/?x=1", "/?token=", "/?token=wrong", f"/?token={token[:-1]}", "/index.html"):
        answer = await http.get(path)
        assert "set-cookie" not in answer.headers
        assert token not in answer.text
    assert token not in str((await http.get("/", params={"token": token})).headers)


@attack("pages")
async def test_the_front_page_can_not_be_framed_and_runs_nothing_from_elsewhere(
    house: Target, face: str
) -> None:
    for path in ("/", f"/?token={house.app.auth.token}"):
        answer = await (await house.http()).get(path)
        assert answer.headers["x-frame-options"] == "DENY"
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "*" not in policy


@attack("pages")
async def test_a_front_page_asked_for_under_another_name_is_refused(house: Target, face: str) -> None:
    http = await house.http()
    for path in ("/", "/healthz", "/readyz", f"/?token={house.app.auth.token}"):
        assert (await http.get(path, headers={"host": "evil.example"})).status_code == 403


@attack("pages")
async def test_a_token_in_the_address_signs_in_where_the_server_is_and_nowhere_else(
    house: Target, face: str
) -> None:
    http = await house.http()
    token = house.app.auth.token or ""
    for path in ("//evil.example/", "/\\evil.example", "/%2f%2fevil.example"):
        answer = await http.get(httpx2.URL(house.url).join("/"), params={"token": token, "next": path})
        assert answer.headers["location"] == "/"
        http.cookies.clear()


@attack("pages")
async def test_guessing_the_token_in_the_address_is_slowed_down(house: Target, face: str) -> None:
    http = await house.http()
    answers = [(await http.get("/", params={"token": f"guess-{n}"})).status_code for n in range(12)]
    assert answers == [401] * 10 + [429] * 2


@attack("pages")
async def test_a_path_never_leads_to_a_file_of_the_machine(house: Target, face: str) -> None:
    http = await house.http("ada")
    for path in (
        "/../../etc/passwd",
        "/assets/..%2f..%2fetc/passwd",
        "/assets/%2e%2e/%2e%2e/x",
        "/assets//etc/passwd",
    ):
        answer = await http.get(path)
        assert answer.status_code == 404
        assert "root:" not in answer.text


@attack(*SOCKETS)
async def test_a_socket_of_a_listed_page_still_needs_a_credential(house: Target, face: str) -> None:
    assert await house.knock(face, NOBODY, {"origin": LISTED}) == 401
    assert await house.knock(face, "ada", {"origin": LISTED}) == 101
