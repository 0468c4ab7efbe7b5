"""A suspended worker does not hold up notifications, and receives them again when it continues."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from farhand.store.postgres.connection import Connection, connect, parse_address
from farhand.store.postgres.notify import LISTENER
from tests.chaos.test_database_lost import accepted, asked_again
from tests.chaos.workers import workers
from tests.faces.ui_stream.page import Page
from tests.postgres import Cluster, running_cluster
from tests.unit.agent.stage import comes_true

WITHIN_SEC = 50.0
ALL = "SELECT pid FROM pg_stat_activity WHERE application_name = $1"
WAITED_FOR = f"{ALL} AND wait_event = 'ClientWrite'"
# from a sender that has nothing to say: long enough to fill what the network keeps for the stopped one
FLOOD = """
    SELECT pg_notify($1, '["' || repeat('x', 7000) || note || '",[]]') FROM generate_series(1, 300) AS note
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running_cluster() as cluster:
        yield cluster


@pytest.mark.parametrize("by", ["network", "local socket"])
async def test_a_stopped_worker_holds_up_no_hints_and_hears_again_when_it_continues(
    cluster: Cluster, tmp_path: Path, by: str
) -> None:
    schema = "queue_" + by.replace(" ", "_")
    local = f"postgresql://farhand@/postgres?host={cluster.folder}&port={cluster.port}&schema={schema}"
    address = cluster.address(schema) if by == "network" else local
    beside = await connect(parse_address(address))
    async with workers(tmp_path, [address] * 2) as [one, other], asyncio.timeout(WITHIN_SEC):
        before = await until(beside, ALL, 2)
        one.server.signal(signal.SIGSTOP)
        try:
            stuck = await until_waited_for(beside, parse_address(address).channel)
            await until_gone(beside, stuck)
        finally:
            one.server.signal(signal.SIGCONT)
        assert stuck in before
        await until(beside, ALL, 2)
        async with Page(one.http, "chat", wait="hold").saying("open oslo") as live:
            await live.until("tool-output-available")
            call = live.turn.of("tool-input-available")[-1]["toolCallId"]
            await accepted(other, call)
            await asked_again(one, "chat")
            assert (await live.rest()).finish == "stop"
        await beside.fetch(FLOOD, parse_address(address).channel)

        async def is_free() -> bool:
            return bool((await beside.fetch("SELECT pg_notification_queue_usage()"))[0][0] == 0)

        await comes_true(is_free)
    await beside.close()


async def until(beside: Connection, sql: str, count: int) -> list[object]:
    while True:
        found = await beside.fetch(sql, LISTENER)
        if len(found) == count:
            return [row[0] for row in found]
        await asyncio.sleep(0.05)


async def until_waited_for(beside: Connection, channel: str) -> object:
    """The one listener that the database waits for, for longer than a busy one takes."""
    seen: set[object] = set()
    for _ in range(20):
        await beside.fetch(FLOOD, channel)
        await asyncio.sleep(0.05)
        now = {row[0] for row in await beside.fetch(WAITED_FOR, LISTENER)}
        seen = (seen & now) or now
    [stuck] = seen
    return stuck


async def until_gone(beside: Connection, pid: object) -> None:
    while True:
        if all(row[0] != pid for row in await beside.fetch(ALL, LISTENER)):
            return
        await asyncio.sleep(0.1)
