"""The built pages: who gets them, with which headers, and what everyone else gets."""

from __future__ import annotations

import gzip
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from farhand import Agent, ScriptedModel, create_app
from farhand.server import runtime as runtime_module
from farhand.server.app import App
from farhand.server.static_files import BuiltPages, load_pages
from tests.requirement import requirement
from tests.unit.server.asgi_requests import Reply, ask, visit

BROWSER = {"accept": "text/html,application/xhtml+xml", "sec-fetch-site": "none"}
SCRIPT = "console.log('hello');\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """As a build leaves it, and some files that are none of its own."""
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text("<title>chat</title>")
    (tmp_path / "inspector.html").write_text("<title>inspector</title>")
    (tmp_path / "assets" / "index-abc123.js").write_text(SCRIPT)
    (tmp_path / "assets" / "notes.txt").write_text("not for the web")
    (tmp_path / "secret.env").write_text("no")
    return tmp_path


async def started(ui: BuiltPages, monkeypatch: pytest.MonkeyPatch) -> App:
    monkeypatch.setattr(runtime_module, "load_pages", lambda: ui)
    app = create_app(Agent(model=ScriptedModel(["Hi."])), store="memory:")
    await app.start()
    return app


@pytest.fixture
async def app(folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[App]:
    app = await started(load_pages(folder), monkeypatch)
    yield app
    await app.drain()
    await app.stop()


@pytest.fixture
async def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[App]:
    """A server whose pages were not built."""
    app = await started(load_pages(tmp_path / "nowhere"), monkeypatch)
    yield app
    await app.drain()
    await app.stop()


async def browse(app: App, path: str = "/", **more: str) -> Reply:
    token = {"authorization": f"Bearer {app.auth.token}"}
    return await ask(app, visit({**BROWSER, **token, **more}, path=path))


async def test_a_browser_that_is_signed_in_gets_the_chat_page_and_the_inspector(app: App) -> None:
    for path, title in (("/", "chat"), ("/_farhand", "inspector")):
        page = await browse(app, path)
        assert (page.status, page.text) == (200, f"<title>{title}</title>")
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        assert page.headers["cache-control"] == "no-store"


async def test_programs_get_the_plain_page_and_strangers_are_asked_to_sign_in(app: App) -> None:
    for program in (await browse(app, accept="*/*"), await ask(app, visit())):
        assert (program.status, "An agent runs on this server" in program.text) == (200, True)
    for path in ("/", "/_farhand"):
        page = await ask(app, visit(BROWSER, path=path))
        assert (page.status, "An agent runs on this server" in page.text) == (200, False)
        assert "<h1>You are not signed in</h1>" in page.text


async def test_without_a_build_there_is_the_plain_page_and_no_inspector(bare: App) -> None:
    assert "An agent runs on this server" in (await browse(bare)).text
    assert (await browse(bare, "/_farhand")).status == 404
    assert (await browse(bare, "/assets/index-abc123.js")).status == 404


@requirement("ui:policy")
async def test_a_page_runs_only_scripts_of_this_server_and_none_inline(app: App) -> None:
    policy = (await browse(app)).headers["content-security-policy"]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == rules["style-src"] == "'self'"
    assert rules["connect-src"] == "'self' blob:"
    assert rules["frame-ancestors"] == rules["base-uri"] == "'none'"
    assert not re.search("unsafe|data:|\\*", policy)


@requirement("ui:policy")
async def test_no_page_contains_the_token(app: App) -> None:
    page = await browse(app)
    assert app.auth.token is not None
    assert app.auth.token not in page.text
    signed_in = await ask(app, visit(BROWSER, query=f"token={app.auth.token}"))
    assert signed_in.status == 303
    assert "httponly" in signed_in.headers["set-cookie"].lower()


@requirement("ui:policy")
async def test_a_page_tells_its_own_server_alone_where_a_request_comes_from(app: App) -> None:
    assert (await browse(app)).headers["referrer-policy"] == "same-origin"


async def test_an_asset_is_cached_forever_since_its_name_contains_its_hash(app: App) -> None:
    asset = await ask(app, visit(path="/assets/index-abc123.js"))
    assert (asset.status, asset.text) == (200, SCRIPT)
    assert asset.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert asset.headers["content-type"] == "text/javascript; charset=utf-8"
    assert asset.headers["x-content-type-options"] == "nosniff"


async def test_an_asset_is_compressed_if_the_browser_accepts_that(app: App) -> None:
    asset = await ask(app, visit({"accept-encoding": "br, gzip"}, path="/assets/index-abc123.js"))
    assert asset.headers["content-encoding"] == "gzip"
    assert gzip.decompress(asset.body) == SCRIPT.encode()


@pytest.mark.parametrize(
    "path",
    ["/assets/notes.txt", "/assets/../secret.env", "/assets/..%2Fsecret.env", "/assets/", "/secret.env"],
)
async def test_nothing_but_the_assets_is_served(app: App, path: str) -> None:
    assert (await browse(app, path)).status == 404


@requirement("pages:switched-off")
async def test_a_switched_off_chat_page_is_unknown_and_the_rest_stays(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime_module, "load_pages", lambda: load_pages(folder))
    app = create_app(Agent(model=ScriptedModel(["Hi."])), store="memory:", page=False)
    await app.start()
    try:
        off = await browse(app)
        assert off.status == 404
        assert "The chat page is off." in off.text
        signed_in = await ask(app, visit(BROWSER, query=f"token={app.auth.token}"))
        assert (signed_in.status, signed_in.headers["location"]) == (303, "/_farhand")
        assert (await browse(app, "/_farhand")).status == 200
    finally:
        await app.drain()
        await app.stop()


@requirement("pages:own-agent")
async def test_a_page_may_load_the_logo_that_its_agent_names(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime_module, "load_pages", lambda: load_pages(folder))
    logo = "https://cdn.example/a;b,c.png?size=2#x"
    app = create_app(Agent(model=ScriptedModel(["Hi."]), logo=logo), store="memory:")
    await app.start()
    try:
        policy = (await browse(app)).headers["content-security-policy"]
        assert "img-src 'self' https://cdn.example/a%3Bb%2Cc.png blob:;" in policy
    finally:
        await app.drain()
        await app.stop()
