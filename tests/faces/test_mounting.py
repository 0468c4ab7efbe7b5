"""farhand inside another program's app: started by its lifespan or a request, drained before its end."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest
import uvicorn
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from farhand.errors import BadSetting, StoreDown
from farhand.models.scripted import Ask
from farhand.server import app as app_module
from farhand.server.app import App, create_app
from tests.faces.conftest import Serve
from tests.faces.ui_stream.agents import Scene, once
from tests.faces.ui_stream.page import Page, until, user_message
from tests.faces.ui_stream.websocket_client import Shared
from tests.requirement import requirement

OPEN = Ask("open_url", {"url": "u"})


@asynccontextmanager
async def hosted(host: ASGIApp, app: App, prefix: str = "") -> AsyncIterator[httpx2.AsyncClient]:
    """A host program on loopback; the client talks to what is mounted at the prefix."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    config = uvicorn.Config(host, log_config=None, timeout_graceful_shutdown=5)
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    await server.startup(sockets=[listener])
    assert server.started, "the lifespan came through"
    url = f"http://127.0.0.1:{listener.getsockname()[1]}{prefix}"
    headers = {"authorization": f"Bearer {app.auth.token}"}
    async with httpx2.AsyncClient(
        base_url=url, headers=headers, timeout=None, verify=False, trust_env=False
    ) as client:
        try:
            yield client
        finally:
            await server.shutdown([listener])


def in_starlette(app: App) -> ASGIApp:
    async def home(request: Request) -> PlainTextResponse:
        return PlainTextResponse("the host's own")

    return Starlette(routes=[Route("/home", home), Mount("/farhand", app)], lifespan=app.lifespan)


def in_fastapi(app: App) -> ASGIApp:
    host = FastAPI(lifespan=app.lifespan)

    @host.get("/home")
    async def home() -> str:
        return "the host's own"

    host.mount("/farhand", app)
    return host


Host = Callable[[App], ASGIApp]
HOSTS = pytest.mark.parametrize("host", [in_starlette, in_fastapi])


@requirement("mounting:lifespan")
@HOSTS
async def test_a_mounted_app_serves_every_face_under_its_prefix(host: Host, tmp_path: Path) -> None:
    scene = Scene(once(OPEN))
    app = create_app(scene.agent, store=f"sqlite:///{tmp_path}/f.db")
    with pytest.raises(BadSetting, match="not started"):
        _ = app.service
    async with hosted(host(app), app, "/farhand") as http:
        page = Page(http, wait="hold")
        async with page.saying("open") as live:
            call = (await live.until("tool-input-available"))["toolCallId"]
            ack = {"toolCallId": call, "status": "success", "output": {"n": 1}}
            assert (await http.post("/api/tools/ack", json=ack)).json() == {"ok": True}
            assert (await live.rest()).finish == "stop"
        assert (await http.get("/api/chat")).json()["threads"][0]["id"] == page.id
        assert (await http.get("/healthz")).json() == {"ok": True}
        assert (await http.get("/nothing")).status_code == 404
        home = await http.get(str(http.base_url).replace("farhand/", "home"))
        assert "the host's own" in home.text


@requirement("mounting:lifespan")
@HOSTS
async def test_a_socket_of_a_mounted_app_is_under_its_prefix_too(host: Host) -> None:
    app = create_app(Scene(["Hello."]).agent, store="memory:")
    async with hosted(host(app), app, "/farhand") as http:
        address = str(http.base_url).replace("http", "ws", 1) + "api/chat/ws"
        headers = {"authorization": f"Bearer {app.auth.token}"}
        async with connect(address, additional_headers=headers, proxy=None) as socket_:
            page = Page(http)
            page.messages = [user_message("hi")]
            shared = Shared(socket_)
            assert (await shared.turn(await shared.send(page), page)).text == "Hello."


@requirement("mounting:lifespan")
async def test_a_host_that_starts_stops_and_starts_again_is_served_each_time(tmp_path: Path) -> None:
    app = create_app(
        Scene(lambda moment: f"{len(moment.messages)}").agent, store=f"sqlite:///{tmp_path}/f.db"
    )
    texts = []
    for _ in range(3):
        async with hosted(in_starlette(app), app, "/farhand") as http:
            texts.append((await Page(http, "one-chat").say("hi")).text)
    assert texts == ["1", "3", "5"]


async def test_a_host_that_forgets_the_lifespan_is_served_and_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = create_app(Scene(lambda moment: "Hello.").agent, store="memory:")
    host = Starlette(routes=[Mount("/", app)])
    with caplog.at_level(logging.INFO, "farhand"):
        async with hosted(host, app) as http, asyncio.TaskGroup() as group:
            for _ in range(8):
                group.create_task(_greet(http))
    told = [record for record in caplog.records if "lifespan" in record.getMessage()]
    assert [(record.levelname, record.name) for record in told] == [("WARNING", "farhand.server")]
    await app.drain()
    await app.stop()


