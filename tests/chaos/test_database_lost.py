"""Workers whose database restarts, or that get no notifications: answered runs continue in time."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from itertools import cycle
from pathlib import Path

import pytest

from farhand import App, Success, Toolbox, ask, create_app, tool
from farhand.core.principal import LOCAL
from farhand.core.result import Accepted, Result
from farhand.errors import StoreDown
from farhand.store.postgres.connection import connect, parse_address
from farhand.store.postgres.notify import LISTENER
from tests.chaos.agents import open_page
from tests.chaos.fault_proxy import FaultProxy
from tests.chaos.recorded_server import Room
from tests.chaos.test_stop import ended, started
from tests.chaos.time_limit_check import kept, say
from tests.chaos.workers import workers
from tests.faces.ui_stream.page import Page
from tests.postgres import Cluster, running_cluster
from tests.requirement import requirement

PARKED = 100
AT_ONCE = 10
WAKE_SEC = 2.0
WITHIN_SEC = 40.0
# what is late is measured again
pytestmark = pytest.mark.timeout(180)
SEEN = {"viewKey": "v1"}
LISTENERS = "SELECT pid, client_port FROM pg_stat_activity WHERE application_name = $1"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running_cluster() as cluster:
        yield cluster


@requirement("postgres:recovers")
async def test_each_of_a_hundred_parked_runs_wakes_in_time_after_a_hard_restart_of_the_database(
    tmp_path: Path,
) -> None:
    with running_cluster() as own:
        async with workers(tmp_path, [own.address("restarted")] * 2) as [one, other]:

            async def slowest(number: int) -> float:
                chats = [f"chat-{number}-{each}" for each in range(PARKED)]
                calls = await parked(one, chats)
                await asyncio.to_thread(own.restart)
                back_at = time.monotonic()
                there = zip(cycle([one, other]), calls, strict=False)
                answered_at = await asyncio.gather(*(accepted(worker, call) for worker, call in there))
                woken_at = [await asked_again(one, chat) for chat in chats]
                assert len(one.executions) == PARKED * (number + 1), "no tool twice"
                longest = max(woken - at for woken, at in zip(woken_at, answered_at, strict=True))
                say(f"{len(chats)} runs; from an accepted result to its run: {longest:.2f} s at most")
                return max(woken_at) - back_at

            await kept("the last run wakes after the return of the database", WAKE_SEC, slowest)


async def parked(there: Room, chats: list[str]) -> list[str]:
    turns = asyncio.Semaphore(AT_ONCE)

    async def park(chat: str) -> str:
        async with turns:
            turn = await Page(there.http, chat).say("open oslo")
        return str(turn.of("tool-input-available")[-1]["toolCallId"])

    return await asyncio.gather(*map(park, chats))


async def accepted(there: Room, call: str) -> float:
    """Sent until it is accepted, and when that was: a store that is away is told with 503."""
    body = {"toolCallId": call, "status": "success", "output": {"viewKey": "v1"}}
    async with asyncio.timeout(WITHIN_SEC):
        while True:
            response = await there.http.post("/api/tools/ack", json=body)
            if response.status_code == 200:
                return time.monotonic()
            assert (response.status_code, response.headers["retry-after"]) == (503, "1")
            await asyncio.sleep(0.05)


async def asked_again(there: Room, chat: str) -> float:
    """When the model was asked with the result."""
    async with asyncio.timeout(WITHIN_SEC):
        # the notes are written by other processes: there is no event to wait for
        while len(at := there.asked_at(chat)) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    return at[1]


@requirement("postgres:woken")
@pytest.mark.parametrize("fault", ["ended", "ended and kept away", "half-open"])
async def test_a_held_run_is_woken_by_the_look_at_the_record_when_its_worker_gets_no_notification(
    cluster: Cluster, tmp_path: Path, fault: str
) -> None:
    schema = "listen_" + fault.replace(" ", "_").replace("-", "_")
    async with FaultProxy(("127.0.0.1", cluster.port)) as line:
        through, direct = cluster.address(schema, port=line.port), cluster.address(schema)
        async with workers(tmp_path, [through, direct]) as [one, other]:
            # both have the connections that they need
            await asyncio.gather(parked(one, ["first"]), parked(other, ["second"]))

            async def wake(number: int) -> float:
                chat = f"chat-{number}"
                return await woken_after(chat, one, other, deafened(cluster, line, fault))

            await kept(f"with the listener {fault}, an ack on the other worker wakes after", WAKE_SEC, wake)


async def woken_after(chat: str, one: Room, other: Room, deaf: AbstractAsyncContextManager[None]) -> float:
    async with Page(one.http, chat, wait="hold").saying("open oslo") as live:
        await live.until("tool-output-available")
        call = live.turn.of("tool-input-available")[-1]["toolCallId"]
        async with deaf:
            answered_at = await accepted(other, call)
            woken_at = await asked_again(one, chat)
        turn = await live.rest()
    assert turn.finish == "stop", "its own stream goes on: only the listener was hit"
    return woken_at - answered_at


@asynccontextmanager
async def deafened(cluster: Cluster, line: FaultProxy, fault: str) -> AsyncIterator[None]:
    """The connection that listens through this line is lost, and no other."""
    base = cluster.address().partition("?")[0]
    beside = await connect(parse_address(base.replace("/postgres", "/template1")))
    ports = line.ports
    found = [row for row in await beside.fetch(LISTENERS, LISTENER) if row[1] in ports]
    [(pid, port)] = found
    assert isinstance(port, int)
    try:
        if fault == "half-open":
            assert line.half_open(port) == 1
        if fault == "ended and kept away":
            # who is connected stays so: the worker can read, and cannot listen again
            await beside.execute("ALTER DATABASE postgres ALLOW_CONNECTIONS false")
        if fault != "half-open":
            await beside.fetch("SELECT pg_terminate_backend($1)", pid)
        yield
    finally:
        await beside.execute("ALTER DATABASE postgres ALLOW_CONNECTIONS true")
        await beside.close()


@requirement("postgres:recovers")
async def test_tools_that_run_during_a_long_outage_of_the_database_are_not_taken_over(tmp_path: Path) -> None:
    lease_sec = 3.0
    with running_cluster() as own:
        stores, lease = [own.address("leases")] * 2, {"FARHAND_TIMEOUTS__LEASE": str(lease_sec)}
        async with AsyncExitStack() as stack:
            both = await stack.enter_async_context(workers(tmp_path, stores, settings=lease))
            chats = list(zip(both, ["c0", "c1"], strict=True))
            for worker, chat in chats:
                await started(stack, worker, "charge", chat)
            await both[0].until_executed("charge", times=len(chats))
            await asyncio.to_thread(own.stop)
            # every lease expires
            await asyncio.sleep(2 * lease_sec)
            await asyncio.to_thread(own.start)
            # each worker sweeps more than once after it trusts leases again
            await asyncio.sleep(2 * lease_sec)
            for worker, chat in chats:
                worker.open_gate(chat)
            for worker, chat in chats:
                assert '{"charged"' in (await ended(worker, chat)).text
            assert set(Counter(both[0].executions).values()) == {1}, "no tool twice"


@tool
async def asks(question: str) -> str:
    """Ask the user from a tool.

    Args:
        question: What to ask.
    """
    return str(await ask("open_page", {"address": question}))


@requirement("postgres:recovers")
async def test_programs_and_tools_that_wait_for_answers_still_wait_after_a_restart_of_the_database() -> None:
    with running_cluster() as own:
        async with create_app(Toolbox(open_page, asks), store=own.address("waiting")) as hands:
            callers = [
                asyncio.create_task(hands.call("open_page", {"address": "a"}, thread="t1")),
                asyncio.create_task(hands.call("open_page", {"address": "b"}, thread="t2", key="b")),
                asyncio.create_task(hands.call("asks", {"question": "c"}, thread="t3", key="c")),
            ]
            asked = await waiting_questions(hands, len(callers))
            await asyncio.to_thread(own.stop)
            # each looks at the record again and again
            done, _ = await asyncio.wait(callers, timeout=3)
            assert not done
            await asyncio.to_thread(own.start)
            for call_id in asked:
                await settled(hands, Result(call_id=call_id, outcome=Success(SEEN)))
            async with asyncio.timeout(WITHIN_SEC):
                assert await asyncio.gather(*callers) == [Success(SEEN), Success(SEEN), Success(str(SEEN))]


async def waiting_questions(hands: App, number: int) -> list[str]:
    async with asyncio.timeout(WITHIN_SEC):
        while True:
            asked = [call.call_id for call in await hands.open_calls() if call.tool == "open_page"]
            if len(asked) == number:
                return asked
            await asyncio.sleep(0.02)


async def settled(hands: App, result: Result) -> None:
    async with asyncio.timeout(WITHIN_SEC):
        while True:
            try:
                assert await hands.service.desk.settle(LOCAL, result) == Accepted()
            except StoreDown:
                await asyncio.sleep(0.05)
            else:
                return
