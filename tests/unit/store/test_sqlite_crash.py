"""A process that is killed in mid-work loses nothing that it was told is kept."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

from farhand.core.call import Phase
from farhand.store.sqlite import SqliteStore
from farhand.testing import FakeClock
from farhand.testing.store_laws.given import ANN
from tests.requirement import requirement

ANSWERS = 400

WRITE = """
import asyncio, sys
from farhand.core.event import TextAdded
from farhand.store.base import InsertCall, SwapCall, WriteRun
from farhand.store.sqlite import SqliteStore
from farhand.testing import FakeClock
from farhand.testing.store_laws.given import Given

async def work(given, run):
    told = WriteRun(run_id=run.run_id, events=(TextAdded(0, "x"),))
    while True:
        call = given.new_call(run)
        await given.write(InsertCall(call), told)
        print("opened", call.call_id, flush=True)
        await given.write(SwapCall(call, given.settled(call)), told)
        print("settled", call.call_id, flush=True)

async def main():
    clock = FakeClock()
    given = Given(await SqliteStore.open(sys.argv[1], clock), clock)
    run = await given.run()
    print("run", run.run_id, flush=True)
    async with asyncio.TaskGroup() as group:
        for _ in range(32):
            group.create_task(work(given, run))

asyncio.run(main())
"""


FORGET_TO_CLOSE = """
import asyncio, sys
from farhand.store.base import InsertCall
from farhand.store.sqlite import SqliteStore
from farhand.testing import FakeClock
from farhand.testing.store_laws.given import Given

async def main():
    clock = FakeClock()
    given = Given(await SqliteStore.open(sys.argv[1], clock), clock)
    call = await given.call()
    last = asyncio.ensure_future(given.store.commit(InsertCall(given.new_call())))
    await asyncio.sleep(0)
    last.cancel()
    print(call.call_id)

asyncio.run(main())
"""


@requirement("store:kill")
async def test_whatever_was_answered_before_a_kill_is_there_after_it(path: Path, clock: FakeClock) -> None:
    run_id, opened, settled = _killed_in_mid_work(path)
    store = await SqliteStore.open(str(path), clock)
    for call_id in opened | settled:
        assert await store.get_call(ANN, call_id) is not None
    for call_id in settled:
        call = await store.get_call(ANN, call_id)
        assert call is not None
        assert call.phase is Phase.SETTLED

    # what was under way is there as a whole, or not at all
    run = await store.get_run(ANN, run_id)
    assert run is not None
    assert run.blockers == len(await store.open_calls(ANN))
    entries = await store.events(ANN, run_id, limit=100_000)
    assert [entry.seq for entry in entries] == list(range(1, run.last_seq + 1))
    calls = await store.calls_of(ANN, run_id)
    assert len(entries) == len(calls) + sum(call.phase is Phase.SETTLED for call in calls)
    await store.close()


async def test_a_program_that_forgets_to_close_its_store_ends_and_has_lost_nothing(
    path: Path, clock: FakeClock
) -> None:
    program = await asyncio.create_subprocess_exec(
        sys.executable, "-c", FORGET_TO_CLOSE, str(path), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    async with asyncio.timeout(30):
        out, err = await program.communicate()
    assert (program.returncode, err) == (0, b"")
    store = await SqliteStore.open(str(path), clock)
    assert await store.get_call(ANN, out.decode().strip()) is not None
    await store.close()


def _killed_in_mid_work(path: Path) -> tuple[str, set[str], set[str]]:
    """The run, and what the process had been told is kept."""
    told: dict[str, set[str]] = {"run": set(), "opened": set(), "settled": set()}
    command = [sys.executable, "-c", WRITE, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        for number, line in enumerate(writer.stdout):
            kind, _, name = line.strip().partition(" ")
            told[kind].add(name)
            if number == ANSWERS:
                writer.kill()
                break
        # a line that the kill cut short says nothing
        rest = [line for line in writer.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
    for line in rest:
        kind, _, name = line.strip().partition(" ")
        told[kind].add(name)
    [run_id] = told["run"]
    return run_id, told["opened"], told["settled"]
