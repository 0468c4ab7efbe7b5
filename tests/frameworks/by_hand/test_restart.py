"""Hand-written loops whose process is killed while a call waits."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.frameworks.processes import run_to_end, run_until
from tests.frameworks.stage import Stage
from tests.requirement import requirement

PROGRAM = "tests.frameworks.by_hand.program"


@requirement("bridges:restart")
@pytest.mark.timeout(120)
@pytest.mark.parametrize("api", ["anthropic", "responses", "chat"])
async def test_a_parked_call_survives_the_death_of_its_process(tmp_path: Path, api: str) -> None:
    await run_until("parked", PROGRAM, str(tmp_path), api, "park")
    async with Stage(f"sqlite:///{tmp_path}/hands.db", tmp_path) as stage:
        await stage.approve_next()
        await stage.no_open_call()
    assert "paid 3" in await run_to_end(PROGRAM, str(tmp_path), api, "resume")
    assert "paid 3" in await run_to_end(PROGRAM, str(tmp_path), api, "resume")
    assert stage.paid == ["paid 3"]
