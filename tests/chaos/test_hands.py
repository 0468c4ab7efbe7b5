"""Tools that know for whom they work, and tools that ask, when their server is killed: on one file, where the
server starts again, and on one database, where another worker goes on. Effects are counted in a file."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import httpx2
import pytest

from tests.chaos.room import Json, Room
from tests.faces.agui import page as agui
from tests.faces.ui_stream.page import Page
from tests.postgres import Cluster, running_cluster
from tests.process import MANY_RUNS, FarhandProcess, farhand_process
from tests.requirement import requirement

pytestmark = [pytest.mark.timeout(180), pytest.mark.chaos]
APP = "tests.chaos.hands_agent:app"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running_cluster() as cluster:
        yield cluster


class Place:
    """One server on a file, or two on a database."""

    def __init__(self, servers: list[FarhandProcess], folder: Path) -> None:
        self._servers = servers
        self._folder = folder

    @property
    def executions(self) -> list[tuple[str, str]]:
        return Room(self._servers[0], httpx2.AsyncClient(), self._folder).executions

    async def kill(self) -> None:
        """The server that is in use: it is started again, or the other one goes on."""
        if len(self._servers) == 1:
            await self._servers[0].restart()
        else:
            await self._servers.pop(0).kill()

    def client(self, name: str, **headers: str) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(
            base_url=self._servers[0].url,
            headers={"x-name": name, **headers},
            timeout=60,
            trust_env=False,
            verify=False,
        )


@pytest.fixture(params=["sqlite", "postgres"])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    if request.param == "sqlite":
        stores = [f"sqlite:///{tmp_path}/hands.db"]
    else:
        cluster: Cluster = request.getfixturevalue("cluster")
        stores = [cluster.address(f"hands{abs(hash(request.node.name)) % 10**9}")] * 2
    async with AsyncExitStack() as stack:
        servers = [
            await stack.enter_async_context(
                farhand_process(APP, env={**MANY_RUNS, "TEST_STORE": store, "TEST_ROOM": str(tmp_path)})
            )
            for store in stores
        ]
        yield Place(servers, tmp_path)


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
async def test_an_idempotent_tool_that_is_killed_between_two_questions_goes_on_with_the_first_answer(
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


@requirement("hands:brought-tools")
async def test_a_run_still_has_the_tools_that_it_brought_though_the_server_was_killed(place: Place) -> None:
    chart = {"name": "show_chart", "description": "Show it.", "parameters": {"type": "object"}}
    async with place.client("ann") as http:
        [asked] = (await agui.Page(http, "chat", tools=[chart]).send("chart")).calls
    await place.kill()
    async with place.client("ann") as http:
        assert (await _open(http, tool="show_chart"))["callId"] == asked
        assert await _ack(http, asked, "shown") == {"ok": True}
        # the model says what it is offered in the next step
        assert "offered:show_chart" in await _ended(http, "chat")
        assert (await _ack(http, asked, "shown")) == {"ok": True, "ignored": True}


async def _said(page: Page) -> str | None:
    message = {"id": "m2", "role": "user", "parts": [{"type": "text", "text": "never mind"}]}
    response = await page.http.post("/api/chat", json={"id": page.id, "messages": [message]})
    if response.status_code == 409:
        return None
    record = (await page.http.get(f"/api/chat/{page.id}")).json()
    return str(record["messages"][-1]["parts"][-1]["text"])
