"""The small pages for people at paths that show nothing, and the responses for programs."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from farhand import Agent, Principal, ScriptedModel, create_app
from farhand.errors import StoreDown
from farhand.server.app import App
from tests.requirement import requirement
from tests.unit.server.asgi_requests import Reply, ask, visit

pytestmark = pytest.mark.usefixtures("built_pages")

BROWSER = {"accept": "text/html,application/xhtml+xml", "sec-fetch-site": "none"}


@asynccontextmanager
async def started(app: App) -> AsyncIterator[App]:
    await app.start()
    yield app
    await app.drain()
    await app.stop()


@pytest.fixture
async def app() -> AsyncIterator[App]:
    async with started(create_app(Agent(ScriptedModel(["hello"])), store="memory:")) as running:
        yield running


@pytest.fixture
async def branded(tmp_path: Path) -> AsyncIterator[App]:
    """Below a host's own sign-in, which knows nobody yet."""
    logo = tmp_path / "logo.svg"
    logo.write_text("<svg/>")
    agent = Agent(
        ScriptedModel(["hello"]),
        title="Lamps & <co>",
        logo=logo,
        words={"notSignedIn": "Nicht angemeldet", "signInFirst": "Melde dich an.", "openChat": "Zum Chat"},
    )

    def knows_nobody(request: object) -> Principal | None:
        return None

    async with started(create_app(agent, store="memory:", authenticate=knows_nobody)) as running:
        yield running


async def browse(app: App, path: str, *, root: str = "", **more: str) -> Reply:
    return await ask(app, {**visit({**BROWSER, **more}, path=f"{root}{path}"), "root_path": root})


@requirement("pages:notices")
@pytest.mark.parametrize("path", ["/nowhere", "/api/nowhere", "/_farhand/nowhere", "/agent/nowhere"])
async def test_an_unknown_path_is_a_page_for_people_and_json_for_programs(app: App, path: str) -> None:
    page = await browse(app, path)
    assert (page.status, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "<title>Page not found · farhand</title>" in page.text
    assert '<a class="action" href="/">Open the chat</a>' in page.text
    assert page.headers["content-security-policy"].startswith("default-src 'none'")
    assert "<script" not in page.text
    program = await ask(app, visit(path=path))
    assert (program.status, program.headers["content-type"]) == (404, "application/json")
    assert "html" not in program.text


@requirement("pages:notices")
async def test_a_stranger_is_asked_to_sign_in_with_the_name_and_words_of_the_host(branded: App) -> None:
    page = await browse(branded, "/", root="/ai")
    assert page.status == 200
    assert "<h1>Nicht angemeldet</h1>" in page.text
    assert "Melde dich an." in page.text
    assert '<img src="/ai/logo" alt=""><span>Lamps &amp; &lt;co&gt;</span>' in page.text
    assert '<link rel="icon" href="/ai/logo">' in page.text
    for ours in ("farhand", "token", "terminal", "curl", "<form"):
        assert ours not in page.text.lower().replace("--on-accent", "")
    assert (
        '<a class="action" href="/ai/">Zum Chat</a>' in (await browse(branded, "/nowhere", root="/ai")).text
    )


@requirement("pages:notices")
async def test_what_is_off_is_explained_only_to_whoever_started_the_server(branded: App) -> None:
    own = create_app(Agent(ScriptedModel(["hello"])), store="memory:", page=False, inspector=False)
    async with started(own) as app:
        page = await browse(app, "/_farhand")
        assert "The Inspector is off. Turn it on with --inspector" in page.text
        assert "Open the chat" not in page.text
        assert "The chat page is off." in (await browse(app, "/")).text
    hosted = await browse(branded, "/_farhand")
    assert (hosted.status, "Inspector" in hosted.text) == (404, False)
    assert "There is nothing at this address." in hosted.text


@requirement("pages:notices")
async def test_a_failure_is_a_page_too_and_a_wrong_method_stays_json(
    branded: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def down() -> None:
        raise StoreDown("The store is not responding.", hint="For the operator.")

    monkeypatch.setattr(branded.service, "ping", down)
    page = await browse(branded, "/readyz")
    assert (page.status, page.headers["retry-after"]) == (503, "1")
    assert "<h1>This page cannot be shown</h1>" in page.text
    assert "The store is not responding." in page.text
    assert "For the operator." not in page.text
    wrong = await ask(branded, visit(BROWSER, path="/readyz", method="POST"))
    assert (wrong.status, wrong.headers["allow"]) == (405, "GET, HEAD")
    assert json.loads(wrong.text)["error"]["code"] == "wrong_method"


async def test_a_wrong_token_is_told_above_the_field_for_another(app: App) -> None:
    page = await ask(app, visit(BROWSER, query="token=wrong-wrong-wrong"))
    assert page.status == 401
    assert '<p class="notice" role="alert">The token is not valid for this server.</p>' in page.text
    assert '<form method="get" action="/">' in page.text
    assert 'action="/_farhand"' in (await browse(app, "/_farhand")).text
