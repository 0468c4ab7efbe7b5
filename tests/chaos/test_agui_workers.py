"""AG-UI on one database with two workers: a question asked at one is answered, read and continued at the
other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from itertools import cycle
from pathlib import Path

import pytest

from tests.chaos.recorded_server import Room
from tests.chaos.workers import workers
from tests.faces.agui.page import Page, yes
from tests.postgres import Cluster, running_cluster
from tests.requirement import requirement

DELETED = 'It is done: [{"city": "%s", "sky": "sunny"}, {"deleted": "%s"}]'
TOLD = "Once upon a time."


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    # wider than elsewhere: the workers outlive a test, and their loop with them
    return "asyncio"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running_cluster() as cluster:
        yield cluster


@pytest.fixture(scope="module")
async def rooms(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[list[Room]]:
    """Shared by the tests that leave both alive: each has a thread and subjects of its own."""
    async with workers(tmp_path_factory.mktemp("room"), [cluster.address("agui")] * 2) as rooms:
        yield rooms


def _said(page: Page) -> str:
    """By the assistant, as the page has it: from the record what was over when the page came."""
    return "".join(each.get("content") or "" for each in page.messages if each["role"] == "assistant")


def _deleted(path: str) -> str:
    return DELETED % (path, path)


def _at(room: Room, page: Page) -> Page:
    """The same page, whose requests another worker gets now."""
    page.http = room.http
    return page


@requirement("workers:answer-anywhere")
async def test_an_interrupt_of_one_worker_is_resumed_at_the_other_and_read_at_both(rooms: list[Room]) -> None:
    one, other = rooms
    page = Page(one.http, "resumed")
    [asked] = (await page.send("delete a")).interrupts
    run = await _at(other, page).resume(yes(asked))
    assert run.text == _deleted("a")
    assert one.executions.count(("delete_file", "a")) == 1
    for room in rooms:
        assert (await Page(room.http, "resumed").connect()).text.endswith(_deleted("a"))


@requirement("workers:answer-anywhere")
async def test_a_call_shown_by_one_worker_is_answered_at_the_other(rooms: list[Room]) -> None:
    one, other = rooms
    page = Page(one.http, "shown")
    run = await page.send("open b")
    [call_id] = [call for call, (name, _) in run.calls.items() if name == "open_page"]
    page.finds(call_id, '{"viewKey": "v1"}')
    assert '"viewKey": "v1"' in (await _at(other, page).run()).text


@requirement("workers:answer-anywhere")
async def test_fifty_equal_resumes_over_two_workers_have_one_effect(rooms: list[Room]) -> None:
    page = Page(rooms[0].http, "fifty")
    [asked] = (await page.send("delete c")).interrupts
    bodies = [page.input(resume=[yes(asked)]) for _ in range(50)]
    posts = [Page(room.http).post("/ag-ui", body) for room, body in zip(cycle(rooms), bodies, strict=False)]
    runs = await asyncio.gather(*posts)
    assert {run.text for run in runs} == {_deleted("c")}
    assert rooms[0].executions.count(("delete_file", "c")) == 1


@requirement("workers:answer-anywhere")
async def test_an_active_run_at_one_worker_is_read_and_stopped_at_the_other(rooms: list[Room]) -> None:
    one, other = rooms
    page = Page(one.http, "read")
    page.says("tell nobody")
    async with page.live() as live:
        await live.until("TEXT_MESSAGE_CONTENT")
        there = Page(other.http, "read")
        connected = asyncio.create_task(there.connect())
        assert (await Page(other.http, "read").stop(page.run_id))["stopped"] is True
        assert (await live.rest()).outcome == {"type": "cancelled"}
    run = await connected
    assert (run.text, run.outcome) == ("Once upon ", {"type": "cancelled"})


@requirement("agui:busy")
async def test_a_message_at_one_worker_stops_a_run_that_nobody_reads_at_the_other(rooms: list[Room]) -> None:
    one, other = rooms
    page = Page(one.http, "left")
    page.says("tell never")
    async with page.live() as live:
        await live.until("TEXT_MESSAGE_CONTENT")
    one.open_gate("left")
    page.says("tell left")
    async with asyncio.timeout(30):
        while (run := await _at(other, page).run()).last["type"] == "RUN_ERROR":
            assert run.code == "busy"
    assert run.text == TOLD


@requirement("agui:resume-and-message")
async def test_a_message_beside_a_resume_is_answered_by_the_other_worker_when_the_first_is_killed(
    cluster: Cluster, tmp_path: Path
) -> None:
    async with workers(tmp_path, [cluster.address("agui_killed")] * 2) as [one, other]:
        page = Page(one.http)
        [asked] = (await page.send("erase d")).interrupts
        page.says("tell d")
        async with page.live(resume=[yes(asked)]) as live:
            await live.until("TOOL_CALL_RESULT")
        await one.server.kill()
        one.open_gate("d")
        there = Page(other.http)
        async with asyncio.timeout(60):
            await there.connect()
        assert _said(there).endswith(f"{_deleted('d')}{TOLD}")
        said = [each["content"] for each in there.messages if each["role"] == "user"]
        assert said == ["erase d", "tell d"]
        assert other.executions.count(("delete_file", "d")) == 1


@requirement("agui:resume-and-message")
async def test_a_message_beside_a_resume_is_answered_when_the_only_server_is_killed_and_started_again(
    tmp_path: Path,
) -> None:
    async with workers(tmp_path, [f"sqlite:///{tmp_path}/agui.db"]) as [one]:
        page = Page(one.http)
        [asked] = (await page.send("erase g")).interrupts
        page.says("tell g")
        async with page.live(resume=[yes(asked)]) as live:
            await live.until("TOOL_CALL_RESULT")
        await one.server.restart()
        one.open_gate("g")
        async with asyncio.timeout(60):
            await page.connect()
        assert _said(page).endswith(f"{_deleted('g')}{TOLD}")
        assert one.executions.count(("delete_file", "g")) == 1


@requirement("agui:restart")
async def test_a_pause_of_a_worker_that_was_killed_is_answered_at_the_other(
    cluster: Cluster, tmp_path: Path
) -> None:
    async with workers(tmp_path, [cluster.address("agui_pause")] * 2) as [one, other]:
        page, shown = Page(one.http), Page(one.http, "t2")
        [asked] = (await page.send("delete e")).interrupts
        run = await shown.send("open f")
        [call_id] = [call for call, (name, _) in run.calls.items() if name == "open_page"]
        await one.server.kill()
        assert (await _at(other, page).resume(yes(asked))).text == _deleted("e")
        shown.finds(call_id, '{"viewKey": "v2"}')
        assert '"viewKey": "v2"' in (await _at(other, shown).run()).text
        assert other.executions.count(("delete_file", "e")) == 1
