"""Two workers and one database: what one is told the other knows, what one leaves the other takes up."""

from __future__ import annotations

import asyncio
import signal
import time
from collections import Counter
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import httpx2
import pytest

from tests.chaos.fault_proxy import FaultProxy
from tests.chaos.room import Json, Room
from tests.chaos.workers import LEASE_SEC, workers
from tests.faces.ui_stream.page import Page, Turn
from tests.postgres import Cluster, running_cluster
from tests.requirement import requirement

SAME, DIFFERENT, PARKED = 200, 100, 100
RESULT = {"viewKey": "v1"}
DONE = 'It is done: [{"city": "oslo", "sky": "sunny"}, '
TAKEOVER_SEC = LEASE_SEC + 5.0
# a machine that has much else to do may take longer, but not every time
SOON_SEC = 20.0
PROMISED_SEC, TRIES = 2.0, 3


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running_cluster() as cluster:
        yield cluster


async def answers(rooms: list[Room], bodies: list[Json]) -> list[tuple[int, Json]]:
    """All sent at once, to the workers by turns."""

    async def send(there: Room, body: Json) -> tuple[int, Json]:
        response = await there.http.post("/api/tools/ack", json=body)
        return response.status_code, response.json()

    async with asyncio.TaskGroup() as group:
        pairs = zip(cycle(rooms), bodies, strict=False)
        tasks = [group.create_task(send(there, body)) for there, body in pairs]
    return [task.result() for task in tasks]


def body_of(call: str, view: str = "v1") -> Json:
    return {"toolCallId": call, "status": "success", "output": {"viewKey": view}}


def given(there: Room, call: str) -> list[Json]:
    return [each["outcome"] for results in there.requests for each in results if each["call_id"] == call]


async def parked(there: Room, chat: str = "chat") -> tuple[Page, str]:
    page = Page(there.http, chat)
    turn = await page.say("open oslo")
    return page, turn.of("tool-input-available")[-1]["toolCallId"]


async def resumed(there: Room, chat: str = "chat") -> Turn:
    """The answer to its end, read on this worker; asked again while it is not there yet."""
    page = Page(there.http, chat)
    async with asyncio.timeout(SOON_SEC * 2):
        while True:
            turn = await page.resume()
            if turn.finish == "stop":
                return turn
            await asyncio.sleep(0.05)


@requirement("workers:identical")
async def test_of_many_identical_acks_over_two_workers_one_is_accepted(
    cluster: Cluster, tmp_path: Path
) -> None:
    async with workers(tmp_path, [cluster.address("identical")] * 2) as [one, other]:
        _, call = await parked(one)
        told = Counter(str(each) for each in await answers([one, other], [body_of(call)] * SAME))
        accepted, repeated = str((200, {"ok": True})), str((200, {"ok": True, "ignored": True}))
        assert told == {accepted: 1, repeated: SAME - 1}
        assert (await resumed(other)).text == DONE + '{"viewKey": "v1"}]'
        assert given(one, call) == [{"kind": "success", "output": RESULT}]
        assert len(one.requests) == 2


@requirement("workers:different")
async def test_of_many_different_acks_over_two_workers_one_wins_and_all_are_told_which(
    cluster: Cluster, tmp_path: Path
) -> None:
    async with workers(tmp_path, [cluster.address("different")] * 2) as [one, other]:
        _, call = await parked(one)
        bodies = [body_of(call, f"v{number}") for number in range(DIFFERENT)]
        told = await answers([one, other], bodies)
        [winner] = [body for body, (status, _) in zip(bodies, told, strict=True) if status == 200]
        losers = [answer for status, answer in told if status == 409]
        assert (len(losers), len({each["digest"] for each in losers})) == (DIFFERENT - 1, 1)
        assert (await resumed(other)).finish == "stop"
        assert given(one, call) == [{"kind": "success", "output": winner["output"]}]


@requirement("workers:wake")
async def test_an_ack_on_the_other_worker_wakes_the_held_stream(cluster: Cluster, tmp_path: Path) -> None:
    async with workers(tmp_path, [cluster.address("wake")] * 2) as [one, other]:
        took: list[float] = []
        for number in range(TRIES):
            page = Page(one.http, f"chat-{number}", wait="hold")
            async with page.saying("open oslo") as live:
                await live.until("tool-output-available")
                call = live.turn.of("tool-input-available")[-1]["toolCallId"]
                assert await other.ack(call, output=RESULT) == {"ok": True}
                began = time.monotonic()
                turn = await live.rest()
                took.append(time.monotonic() - began)
            assert (turn.text, turn.finish) == (DONE + '{"viewKey": "v1"}]', "stop")
        assert len(one.requests) == 2 * TRIES
        assert max(took) < SOON_SEC
        assert min(took) < PROMISED_SEC, took


@requirement("workers:follow")
async def test_a_stream_is_followed_on_another_worker_than_the_one_that_runs_it(
    cluster: Cluster, tmp_path: Path
) -> None:
    async with workers(tmp_path, [cluster.address("follow")] * 2) as [one, other]:
        page = Page(one.http, "chat", wait="hold")
        async with page.saying("tell end") as live:
            await live.until("text-delta")
            async with Page(other.http, "chat").resuming() as there:
                await there.until("text-delta")
                one.open_gate("end")
                turn = await there.rest()
            await live.rest()
        assert (turn.text, turn.finish) == ("Once upon a time.", "stop")


