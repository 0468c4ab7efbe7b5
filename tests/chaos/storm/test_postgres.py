"""Random faults on three workers and one database: kills, stops, deployments, restarts and broken
connections.

Clients ask whichever worker they like, and every worker has its own line to the database, which breaks, too.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.chaos.fault_proxy import FaultProxy
from tests.chaos.storm.director import LONGER, SEED, Fault, line_faults
from tests.chaos.storm.fault_run import judge, play
from tests.chaos.storm.servers import deployments, process_faults, servers
from tests.postgres import Cluster, running_cluster
from tests.requirement import requirement

WORKERS = 3


@pytest.mark.storm
@pytest.mark.timeout(1800 * LONGER)
@requirement("chaos:storm")
async def test_nothing_is_lost_doubled_or_untrue_on_three_workers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dice = random.Random(SEED)
    with running_cluster() as cluster:
        async with AsyncExitStack() as stack:
            lines = [
                await stack.enter_async_context(FaultProxy(("127.0.0.1", cluster.port)))
                for _ in range(WORKERS)
            ]
            stores = [cluster.address("storm", port=line.port) for line in lines]
            there = await stack.enter_async_context(servers(stores, tmp_path))
            lanes = [
                line_faults([*there.lines, *lines], dice),
                # longer than a lease: somebody else continues meanwhile
                process_faults(there.each, dice, stopped_for=1.5),
                deployments(there.each, dice),
                [restart_of(cluster)],
            ]
            played = await play(there, lanes, dice)
            assert await there.stop() == [0] * WORKERS
        await judge(played, cluster.address("storm"), tmp_path, capsys)


def restart_of(cluster: Cluster) -> Fault:
    async def restart() -> int:
        await asyncio.to_thread(cluster.restart)
        return 1

    return Fault("database-restart", restart)
