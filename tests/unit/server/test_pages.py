"""The paths outside the faces, requested as a browser or a load balancer does."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from html import unescape
from urllib.parse import urlencode

import pytest

from farhand import Agent, Principal, ScriptedModel, create_app, tool
from farhand.errors import StoreDown
from farhand.server import pages as pages_module
from farhand.server.app import App
from tests.requirement import requirement
from tests.unit.server.asgi_requests import Reply, ask, visit

pytestmark = pytest.mark.usefixtures("built_pages")


@tool(needs_approval=True)
def erase(path: str) -> str:
    """Erase a file & everything <in> it.

    More about it.

    Args:
        path: Which one.

    Returns:
        What was erased.
    """
    return path


@tool(executor="frontend")
def look(place: str) -> str:
    """Look around.

    Args:
        place: Where.

    Returns:
        What was seen.
    """
    return place


@asynccontextmanager
async def started(app: App) -> AsyncIterator[App]:
    await app.start()
    yield app
    await app.drain()
    await app.stop()


@pytest.fixture
async def app() -> AsyncIterator[App]:
    agent = Agent(ScriptedModel(["hello"]), tools=[erase], frontend_tools=[look])
    async with started(create_app(agent, store="memory:")) as running:
        yield running


@pytest.fixture
async def hooked() -> AsyncIterator[App]:
    def check(request: object) -> Principal | None:
        raise RuntimeError("a secret of the hook")

    agent = Agent(ScriptedModel(["hello"]))
    async with started(create_app(agent, store="memory:", authenticate=check)) as running:
        yield running


def error_of(reply: Reply) -> str:
    code: str = json.loads(reply.text)["error"]["code"]
    return code


async def test_the_page_runs_nothing_and_loads_nothing(app: App) -> None:
    reply = await ask(app, visit())
    assert (reply.status, reply.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "<script" not in reply.text
    assert not re.search(r"""(src|href)\s*=|url\(|@import""", reply.text)
    style = re.search(r"<style>(.*?)</style>", reply.text, re.DOTALL)
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    policy = reply.headers["content-security-policy"]
    assert policy.startswith(f"default-src 'none'; style-src 'sha256-{digest}';")
    assert "frame-ancestors 'none'" in policy
    assert (reply.headers["referrer-policy"], reply.headers["x-frame-options"]) == ("no-referrer", "DENY")
    assert (reply.headers["cache-control"], reply.headers["x-content-type-options"]) == (
        "no-store",
        "nosniff",
    )


async def test_a_stranger_sees_instructions_and_no_tools_token_or_cookie(app: App) -> None:
    reply = await ask(app, visit())
    assert "not signed in" in reply.text
    assert "erase" not in reply.text
    # the example of a request names a tool, too
    assert "Please use" not in reply.text
    assert "look" not in reply.text.replace("look at", "")
    assert "set-cookie" not in reply.headers
    assert app.auth.token is not None
    assert app.auth.token not in reply.text


async def test_a_signed_in_visitor_sees_the_tools_with_their_text_escaped(app: App) -> None:
    reply = await ask(app, visit({"authorization": f"Bearer {app.auth.token}"}))
    assert "<code>erase</code></td><td>on the server, with approval</td>" in reply.text
    assert "<td>Erase a file &amp; everything &lt;in&gt; it.</td>" in reply.text
    assert "<code>look</code></td><td>in the browser</td>" in reply.text
    assert "More about it" not in reply.text
    assert app.auth.token is not None
    assert app.auth.token not in reply.text


async def test_an_agent_without_tools_says_so() -> None:
    async with started(create_app(Agent(ScriptedModel(["hi"])), store="memory:")) as app:
        app.auth.open = True
        reply = await ask(app, visit())
    assert "It has none." in reply.text
    assert "--open" in reply.text
    assert "$FARHAND_TOKEN" not in reply.text


async def test_the_commands_name_this_address_and_hold_valid_json(app: App) -> None:
    scope = {**visit(host="localhost:9000", path="/agents/"), "root_path": "/agents"}
    page = (await ask(app, scope)).text
    commands = [unescape(text) for text in re.findall(r"<pre><code>(curl.*?)</code></pre>", page, re.DOTALL)]
    addresses = [command.split()[2] for command in commands]
    assert addresses == [
        "http://localhost:9000/agents" + path
        for path in ("/api/chat", "/api/tools/ack", "/agent/run", "/agent/tool_results")
    ]
    for command in commands:
        assert '-H "Authorization: Bearer $FARHAND_TOKEN"' in command
        assert json.loads(command.partition("-d '")[2].removesuffix("'"))


@requirement("auth:cookie")
async def test_the_right_token_in_the_address_is_exchanged_for_a_cookie(app: App) -> None:
    reply = await ask(app, {**visit(query=f"token={app.auth.token}"), "root_path": ""})
    assert (reply.status, reply.headers["location"]) == (303, "/")
    assert reply.headers["set-cookie"].startswith("farhand_8787=")
    assert (reply.headers["cache-control"], reply.headers["referrer-policy"]) == ("no-store", "no-referrer")
    mounted = {**visit(query=f"token={app.auth.token}", path="/a/"), "root_path": "/a"}
    assert (await ask(app, mounted)).headers["location"] == "/a/"


@requirement("auth:cookie")
async def test_a_wrong_token_in_the_address_is_reported_on_the_page(app: App) -> None:
    reply = await ask(app, visit(query="token=wrong"))
    assert (reply.status, "set-cookie" in reply.headers) == (401, False)
    assert "The token is not valid for this server." in reply.text
    for _ in range(9):
        await ask(app, visit(query="token=wrong"))
    last = await ask(app, visit(query="token=wrong"))
    assert (last.status, error_of(last)) == (429, "too_many")
    assert int(last.headers["retry-after"]) > 0
    twice = await ask(app, visit(query="token=a&token=b"))
    assert (twice.status, error_of(twice)) == (400, "invalid")


@requirement("auth:cookie")
async def test_a_stranger_can_enter_the_token_where_it_is_exchanged_for_a_cookie(app: App) -> None:
    page = (await ask(app, visit(query="token=wrong"))).text
    assert '<form method="get" action="/"><label>Token<input name="token" type="password"' in page
    mounted = {**visit(path="/a/_farhand"), "root_path": "/a"}
    assert 'action="/a/_farhand"' in (await ask(app, mounted)).text
    assert "form-action 'self'" in (await ask(app, visit())).headers["content-security-policy"]
    known = await ask(app, visit({"authorization": f"Bearer {app.auth.token}"}))
    assert "<form" not in known.text


@requirement("auth:cookie")
async def test_a_stranger_may_paste_the_token_with_blanks_or_the_whole_address(app: App) -> None:
    token = app.auth.token
    pasted = (
        f" {token}\t",
        f"http://127.0.0.1:8787/?token={token}",
        f"http://x/_farhand?a=b&token={token}#/runs ",
    )
    for text in pasted:
        assert (await ask(app, visit(query=urlencode({"token": text})))).status == 303
    for text in (f"{token}x", f"http://127.0.0.1:8787/?token={token}x", "http://127.0.0.1:8787/?token="):
        assert (await ask(app, visit(query=urlencode({"token": text})))).status == 401


@requirement("auth:cookie")
async def test_the_token_signs_in_on_the_front_page_alone(app: App) -> None:
    for path in ("/healthz", "/readyz", "/nowhere", "/api/chat"):
        reply = await ask(app, visit(query=f"token={app.auth.token}", path=path))
        assert "set-cookie" not in reply.headers
        assert "location" not in reply.headers


@requirement("server:health")
async def test_health_and_readiness_need_no_credential_on_an_allowed_host(app: App) -> None:
    for path in ("/healthz", "/readyz"):
        reply = await ask(app, visit(path=path))
        assert (reply.status, reply.text, reply.headers["cache-control"]) == (200, '{"ok":true}', "no-store")
        assert (await ask(app, visit(path=path, method="HEAD"))).status == 200
        wrong = await ask(app, visit(path=path, method="POST"))
        assert (wrong.status, wrong.headers["allow"]) == (405, "GET, HEAD")
        assert (await ask(app, visit(path=path, host="evil.example"))).status == 403


@requirement("auth:host")
@pytest.mark.parametrize(
    ("path", "method"), [("/nothing", "GET"), ("/", "POST"), ("/api/chat", "PUT"), ("/api/chat/x", "POST")]
)
async def test_for_a_foreign_host_no_path_is_revealed(app: App, path: str, method: str) -> None:
    assert (await ask(app, visit(path=path, method=method))).status in (404, 405)
    assert (await ask(app, visit(path=path, method=method, host="evil.example"))).status == 403


@requirement("server:health")
async def test_readiness_fails_while_the_store_is_away(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    async def down() -> None:
        raise StoreDown("The store is not responding.")

    monkeypatch.setattr(app.service, "ping", down)
    reply = await ask(app, visit(path="/readyz"))
    assert (reply.status, error_of(reply), reply.headers["retry-after"]) == (503, "store_down", "1")
    assert (await ask(app, visit(path="/healthz"))).status == 200


@requirement("server:health")
async def test_readiness_does_not_wait_for_a_store_that_hangs(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hang() -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(app.service, "ping", hang)
    monkeypatch.setattr(pages_module, "PING_WITHIN_SEC", 0.01)
    reply = await ask(app, visit(path="/readyz"))
    assert (reply.status, error_of(reply)) == (503, "store_down")


@requirement("server:health")
async def test_readiness_fails_once_the_server_drains(app: App) -> None:
    await app.drain()
    reply = await ask(app, visit(path="/readyz"))
    assert (reply.status, error_of(reply)) == (503, "shutting_down")
    assert (await ask(app, visit(path="/healthz"))).status == 200


@requirement("server:health")
async def test_an_unknown_path_is_json_and_an_unknown_socket_is_closed(app: App) -> None:
    reply = await ask(app, visit(path="/nowhere"))
    assert (reply.status, error_of(reply)) == (404, "unknown")
    closed = await ask(app, visit(path="/nowhere", kind="websocket"))
    assert [message["type"] for message in closed.messages] == ["websocket.close"]


@requirement("auth:hook")
async def test_a_hook_that_breaks_shows_nothing_of_itself(
    hooked: App, caplog: pytest.LogCaptureFixture
) -> None:
    reply = await ask(hooked, visit())
    assert (reply.status, error_of(reply)) == (503, "sign_in_down")
    assert "secret" not in reply.text
    assert "the authenticate hook raised RuntimeError" in caplog.text
    assert "secret" not in caplog.text
    chat = await ask(hooked, visit(path="/api/chat", method="POST"))
    assert (chat.status, "secret" in chat.text) == (503, False)
    for path in ("/api/chat/ws", "/api/chat/live"):
        socket = await ask(hooked, visit(path=path, kind="websocket", scheme="ws"))
        assert [each["type"] for each in socket.messages] == ["websocket.close"]
    assert not any(each.exc_info for each in caplog.records)


@requirement("errors:codes")
async def test_an_error_code_has_a_page_that_needs_no_credential(app: App) -> None:
    reply = await ask(app, visit(path="/errors/model_fault"))
    assert reply.status == 200
    assert "The model, or the service that runs it, failed." in unescape(reply.body.decode())
    assert (await ask(app, visit(path="/errors/no_such_code"))).status == 404
