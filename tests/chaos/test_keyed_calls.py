"""Programs with loops of their own, one database: a keyed call has one effect, whoever is killed."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.postgres import Cluster
from tests.requirement import requirement

pytestmark = [pytest.mark.timeout(120), pytest.mark.chaos]

PAID = '{"kind":"success","output":"paid 3"}'


@asynccontextmanager
async def _program(store: str, what: str, room: Path) -> AsyncIterator[Process]:
    environment = {**os.environ, "TEST_ROOM": str(room)}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.chaos.keyed_program", store, what, stdout=PIPE, env=environment
    )
    try:
        assert await _line(process) == "ready"
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _line(process: Process) -> str:
    assert process.stdout is not None
    async with asyncio.timeout(60):
        return (await process.stdout.readline()).decode().strip()


def _noted(room: Path, name: str) -> int:
    path = room / f"{name}.jsonl"
    return len(path.read_text().splitlines()) if path.exists() else 0


@requirement("hands:key-attaches")
async def test_the_opener_is_killed_another_attaches_and_a_third_says_yes(
    cluster: Cluster, tmp_path: Path
) -> None:
    store = cluster.address("keyed")
    async with _program(store, "call", tmp_path) as opener, _program(store, "call", tmp_path) as attached:
        async with _program(store, "approve", tmp_path) as approver:
            opener.kill()
            await opener.wait()
            assert await _line(approver) == "approved"
            assert await _line(attached) == PAID
        async with _program(store, "call", tmp_path) as again:
            assert await _line(again) == PAID
    assert _noted(tmp_path, "executions") == 1


async def test_all_are_killed_after_the_yes_and_the_program_is_told_after_the_restart(
    cluster: Cluster, tmp_path: Path
) -> None:
    store = cluster.address("keyed_restart")
    async with _program(store, "call", tmp_path), _program(store, "approve", tmp_path) as approver:
        assert await _line(approver) == "approved"
        approver.kill()
        await approver.wait()
    async with _program(store, "call", tmp_path) as again:
        outcome = await _line(again)
    # it may have been in flight at that moment: then it is not run twice, and nobody says that it was paid
    assert outcome == PAID or "is unknown" in outcome
    assert _noted(tmp_path, "executions") <= 1
    async with _program(store, "told", tmp_path) as told:
        if _noted(tmp_path, "told") == 0:
            async with asyncio.timeout(60):
                await told.wait()
    assert _noted(tmp_path, "told") >= 1


@requirement("hands:key-attaches")
async def test_the_only_process_is_killed_between_the_yes_and_the_effect_and_the_key_attaches_again(
    tmp_path: Path,
) -> None:
    store = f"sqlite:///{tmp_path}/hands.db"
    async with _program(store, "die", tmp_path) as program, asyncio.timeout(60):
        await program.wait()
    outcomes = []
    for _ in range(2):
        async with _program(store, "call", tmp_path) as again:
            outcomes.append(await _line(again))
    assert outcomes[0] == outcomes[1]
    # it may have been in flight at that moment: then it is not run twice, and nobody says that it was paid
    assert outcomes[0] == PAID or "is unknown" in outcomes[0]
    assert _noted(tmp_path, "executions") <= 1
    assert (_noted(tmp_path, "executions") == 1) or "is unknown" in outcomes[0]
