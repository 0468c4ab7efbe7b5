"""Random faults on one server with a file: killed and restarted, stopped, and its connections broken."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.chaos.storm.director import LONGER, SEED, line_faults
from tests.chaos.storm.fault_run import judge, play
from tests.chaos.storm.servers import deployments, process_faults, servers
from tests.requirement import requirement


@pytest.mark.storm
@pytest.mark.timeout(900 * LONGER)
@requirement("chaos:storm")
async def test_nothing_is_lost_doubled_or_untrue_on_sqlite(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dice = random.Random(SEED)
    store = f"sqlite:///{tmp_path}/store.db"
    async with servers([store], tmp_path) as there:
        lanes = [
            line_faults(there.lines, dice),
            process_faults(there.each, dice, stopped_for=0.3),
            deployments(there.each, dice),
        ]
        played = await play(there, lanes, dice)
        assert await there.stop() == [0]
    await judge(played, store, tmp_path, capsys)
