"""Two workers and one database: each knows what the other was sent, and continues what the other leaves."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections import Counter
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import httpx2
import pytest

from tests.chaos.recorded_server import Json, Room
from tests.chaos.time_limit_check import kept
from tests.chaos.workers import LEASE_SEC, workers
from tests.faces.ui_stream.page import Page, Turn
from tests.postgres import Cluster, running_cluster
from tests.requirement import requirement
from tests.stream_checker import StreamChecker, read_sse

SAME, DIFFERENT = 200, 100
RESULT = {"viewKey": "v1"}
DONE = 'It is done: [{"city": "oslo", "sky": "sunny"}, '
TAKEOVER_SEC = LEASE_SEC + 5.0
WAKE_SEC = 2.0
WITHIN_SEC = 40.0


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
    async with asyncio.timeout(WITHIN_SEC):
        while True:
            turn = await page.resume()
            if turn.finish == "stop":
                return turn
            await asyncio.sleep(0.05)


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


async def test_an_ack_on_the_other_worker_wakes_the_held_stream(cluster: Cluster, tmp_path: Path) -> None:
    async with workers(tmp_path, [cluster.address("wake")] * 2) as [one, other]:

        async def wake(number: int) -> float:
            page = Page(one.http, f"chat-{number}", wait="hold")
            async with page.saying("open oslo") as live:
                await live.until("tool-output-available")
                call = live.turn.of("tool-input-available")[-1]["toolCallId"]
                assert await other.ack(call, output=RESULT) == {"ok": True}
                accepted_at = time.monotonic()
                turn = await live.rest()
            assert (turn.text, turn.finish) == (DONE + '{"viewKey": "v1"}]', "stop")
            _, woken_at = one.asked_at(page.id)
            return woken_at - accepted_at

        await kept("an ack on one worker wakes the run of the other after", WAKE_SEC, wake)


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
@pytest.mark.timeout(180)
async def test_a_killed_workers_run_continues_elsewhere_in_time_and_the_client_resumes_there(
    cluster: Cluster, tmp_path: Path
) -> None:
    async with workers(tmp_path, [cluster.address("killed")] * 2) as [one, other]:

        async def takeover(number: int) -> float:
            city = f"oslo-{number}"
            heard, killed_at = await killed_while_it_looks(one, city, before=2 * number)
            await one.until_executed("look_up", times=2 * number + 2)
            one.open_gate(city)
            turn = await with_the_rest(heard, other, city)
            assert (turn.finish, turn.text) == ("stop", told(city))
            assert len(turn.of("tool-output-available")) == 2, "nothing is told twice"
            assert len(one.executed_at("weather", city)) == 1
            _, again_at = one.executed_at("look_up", city)
            await one.server.start()
            return again_at - killed_at

        await kept("a killed worker's run goes on elsewhere after", TAKEOVER_SEC, takeover)


async def killed_while_it_looks(there: Room, city: str, *, before: int) -> tuple[Turn, float]:
    """What a reader had heard, and when its worker was killed."""
    starting, reading = Page(there.http, city, wait="hold"), Page(there.http, city)
    async with starting.saying(f"look {city}") as first:
        await first.until("start")
        async with reading.resuming("0.0") as live:
            await live.until("tool-output-available")
            await there.until_executed("look_up", times=before + 1)
            killed_at = time.monotonic()
            await there.server.kill()
            with pytest.raises(httpx2.TransportError):
                await live.rest()
    return live.turn, killed_at


async def with_the_rest(heard: Turn, there: Room, chat: str) -> Turn:
    """One response: what was heard elsewhere, and what this worker sends after its last position."""
    last = max(index for index, position in enumerate(heard.ids) if position is not None)
    response = await there.http.get(f"/api/chat/{chat}/stream?after={heard.ids[last]}")
    checker = StreamChecker()
    # what came without its position comes again
    for chunk in heard.chunks[: last + 1]:
        checker.read_data(json.dumps(chunk))
    for frame in read_sse(response.content):
        checker.read_data(frame.data)
    return Turn(response.status_code, checker.finished())


def told(city: str) -> str:
    return f'It is done: [{{"city": "{city}", "sky": "sunny"}}, {{"found": "{city}"}}]'


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


@requirement("workers:takeover")
async def test_a_worker_that_was_stopped_beyond_its_lease_changes_nothing_when_it_continues(
    cluster: Cluster, tmp_path: Path
) -> None:
    async with workers(tmp_path, [cluster.address("stopped")] * 2) as [one, other]:
        page = Page(one.http, "chat", wait="hold")
        async with page.saying("tell end") as live:
            await live.until("text-delta")
            one.server.signal(signal.SIGSTOP)
            one.open_gate("end")
            # who reads there while the run is taken over has seen its cut step, too
            assert (await resumed(other)).text.endswith("Once upon a time.")
            before = await other.http.get("/api/chat/chat")
            assert before.text.count("Once upon") == 1
            one.server.signal(signal.SIGCONT)
            # its reader is told the truth, or sent away to be told it elsewhere
            rest = await live.rest()
        assert rest.text.endswith("a time.") or rest.chunks[-1]["type"] == "error"
        after = await other.http.get("/api/chat/chat")
        assert after.json() == before.json()
        assert (await one.http.get("/api/chat/chat")).json() == before.json()
        assert len(one.requests) == 2


@requirement("workers:takeover")
async def test_a_worker_that_stood_still_beyond_its_lease_tells_its_reader_no_word_before_it_asks_the_store(
    cluster: Cluster, tmp_path: Path
) -> None:
    async with workers(tmp_path, [cluster.address("frozen")] * 2) as [one, other]:
        page = Page(one.http, "chat", wait="hold")
        async with page.saying("freeze end") as live:
            await live.until("text-delta")
            one.open_gate("told")
            # who reads there while the run is taken over has seen its cut step, too
            assert (await resumed(other)).text.endswith("This is the answer.")
            # the model's next word is there before the worker can hear of anything
            one.open_gate("end")
            rest = await live.rest()
        assert "nobody may hear" not in rest.text
        assert rest.text.endswith("the answer.") or rest.chunks[-1]["type"] == "error"
        assert "nobody may hear" not in (await one.http.get("/api/chat/chat")).text