@requirement("workers:killed")
async def test_a_killed_workers_run_goes_on_elsewhere_and_the_client_resumes_there(
    cluster: Cluster, tmp_path: Path
) -> None:
    async with workers(tmp_path, [cluster.address("killed")] * 2) as [one, other]:
        page = Page(one.http, "chat", wait="hold")
        async with page.saying("look oslo") as live:
            await live.until("tool-output-available")
            await one.until_executed("look_up")
            await one.server.kill()
            with pytest.raises(httpx2.TransportError):
                await live.rest()
        began = time.monotonic()
        await one.until_executed("look_up", times=2)
        assert time.monotonic() - began < TAKEOVER_SEC + SOON_SEC
        one.open_gate("oslo")
        assert (await resumed(other)).text == DONE + '{"found": "oslo"}]'
        assert sorted(one.executions) == [("look_up", "oslo"), ("look_up", "oslo"), ("weather", "oslo")]


@requirement("workers:killed")
async def test_a_tool_in_flight_on_a_killed_worker_is_not_run_elsewhere(
    cluster: Cluster, tmp_path: Path
) -> None:
    async with workers(tmp_path, [cluster.address("charged")] * 2) as [one, other]:
        page = Page(one.http, "chat", wait="hold")
        async with page.saying("charge oslo") as live:
            await live.until("tool-output-available")
            await one.until_executed("charge")
            await one.server.kill()
            with pytest.raises(httpx2.TransportError):
                await live.rest()
        assert "Whether it took effect is unknown" in (await resumed(other)).text
        assert sorted(one.executions) == [("charge", "oslo"), ("weather", "oslo")]


@requirement("workers:stopped")
async def test_a_worker_that_was_stopped_beyond_its_lease_changes_nothing_when_it_goes_on(
    cluster: Cluster, tmp_path: Path
) -> None:
    async with workers(tmp_path, [cluster.address("stopped")] * 2) as [one, other]:
        page = Page(one.http, "chat", wait="hold")
        async with page.saying("tell end") as live:
            await live.until("text-delta")
            one.server.signal(signal.SIGSTOP)
            one.open_gate("end")
            turn = await resumed(other)
            assert (turn.text, turn.finish) == ("Once upon a time.", "stop")
            before = await other.http.get("/api/chat/chat")
            one.server.signal(signal.SIGCONT)
            # its reader is told the truth, or sent away to be told it elsewhere
            rest = await live.rest()
        assert rest.text.endswith("a time.") or rest.chunks[-1]["type"] == "error"
        after = await other.http.get("/api/chat/chat")
        assert after.json() == before.json()
        assert (await one.http.get("/api/chat/chat")).json() == before.json()
        assert len(one.requests) == 2


@requirement("workers:database-restarted")
async def test_parked_runs_outlive_a_hard_restart_of_the_database_and_wake_soon_after(
    tmp_path: Path,
) -> None:
    with running_cluster() as own:
        async with workers(tmp_path, [own.address("restarted")] * 2) as [one, other]:
            calls = [(await parked(one, f"chat-{number}"))[1] for number in range(PARKED)]
            await asyncio.to_thread(own.restart)
            began = time.monotonic()
            there = zip(cycle([one, other]), calls, strict=False)
            await asyncio.gather(*(accepted(worker, call) for worker, call in there))
            await until_asked(one, 2 * PARKED)
            assert time.monotonic() - began < SOON_SEC
            assert len(one.executions) == PARKED


async def until_asked(there: Room, times: int) -> None:
    async with asyncio.timeout(SOON_SEC):
        # the notes are written by other processes: there is no event to wait for
        while len(there.requests) < times:  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def accepted(there: Room, call: str) -> None:
    """Sent until it is accepted: a store that is away is told with 503 and when to come back."""
    async with asyncio.timeout(SOON_SEC):
        while True:
            response = await there.http.post("/api/tools/ack", json=body_of(call))
            if response.status_code == 200:
                return
            assert (response.status_code, response.headers["retry-after"]) == (503, "1")
            await asyncio.sleep(0.05)


@requirement("workers:listen-lost")
@pytest.mark.parametrize("fault", ["cut", "half_open"])
async def test_a_held_run_wakes_also_when_its_line_to_the_database_was_lost(
    cluster: Cluster, tmp_path: Path, fault: str
) -> None:
    async with FaultProxy(("127.0.0.1", cluster.port)) as line:
        direct = cluster.address(f"listen_{fault}")
        through = cluster.address(f"listen_{fault}", port=line.port)
        async with workers(tmp_path, [through, direct]) as [one, other]:
            page = Page(one.http, "chat", wait="hold")
            async with page.saying("open oslo") as live:
                await live.until("tool-output-available")
                call = live.turn.of("tool-input-available")[-1]["toolCallId"]
                assert (line.cut() if fault == "cut" else line.half_open()) > 0
                assert await other.ack(call, output=RESULT) == {"ok": True}
                turn = await asyncio.wait_for(finished(page, live.rest()), SOON_SEC * 2)
            assert turn.finish == "stop"
            assert given(one, call) == [{"kind": "success", "output": RESULT}] * (len(one.requests) - 1)


async def finished(page: Page, rest: object) -> Turn:
    """The rest of the response; if it was ended for want of a store, what the next one brings."""
    assert asyncio.iscoroutine(rest)
    turn: Turn = await rest
    while turn.finish != "stop":
        await asyncio.sleep(0.05)
        turn = await page.resume()
    return turn
