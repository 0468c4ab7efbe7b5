"""A process that is killed while it writes loses nothing that was confirmed."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

from farhand.core.call import Phase
from farhand.store.base import CallFilter
from farhand.store.sqlite import SqliteStore
from farhand.testing import FakeClock
from farhand.testing.store_laws.fixture import ANN
from tests.requirement import requirement

ANSWERS = 400
WORKERS = 32

WRITE = """
import asyncio, sys
from farhand.store.sqlite import SqliteStore
from farhand.testing import FakeClock
from farhand.testing.store_laws.fixture import StoreFixture

async def work(fixture, thread_id):
    while True:
        call = fixture.new_call(fixture.clock.fresh("call"), thread_id=thread_id)
        await fixture.append(thread_id, calls=(call,), feed=2)
        print("opened", call.call_id, flush=True)
        await fixture.append(thread_id, calls=(fixture.settled(call),), feed=1)
        print("settled", call.call_id, flush=True)

async def main():
    clock = FakeClock()
    fixture = StoreFixture(await SqliteStore.open(sys.argv[1], clock), clock)
    async with asyncio.TaskGroup() as group:
        for no in range(32):
            group.create_task(work(fixture, f"t{no}"))

asyncio.run(main())
"""


FORGET_TO_CLOSE = """
import asyncio, sys
from farhand.store.sqlite import SqliteStore
from farhand.testing import FakeClock
from farhand.testing.store_laws.fixture import StoreFixture

async def main():
    clock = FakeClock()
    fixture = StoreFixture(await SqliteStore.open(sys.argv[1], clock), clock)
    await fixture.append("kept")
    last = asyncio.ensure_future(fixture.append("last"))
    await asyncio.sleep(0)
    last.cancel()

asyncio.run(main())
"""


@requirement("store:kill")
async def test_whatever_was_answered_before_a_kill_is_there_after_it(path: Path, clock: FakeClock) -> None:
    opened, settled = await asyncio.to_thread(_killed_in_mid_work, path)
    assert settled
    store = await SqliteStore.open(str(path), clock)
    for call_id in opened | settled:
        found = await store.find_call(ANN, "call", call_id)
        assert found is not None
        assert call_id not in settled or found.call.phase is Phase.SETTLED

    # what was in progress is there as a whole, or not at all
    entries = rows = calls_open = 0
    for no in range(WORKERS):
        loaded = await store.load(ANN, f"t{no}")
        assert [row.version for row in loaded.rows] == list(range(1, len(loaded.rows) + 1))
        rows += len(loaded.rows)
        calls_open += len(loaded.rows) % 2
        entries += 2 * len(loaded.rows) - len(loaded.rows) // 2
    assert len(await store.open_calls(CallFilter(owner=ANN))) == calls_open
    assert await store.count("open_calls", "acme") == calls_open
    feed = await store.feed(ANN, after=0, limit=100_000)
    assert len(feed) == rows
    assert await store.feed_span(ANN) == (1, entries)
    await store.close()


async def test_a_program_that_forgets_to_close_its_store_ends_and_has_lost_nothing(
    path: Path, clock: FakeClock
) -> None:
    program = await asyncio.create_subprocess_exec(
        sys.executable, "-c", FORGET_TO_CLOSE, str(path), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    async with asyncio.timeout(30):
        _, err = await program.communicate()
    assert (program.returncode, err) == (0, b"")
    store = await SqliteStore.open(str(path), clock)
    assert len((await store.load(ANN, "kept")).rows) == 1
    await store.close()


def _killed_in_mid_work(path: Path) -> tuple[set[str], set[str]]:
    """The calls that the process was told are kept, opened and settled."""
    said: dict[str, set[str]] = {"opened": set(), "settled": set()}
    command = [sys.executable, "-c", WRITE, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        lines = [writer.stdout.readline() for _ in range(ANSWERS)]
        writer.kill()
        # a line that the kill cut short says nothing
        lines += [line for line in writer.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
    for line in lines:
        kind, _, name = line.strip().partition(" ")
        said[kind].add(name)
    return said["opened"], said["settled"]
