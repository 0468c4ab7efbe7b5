"""A DBOS workflow whose step is a keyed call, as `examples/bridges/dbos_workflow.py` has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.frameworks.processes import run_to_end, run_until
from tests.frameworks.stage import Stage
from tests.requirement import requirement

PROGRAM = "examples.bridges.dbos_workflow"


@requirement("bridges:restart")
@pytest.mark.timeout(120)
@pytest.mark.parametrize("is_answered_between", [True, False], ids=["answered-between", "killed-twice"])
async def test_a_step_that_waits_for_a_person_survives_a_kill(
    tmp_path: Path, is_answered_between: bool
) -> None:
    await run_until("waiting", PROGRAM, str(tmp_path), "start")
    stage = Stage(f"sqlite:///{tmp_path}/hands.db", tmp_path)
    if not is_answered_between:
        # DBOS runs the step again, which attaches to the same call
        await run_until("waiting", PROGRAM, str(tmp_path))
    async with stage:
        await stage.approve_next()
        await stage.no_open_call()
    assert await run_to_end(PROGRAM, str(tmp_path)) == "done: paid 3"
    assert stage.paid == ["paid 3"]
