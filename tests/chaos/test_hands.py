"""Tools with a context and tools that ask, when their server is killed: on one file, where the server
restarts, and on one database, where another worker continues. Effects are counted in a file."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from tests.chaos.recorded_server import Json
from tests.faces.agui import page as agui
from tests.faces.ui_stream.page import Page
from tests.fork_server import ForkedProcess, ForkServer, own_fork_server
from tests.postgres import Cluster
from tests.process import MANY_RUNS, environment
from tests.requirement import requirement

pytestmark = [pytest.mark.timeout(180), pytest.mark.chaos]
APP = "tests.chaos.hands_agent:app"


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    # wider than elsewhere: the fork server outlives a test, and its loop with it
    return "asyncio"


@pytest.fixture(scope="module")
async def fork_server() -> AsyncIterator[ForkServer]:
    async with own_fork_server("tests.chaos.recording_agent") as started:
        yield started


class Place:
    """One server on a file, or two on a database."""

    def __init__(self, fork_server: ForkServer, store: str, folder: Path) -> None:
        self._fork_server = fork_server
        self._store = store
        self._folder = folder
        self._started = 0
        self._servers: list[ForkedProcess] = []

    @property
    def is_shared(self) -> bool:
        return self._store.startswith("postgresql")

    @property
    def executions(self) -> list[tuple[str, str]]:
        path = self._folder / "executions.jsonl"
        notes = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return [(each["tool"], each["subject"]) for each in notes]

    async def open(self) -> None:
        for _ in range(2 if self.is_shared else 1):
            await self._start()

    async def kill(self) -> None:
        """The server that is in use: it is started again, or the other one continues."""
        server = self._servers.pop(0)
        server.kill()
        await server.wait()
        if not self.is_shared:
            await self._start()

    async def close(self) -> None:
        for server in self._servers:
            server.kill()
            await server.wait()

    def client(self, name: str, **headers: str) -> httpx2.AsyncClient:
        url = f"http://127.0.0.1:{self._servers[0].port}"
        return httpx2.AsyncClient(
            base_url=url, headers={"x-name": name, **headers}, timeout=60, trust_env=False, verify=False
        )

    async def _start(self) -> None:
        self._started += 1
        out = self._folder / f"server-{self._started}.out"
        variables = {**MANY_RUNS, "TEST_STORE": self._store, "TEST_ROOM": str(self._folder)}
        server = await self._fork_server.start(
            ["run", APP, "--port", "0"], environment(self._folder, variables), out
        )
        assert await server.ready(), out.with_suffix(".err").read_text()
        self._servers.append(server)


@pytest.fixture(params=["sqlite", "postgres"])
async def place(
    request: pytest.FixtureRequest, fork_server: ForkServer, tmp_path: Path
) -> AsyncIterator[Place]:
    store = f"sqlite:///{tmp_path}/hands.db"
    if request.param == "postgres":
        cluster: Cluster = request.getfixturevalue("cluster")
        store = cluster.address()
    there = Place(fork_server, store, tmp_path)
    await there.open()
    yield there
    await there.close()


async def _open(http: httpx2.AsyncClient, **wanted: str) -> Json:
    """The call that waits, once there is one like this."""
    async with asyncio.timeout(60):
        while True:
            calls = (await http.get("/api/inbox")).json()["calls"]
            found = [call for call in calls if all(str(call.get(key)) == wanted[key] for key in wanted)]
            if found:
                return found[0]
            await asyncio.sleep(0.02)


async def _question(http: httpx2.AsyncClient, message: str) -> str:
    async with asyncio.timeout(60):
        while True:
            call = await _open(http, tool="user_confirm")
            if call["input"] == {"message": message}:
                return str(call["callId"])
            await asyncio.sleep(0.02)


async def _ack(http: httpx2.AsyncClient, call: str, output: str) -> Json:
    sent = {"toolCallId": call, "status": "success", "output": output}
    return (await http.post("/api/tools/ack", json=sent)).json()


async def _ended(http: httpx2.AsyncClient, thread: str) -> str:
    """The messages of the thread, once its run has ended."""
    async with asyncio.timeout(60):
        while (record := (await http.get(f"/api/chat/{thread}")).json())["state"] != "done":  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    return str(record["messages"])


@requirement("hands:who-asks")
async def test_two_people_and_an_approver_are_told_apart_though_the_server_was_killed(place: Place) -> None:
    for name in ("ann", "ben"):
        async with place.client(name) as http:
            assert (await Page(http, "chat").say("whose")).finish == "tool-calls"
    await place.kill()
    for name in ("ann", "ben"):
        async with place.client("mia", **{"x-on-behalf-of": name}) as manager:
            for tool in ("whose", "whose_async"):
                asked = await _open(manager, tool=tool)
                yes = {"approvalId": asked["approvalId"], "approved": True}
                assert (await manager.post("/api/tools/approve", json=yes)).json() == {"ok": True}
        async with place.client(name) as http:
            assert f"{name} {name} mia" in await _ended(http, "chat")
    expected = [(tool, f"{name} {name} mia") for name in ("ann", "ben") for tool in ("whose", "whose_async")]
    assert sorted(place.executions) == sorted(expected)


@requirement("hands:questions-after-a-crash")
@pytest.mark.parametrize("name", ["ask_again", "ask_in_thread"])
async def test_an_idempotent_tool_that_is_killed_between_two_questions_continues_with_the_first_answer(
    place: Place, name: str
) -> None:
    async with place.client("ann") as http:
        page = Page(http, "chat")
        assert (await page.say(name)).finish == "tool-calls"
        assert await _ack(http, await _question(http, "first?"), "one") == {"ok": True}
        second = await _question(http, "second?")
    await place.kill()
    async with place.client("ann") as http:
        assert await _question(http, "second?") == second, "it is asked once"
        assert await _ack(http, second, "two") == {"ok": True}
        assert "one and two" in await _ended(http, "chat")
    assert place.executions == [(name, "ann ann nobody")] * 2


@requirement("hands:questions-after-a-crash")
async def test_of_another_tool_that_is_killed_between_two_questions_the_model_is_told_unknown(
    place: Place,
) -> None:
    async with place.client("ann") as http:
        await Page(http, "chat").say("ask_once")
        assert await _ack(http, await _question(http, "first?"), "one") == {"ok": True}
        second = await _question(http, "second?")
    await place.kill()
    async with place.client("ann") as http:
        assert "is unknown; it was not run again" in await _ended(http, "chat")
        assert (await _ack(http, second, "two"))["reason"] == "cancelled"
    assert place.executions == [("ask_once", "ann ann nobody")]


@requirement("hands:question-gives-way")
async def test_a_new_message_after_the_kill_cancels_the_tool_and_its_question(place: Place) -> None:
    async with place.client("ann") as http:
        page = Page(http, "chat")
        await page.say("ask_again")
        question = await _question(http, "first?")
    await place.kill()
    async with place.client("ann") as http:
        await _question(http, "first?")
        page.http = http
        async with asyncio.timeout(60):
            # until the run that the kill interrupted asks again, it works, and a message is refused
            while (turn := await _said(page)) is None:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        assert turn == "You said: never mind"
        assert (await _ack(http, question, "yes"))["reason"] == "cancelled"
        assert (await http.get("/api/inbox")).json()["calls"] == []


@requirement("hands:request-tools")
async def test_a_run_still_has_the_tools_of_its_request_and_weighs_them_though_the_server_was_killed(
    place: Place,
) -> None:
    chart = {"name": "show_chart", "description": "Show it.", "parameters": {"type": "object"}}
    numbers = {"type": "array", "items": {"multipleOf": 1e-9}}
    heavy = {"type": "object", "properties": {"numbers": numbers}}
    add_up = {"name": "add_up", "description": "Add them up.", "parameters": heavy}
    async with place.client("ann") as http:
        [asked] = (await agui.Page(http, "chat", tools=[chart, add_up]).send("chart")).calls
    await place.kill()
    async with place.client("ann") as http:
        assert (await _open(http, tool="show_chart"))["callId"] == asked
        assert await _ack(http, asked, "shown") == {"ok": True}
        said = await _ended(http, "chat")
        # the model says what it is offered in the last step
        assert "offered:show_chart" in said
        assert "too large to be checked" in said
        assert (await _ack(http, asked, "shown")) == {"ok": True, "ignored": True}


async def _said(page: Page) -> str | None:
    message = {"id": "m2", "role": "user", "parts": [{"type": "text", "text": "never mind"}]}
    response = await page.http.post("/api/chat", json={"id": page.id, "messages": [message]})
    if response.status_code == 409:
        return None
    record = (await page.http.get(f"/api/chat/{page.id}")).json()
    return str(record["messages"][-1]["parts"][-1]["text"])