@requirement("store-away:every-route")
async def test_a_request_is_told_to_retry_while_the_store_cannot_be_opened(tmp_path: Path) -> None:
    """The host forgot the lifespan, and its store is in use."""
    address = f"sqlite:///{tmp_path}/f.db"
    other, app = (create_app(Scene(["Hello."]).agent, store=address) for _ in range(2))
    async with hosted(Starlette(routes=[Mount("/", app)]), app) as http:
        await other.start()
        refused = await http.get("/api/chat")
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert str(tmp_path) not in refused.text
        with pytest.raises(InvalidStatus):
            await connect(f"{http.base_url}/api/chat/ws".replace("http", "ws", 1), proxy=None)
        await other.stop()
        assert (await Page(http).say("hi")).text == "Hello."
    await app.drain()
    await app.stop()


async def test_requests_that_wait_for_one_attempt_to_start_share_its_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = create_app(Scene(["Hello."]).agent, store="memory:")
    attempts, waiting, is_tried = 0, 0, asyncio.Event()

    async def host(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal waiting
        waiting += scope["type"] == "http"
        await app(scope, receive, send)

    async def open_slowly(*config: object, **options: object) -> None:
        nonlocal attempts
        attempts += 1
        await is_tried.wait()
        raise StoreDown("The store is away.")

    monkeypatch.setattr(app_module, "open_runtime", open_slowly)
    unstarted = Starlette(routes=[Mount("/", host)])
    async with hosted(unstarted, app) as http, asyncio.TaskGroup() as group:
        requests = [group.create_task(http.get("/api/chat")) for _ in range(8)]
        await until(lambda: waiting == len(requests))
        is_tried.set()
    assert {each.result().status_code for each in requests} == {503}
    assert attempts == 1


async def test_a_store_that_cannot_be_opened_fails_the_lifespan_in_one_line(
    tmp_path: Path, serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    address = f"sqlite:///{tmp_path}/f.db"
    await serve(Scene(["x"]).agent, store=address)
    app = create_app(Scene(["x"]).agent, store=address)
    config = uvicorn.Config(app, log_config=None, lifespan="on")
    config.load()
    lifespan = config.lifespan_class(config)
    await lifespan.startup()
    assert lifespan.should_exit
    assert "Traceback" not in caplog.text
    assert "another process" in caplog.text.lower() or "in use" in caplog.text.lower()


@requirement("runs:drain")
@HOSTS
async def test_a_drain_ends_held_streams_so_that_they_can_be_resumed(host: Host, tmp_path: Path) -> None:
    scene = Scene(once(OPEN))
    address = f"sqlite:///{tmp_path}/f.db"
    app = create_app(scene.agent, store=address)
    async with hosted(host(app), app, "/farhand") as http:
        page = Page(http, wait="hold")
        async with page.saying("open") as live:
            call = (await live.until("tool-input-available"))["toolCallId"]
            await app.drain(5.0)
            turn = await live.rest()
        assert (turn.chunks[-1]["type"], turn.finish) == ("finish", "tool-calls")
        refused = await http.post("/api/tools/ack", json={"toolCallId": call, "status": "success"})
        assert (refused.status_code, refused.json()["reason"]) == (503, "shutting_down")
        assert refused.headers["retry-after"] == "1"
    again = create_app(scene.agent, store=address)
    async with hosted(host(again), again, "/farhand") as http:
        ack = {"toolCallId": call, "status": "success", "output": {"n": 1}}
        assert (await http.post("/api/tools/ack", json=ack)).json() == {"ok": True}
        page.http = http
        assert (await page.resume()).text == "open_url: success {'n': 1}."


@requirement("runs:drain")
async def test_a_drain_gives_what_works_some_time_to_end(tmp_path: Path) -> None:
    scene = Scene(once(Ask("slow", {"subject": "tea"})))
    app = create_app(scene.agent, store=f"sqlite:///{tmp_path}/f.db")
    async with hosted(in_starlette(app), app, "/farhand") as http:
        async with Page(http).saying("tea") as live, asyncio.TaskGroup() as group:
            await live.until("tool-input-available")
            draining = group.create_task(app.drain(30.0))
            await _refused(http)
            assert not draining.done()
            scene.gate("tea").set()
            turn = await live.rest()
        assert (turn.text, turn.finish) == ("slow: success {'waited': 'tea'}.", "stop")


async def _greet(http: httpx2.AsyncClient) -> None:
    assert (await Page(http).say("hi")).text == "Hello."


async def _refused(http: httpx2.AsyncClient) -> None:
    """Until requests are refused: the drain has begun."""
    async with asyncio.timeout(20):
        # asked again and again: it is told to nobody
        while (await http.get("/api/tools")).status_code != 503:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_blanks_around_header_values_are_dropped_under_a_hosts_own_server_too(serve: Serve) -> None:
    server = await serve(Scene(["hi"]).agent, mounted=True)
    port = server.url.rpartition(":")[2]
    credential = f"authorization: \tBearer {server.token} \t\r\n"
    head = f"GET /api/chat HTTP/1.1\r\nhost: 127.0.0.1:{port} \t\r\n{credential}"
    reader, writer = await asyncio.open_connection("127.0.0.1", int(port))
    writer.write(f"{head}connection: close\r\n\r\n".encode())
    assert (await reader.read()).startswith(b"HTTP/1.1 200")
    writer.close()
