"""After a crash: what was finished stays finished, what was in flight is not run again, nothing is lost.

A crash is a copy of the file taken in mid-work: exactly what a killed process leaves on the disk.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from farhand.core.call import Call
from farhand.core.decide import runs
from farhand.core.event import (
    CallSettled,
    RunFinished,
    RunParked,
    RunResumed,
    StepDiscarded,
    StepFinished,
    StepStarted,
    TextAdded,
)
from farhand.core.outcome import Cancelled, Failure, Success, TimedOut
from farhand.core.principal import LOCAL
from farhand.core.result import Accepted
from farhand.core.run import Run, RunState
from farhand.core.settings import Settings, Timeouts
from farhand.eventlog.log import EventLog
from farhand.models.scripted import Ask, Moment, Say, Step
from farhand.models.scripted.model import Script
from farhand.store.open import open_store
from farhand.testing import FakeClock
from farhand.tools.declared import DeclaredTool
from farhand.tools.decorate import tool
from tests.requirement import requirement
from tests.unit.agent.conftest import MakeStage
from tests.unit.agent.hands import add, ask_text, open_url
from tests.unit.agent.stage import THREAD, YES, Stage, comes_true, kinds, text_in, the

TURNS = Settings(timeouts=Timeouts(hold_for=0.0))
OPEN = Ask("open_url", {"url": "https://example.org"})


class Machine:
    """One server after another on what the last one left on the disk."""

    def __init__(self, folder: Path, clock: FakeClock) -> None:
        self.clock = clock
        self.settings = TURNS
        self._folder = folder
        self._stages: list[Stage] = []

    async def boot(self, script: Script, *tools: object) -> Stage:
        """Starts on the disk as it is at this moment."""
        number = len(self._stages)
        for suffix in ("", "-wal"):
            left = self._folder / f"{number - 1}.db{suffix}"
            if left.exists():
                shutil.copy(left, self._folder / f"{number}.db{suffix}")
        store = await open_store(f"sqlite:///{self._folder}/{number}.db", self.clock)
        on = Stage(store, self.clock, script, *tools, settings=self.settings)
        self._stages.append(on)
        await on.service.open()
        return on

    async def close(self) -> None:
        await self._stages[-1].check()
        for on in self._stages:
            await on.service.close()


class Work:
    """A tool that works until it is told to end, and counts how often it was begun."""

    def __init__(self, name: str = "work", *, idempotent: bool = False) -> None:
        self.begun = 0
        self._name = name
        self.may_end = asyncio.Event()
        self._started = asyncio.Event()
        self._idempotent = idempotent

    @property
    def tool(self) -> DeclaredTool[[], object]:
        @tool(name=self._name, idempotent=self._idempotent)
        async def work() -> str:
            """Work until told."""
            self.begun += 1
            self._started.set()
            await self.may_end.wait()
            return "worked"

        return work

    async def begun_twice(self) -> bool:
        return self.begun == 2

    async def in_flight(self) -> None:
        async with asyncio.timeout(10):
            await self._started.wait()


@pytest.fixture
async def machine(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Machine]:
    made = Machine(tmp_path, clock)
    yield made
    await made.close()


def asking(*steps: Step) -> Script:
    """These steps, then what came back; the same after a crash as before it."""

    def script(moment: Moment) -> Step:
        if moment.steps < len(steps):
            return steps[moment.steps]
        return " ".join(str(each.output) if each.kind == "success" else each.error for each in moment.results)

    return script


@requirement("runs:recovery")
async def test_a_tool_that_was_in_flight_is_not_run_again_and_the_model_is_told(machine: Machine) -> None:
    work = Work()
    before = await machine.boot(asking(Ask("work")), work.tool)
    run = await before.say("work")
    await work.in_flight()
    after = await machine.boot(asking(Ask("work")), work.tool)
    text = text_in(await after.told(run, RunFinished))
    assert text == (
        "The server stopped while this tool was running. "
        "Whether it took effect is unknown; it was not run again."
    )
    assert work.begun == 1


@requirement("runs:recovery")
async def test_a_tool_declared_idempotent_is_run_again(machine: Machine) -> None:
    work = Work(idempotent=True)
    before = await machine.boot(asking(Ask("work")), work.tool)
    run = await before.say("work")
    await work.in_flight()
    after = await machine.boot(asking(Ask("work")), work.tool)
    await comes_true(work.begun_twice)
    work.may_end.set()
    assert text_in(await after.told(run, RunFinished)) == "worked"
    assert work.begun == 2


@requirement("runs:recovery")
async def test_a_tool_in_flight_is_told_as_unknown_however_long_the_server_was_away(
    machine: Machine,
) -> None:
    work = Work()
    before = await machine.boot(asking(Ask("work")), work.tool)
    run = await before.say("work")
    await work.in_flight()
    machine.clock.advance(24 * 3600)
    after = await machine.boot(asking(Ask("work")), work.tool)
    assert "unknown" in text_in(await after.told(run, RunFinished))
    assert work.begun == 1


@requirement("runs:recovery")
async def test_a_tool_that_is_run_again_has_its_whole_time_however_long_the_server_was_away(
    machine: Machine,
) -> None:
    work = Work(idempotent=True)
    before = await machine.boot(asking(Ask("work")), work.tool)
    run = await before.say("work")
    await work.in_flight()
    machine.clock.advance(24 * 3600)
    after = await machine.boot(asking(Ask("work")), work.tool)
    await comes_true(work.begun_twice)
    assert await after.service.deadlines.sweep(after.service.desk) == 0
    work.may_end.set()
    assert text_in(await after.told(run, RunFinished)) == "worked"


@requirement("runs:recovery")
async def test_a_finished_tool_is_never_run_again(machine: Machine) -> None:
    work, quick = Work(), Work("quick")
    quick.may_end.set()
    script = asking([Ask("quick"), Ask("work")])
    before = await machine.boot(script, quick.tool, work.tool)
    run = await before.say("work")
    await before.told(run, CallSettled)
    await work.in_flight()
    after = await machine.boot(script, quick.tool, work.tool)
    assert text_in(await after.told(run, RunFinished)).startswith("worked ")
    assert (quick.begun, work.begun) == (1, 1)


@requirement("runs:recovery")
async def test_results_that_no_step_has_told_yet_reach_the_model_after_a_crash(machine: Machine) -> None:
    script = asking(Ask("add", {"a": 1, "b": 2}), [Say(["Half"]), Say(" never", delay=60)])
    before = await machine.boot(script, add)
    run = await before.say("add")
    await before.told(run, TextAdded)
    after = await machine.boot(asking(Ask("add", {"a": 1, "b": 2})), add)
    assert text_in(await after.told(run, RunFinished)) == "3"
    assert await after.outcomes(run) == [Success(3)]


@requirement("runs:recovery")
@pytest.mark.parametrize("hold_for", [0.0, 60.0])
async def test_a_waiting_run_outlives_the_server_and_continues_with_its_result(
    machine: Machine, hold_for: float
) -> None:
    before = await machine.boot(asking(OPEN), open_url)
    run = await before.say("open it", hold_for=hold_for)
    await before.told(run, RunParked if hold_for == 0 else StepFinished)
    after = await machine.boot(asking(OPEN), open_url)
    await after.answer(await after.open_call(), Success({"viewKey": "v1"}))
    assert text_in(await after.told(run, RunFinished)) == "{'viewKey': 'v1'}"
    assert len(after.model.prompts) == 1


@requirement("runs:recovery")
async def test_a_result_that_was_accepted_just_before_the_crash_is_not_lost(machine: Machine) -> None:
    before = await machine.boot(asking(OPEN, Say("never", delay=60)), open_url)
    run = await before.say("open it")
    await before.told(run)
    await before.answer(await before.open_call(), Success({"viewKey": "v1"}))
    after = await machine.boot(asking(OPEN), open_url)
    assert text_in(await after.told(run, RunFinished)) == "{'viewKey': 'v1'}"


@requirement("runs:recovery")
async def test_an_answer_cut_in_mid_word_is_discarded_and_asked_again(machine: Machine) -> None:
    before = await machine.boot(asking([Say(["Half an ans"]), Say("wer", delay=60)]))
    run = await before.say("speak")
    heard = await before.heard(run, TextAdded)
    await _journalled(before, TextAdded)
    after = await machine.boot(asking("A whole answer."))
    rest = await after.told(run, RunFinished, after=heard[-1].end)
    assert kinds(rest)[:3] == ["StepDiscarded", "RunResumed", "StepStarted"]
    assert text_in(rest) == "A whole answer."
    assert the(StepDiscarded, rest).step == 1


@requirement("runs:recovery")
async def test_a_replay_leaves_out_what_was_discarded(machine: Machine) -> None:
    before = await machine.boot(asking([Say(["Half an ans"]), Say("wer", delay=60)]))
    run = await before.say("speak")
    await _journalled(before, TextAdded)
    after = await machine.boot(asking("A whole answer."))
    await after.told(run, RunFinished)
    replay = await after.told(run, RunFinished)
    assert text_in(replay) == "A whole answer."
    assert not any(isinstance(event, StepDiscarded) for event in replay)
    assert [event.step for event in replay if isinstance(event, StepStarted)] == [1]


@requirement("runs:recovery")
async def test_a_server_is_ready_only_when_what_a_crash_left_is_taken_up(machine: Machine) -> None:
    before = await machine.boot(asking([Say(["Half an ans"]), Say("wer", delay=60)]))
    run = await before.say("speak")
    await _journalled(before, TextAdded)
    after = await machine.boot(asking("A whole answer."))
    # the first reader may come at once, and must not be told what was cut
    assert StepDiscarded(1) in await after.journal(run)
    await after.told(run, RunFinished)


@requirement("runs:recovery")
async def test_a_crash_in_the_middle_of_a_recovery_is_recovered_from(machine: Machine) -> None:
    before = await machine.boot(asking([Say(["Half an ans"]), Say("wer", delay=60)]))
    run = await before.say("speak")
    await _journalled(before, TextAdded)
    # what a server leaves that dies right after it claimed the run
    assert await _claim(EventLog(before.store), run) == 2
    after = await machine.boot(asking("A whole answer."))
    await after.told(run, RunFinished)
    assert text_in(await after.told(run, RunFinished)) == "A whole answer."


@requirement("runs:recovery")
async def test_an_approval_just_before_the_crash_still_runs_the_tool_once(machine: Machine) -> None:
    deleted: list[str] = []

    @tool(needs_approval=True)
    def delete_file(path: str) -> str:
        """Delete a file.

        Args:
            path: Which.
        """
        deleted.append(path)
        return f"deleted {path}"

    script = asking([Ask("delete_file", {"path": "a.txt"}), Ask("ask_text", {"question": "?"})])
    before = await machine.boot(script, delete_file, ask_text)
    run = await before.say("delete")
    await before.told(run)
    # the crash is between the approval and whoever acts on it
    before.service.worker.stop()
    deleting = await before.open_call("delete_file")
    await before.decide(deleting, YES)
    after = await machine.boot(script, delete_file, ask_text)
    await comes_true(lambda: _has_ended(after, deleting))
    assert deleted == ["a.txt"], "though the other call of the step is open"
    await after.answer(await after.open_call("ask_text"), Success("go"))
    assert text_in(await after.told(run, RunFinished)) == "deleted a.txt go"
    assert deleted == ["a.txt"]


async def _has_ended(on: Stage, call: Call) -> bool:
    return call.call_id not in [each.call_id for each in await on.log.open_calls(LOCAL, THREAD)]


@requirement("runs:recovery")
async def test_a_deadline_that_passed_while_the_server_was_away_lets_the_run_continue(
    machine: Machine,
) -> None:
    before = await machine.boot(asking(Ask("ask_text", {"question": "?"})), ask_text)
    run = await before.say("ask")
    await before.told(run)
    machine.clock.advance(3_600)
    after = await machine.boot(asking(Ask("ask_text", {"question": "?"})), ask_text)
    assert "timed out" in text_in(await after.told(run, RunFinished))
    assert await after.outcomes(run) == [TimedOut(5.0)]


@requirement("runs:recovery")
async def test_a_run_that_a_crash_left_behind_can_be_stopped(machine: Machine) -> None:
    work = Work(idempotent=True)
    before = await machine.boot(asking(Ask("work")), work.tool)
    run = await before.say("work")
    await work.in_flight()
    after = await machine.boot(asking(Ask("work")), work.tool)
    assert await after.service.stop(LOCAL, THREAD, "stopped by the user")
    assert (await after.stored(run)).state is RunState.STOPPED
    assert await after.outcomes(run) == [Cancelled("stopped by the user")]


@requirement("runs:recovery")
async def test_a_tool_that_is_gone_after_the_restart_is_a_failure(machine: Machine) -> None:
    work = Work(idempotent=True)
    before = await machine.boot(asking(Ask("work")), work.tool)
    run = await before.say("work")
    await work.in_flight()
    after = await machine.boot(asking(Ask("work")))
    await after.told(run, RunFinished)
    assert isinstance((await after.outcomes(run))[0], Failure)


@requirement("runs:recovery")
async def test_a_run_that_has_ended_is_left_alone_by_a_restart(machine: Machine) -> None:
    before = await machine.boot(asking("Hello."))
    run = await before.say("hi")
    await before.told(run)
    after = await machine.boot(asking("Never."))
    assert await after.service.worker.sweep() == 0
    assert after.model.prompts == []


async def _journalled(on: Stage, kind: type[TextAdded]) -> None:
    """Until the journal has it: only that outlives a crash."""
    run = await on.service.last_run(LOCAL, THREAD)

    async def stored() -> bool:
        return any(isinstance(event, kind) for event in await on.journal(run))

    await comes_true(stored)


@requirement("streams:takeover")
async def test_a_run_that_continued_since_it_was_found_parked_is_not_claimed_as_it_was(
    stage: MakeStage,
) -> None:
    on = await stage(asking(OPEN), open_url)
    run = await on.say("open it")
    await on.told(run)
    found = await on.stored(run)
    # another worker answers, continues with it, says something and is gone
    on.service.worker.stop()
    await asyncio.wait([_serving(on)])
    await on.answer(await on.open_call(), Success({"viewKey": "v1"}))
    assert await _claim(on.log, found) == 2
    words = (StepStarted(2), TextAdded(0, "Half an ans"))
    seq = (await on.stored(run)).last_seq
    await on.log.decide(LOCAL, THREAD, lambda thread, now: runs.write(thread, 2, words, after=seq))
    assert not await on.service.worker._resume_run(found), "its step is cut, and this worker does not know it"
    assert await on.service.worker._resume_run(await on.stored(run))
    assert (await on.journal(run))[-2:] == [StepDiscarded(2), RunResumed(taken_over=True)]


@requirement("streams:takeover")
async def test_a_run_that_moved_since_it_was_found_without_a_worker_is_looked_at_again(
    stage: MakeStage,
) -> None:
    on = await stage(asking(OPEN), open_url)
    run = await on.say("open it", hold_for=60.0)
    await on.told(run, StepFinished)
    on.service.worker.stop()
    await asyncio.wait([_serving(on)])
    await on.store.renew(on.service.worker.name, 0.0)
    [found] = await on.store.claimable(limit=10)
    call = await on.open_call()
    assert await on.service.desk.take(LOCAL, call.call_id, "tab") == Accepted()
    assert not await on.service.worker._resume_abandoned(found)
    [now] = await on.store.claimable(limit=10)
    assert await on.service.worker._resume_abandoned(now)
    assert (await on.stored(run)).fence == 2


async def _claim(eventlog: EventLog, run: Run) -> int | None:
    return await eventlog.decide(
        run.owner,
        run.thread_id,
        lambda thread, now: runs.claim(
            thread, run.run_id, run.fence, lambda call: False, now=now, timeouts=TURNS.timeouts
        ),
    )


def _serving(on: Stage) -> asyncio.Task[None]:
    assert on.service._serving is not None
    return on.service._serving
