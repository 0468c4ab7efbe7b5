"""Programs with their own loops: a keyed call has one effect, whatever is killed, and all callers get the
same outcome.

On a file, where one program starts after the other, and on a database, where several run at once. Effects are
counted in a file."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fork_server import ForkedProcess, ForkServer, own_fork_server
from tests.postgres import Cluster
from tests.process import environment
from tests.requirement import requirement

pytestmark = [pytest.mark.timeout(120), pytest.mark.chaos]

PAID = '{"kind":"success","output":"paid 3"}'
UNKNOWN = "Whether it took effect is unknown"


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    # wider than elsewhere: the fork server outlives a test, and its loop with it
    return "asyncio"


@pytest.fixture(scope="module")
async def fork_server() -> AsyncIterator[ForkServer]:
    async with own_fork_server("tests.chaos.keyed_program") as started:
        yield started


class Programs:
    """Those of one store, and what they noted."""

    def __init__(self, fork_server: ForkServer, store: str, room: Path) -> None:
        self.is_shared = store.startswith("postgresql")
        self._fork_server = fork_server
        self._store = store
        self._room = room
        self._started: list[ForkedProcess] = []

    async def start(self, what: str, tool: str = "pay", moment: str = "") -> ForkedProcess:
        """Ready for whatever it does; one that calls has opened the call, or found it."""
        program = await self._fork_server.start(
            [self._store, what, tool, moment],
            environment(self._room, {"TEST_ROOM": str(self._room)}),
            self._room / f"program-{len(self._started)}.out",
            main="tests.chaos.keyed_program:main",
        )
        self._started.append(program)
        assert await program.line(0) == "ready"
        if what == "call":
            assert await program.line(1) == "opened"
        return program

    async def outcome(self, tool: str = "pay") -> str:
        """What one more program is told."""
        return await (await self.start("call", tool)).line(2)

    async def kill(self) -> None:
        for program in self._started:
            program.kill()
        for program in self._started:
            await program.wait()

    async def after_a_restart(self, tool: str = "pay") -> str:
        """All are killed, and the outcome is asked for again."""
        await self.kill()
        return await self.outcome(tool)

    def noted(self, book: str) -> list[str]:
        path = self._room / f"{book}.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [str(json.loads(line).get("subject")) for line in lines]


@pytest.fixture(params=["sqlite", "postgres"])
async def programs(
    request: pytest.FixtureRequest, fork_server: ForkServer, tmp_path: Path
) -> AsyncIterator[Programs]:
    store = f"sqlite:///{tmp_path}/hands.db"
    if request.param == "postgres":
        cluster: Cluster = request.getfixturevalue("cluster")
        store = cluster.address()
    made = Programs(fork_server, store, tmp_path)
    yield made
    await made.kill()


@requirement("hands:key-attaches")
async def test_the_opener_is_killed_others_attach_and_the_approval_comes_by_a_third(
    programs: Programs,
) -> None:
    opener = await programs.start("call")
    attached = await programs.start("call") if programs.is_shared else None
    opener.kill()
    await opener.wait()
    if attached is None:
        # a file belongs to one process: the next one has all of them
        attached = await programs.start("attach")
        outcomes = [await attached.line(1), await attached.line(2)]
    else:
        await programs.start("approve")
        outcomes = [await attached.line(2), await programs.outcome()]
    assert outcomes == [PAID] * 2
    assert await programs.after_a_restart() == PAID
    assert len(programs.noted("executions")) == 1


MOMENTS = {
    "before-start": (PAID, 1),
    "before-tool": (UNKNOWN, 0),
    "in-tool": (UNKNOWN, 1),
}


@requirement("hands:key-attaches")
@pytest.mark.parametrize("moment", MOMENTS)
async def test_killed_between_the_approval_and_the_outcome_the_effect_is_there_once_or_the_end_is_unknown(
    programs: Programs, moment: str
) -> None:
    outcome, effects = MOMENTS[moment]
    killed = await programs.start("die", moment=moment)
    assert await killed.wait() == -9
    told = await programs.outcome()
    assert outcome in told
    assert await programs.after_a_restart() == told
    assert len(programs.noted("executions")) == effects


@requirement("hands:key-attaches")
@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_caller_elsewhere_is_told_when_the_one_who_approved_is_killed(
    fork_server: ForkServer, cluster: Cluster, tmp_path: Path, moment: str
) -> None:
    programs = Programs(fork_server, cluster.address(), tmp_path)
    outcome, effects = MOMENTS[moment]
    attached = await programs.start("call")
    killed = await programs.start("die", moment=moment)
    assert await killed.wait() == -9
    told = await attached.line(2)
    assert outcome in told
    assert await programs.after_a_restart() == told
    assert len(programs.noted("executions")) == effects
    await programs.kill()


@requirement("hands:key-attaches")
async def test_an_idempotent_tool_that_was_in_flight_is_run_again_under_the_same_idempotency_key(
    programs: Programs,
) -> None:
    killed = await programs.start("die", "pay_again", "in-tool")
    assert await killed.wait() == -9
    assert await programs.outcome("pay_again") == PAID
    assert await programs.after_a_restart("pay_again") == PAID
    first, second = programs.noted("executions")
    assert first == second, "so that the bank pays once"


@requirement("hands:told-of-settled-calls")
async def test_a_program_that_is_killed_while_it_is_told_is_told_again_and_the_effect_is_there_once(
    programs: Programs,
) -> None:
    killed = await programs.start("die", moment="in-report")
    assert await killed.wait() == -9
    assert len(programs.noted("told")) == 1
    assert await (await programs.start("told")).line(1) == "told"
    assert len(programs.noted("told")) == 2
    assert await programs.after_a_restart() == PAID
    assert len(programs.noted("executions")) == 1
