"""Approvals before a tool runs, in the loop."""

from __future__ import annotations

import asyncio

import pytest

from farhand.core.approval import Answer
from farhand.core.call import Call, Phase
from farhand.core.event import (
    ApprovalAnswered,
    CallOpened,
    CallSettled,
    CallTaken,
    RunFinished,
    RunParked,
    StepFinished,
)
from farhand.core.outcome import Cancelled, Denied, Failure, Success, TimedOut
from farhand.core.principal import LOCAL
from farhand.core.result import Accepted, Refused, Result
from farhand.core.run import Run
from farhand.core.settings import Settings, Timeouts
from farhand.core.thread import ResultsMessage
from farhand.errors import Busy
from farhand.models.scripted import Ask, Moment, Step
from farhand.testing import FakeClock
from farhand.tools.declared import DeclaredTool
from farhand.tools.decorate import tool
from tests.requirement import requirement
from tests.unit.agent.conftest import MakeStage
from tests.unit.agent.hands import add, take_photo
from tests.unit.agent.stage import NO, PATIENCE_SEC, THREAD, YES, Stage, comes_true, kinds, text_in, the

TURNS = Settings(timeouts=Timeouts(hold_for=0.0))
ALWAYS = Answer(approved=True, scope="thread")
DELETE = Ask("delete_file", {"path": "a.txt"})


class Disk:
    """Remembers what was deleted, as a disk would."""

    def __init__(self) -> None:
        self.deleted: list[str] = []

    @property
    def delete_file(self) -> DeclaredTool[[str], str]:
        @tool(needs_approval=True)
        def delete_file(path: str) -> str:
            """Delete a file.

            Args:
                path: Which.
            """
            self.deleted.append(path)
            return f"deleted {path}"

        return delete_file


@pytest.fixture
def disk() -> Disk:
    return Disk()


async def _asked(stage: MakeStage, disk: Disk, *steps: Step) -> Stage:
    """A stage whose run waits for the approval to delete a.txt."""
    on = await stage([DELETE, *steps, _tell], disk.delete_file, add, take_photo, settings=TURNS)
    assert isinstance((await on.told(await on.say("delete a.txt")))[-1], RunParked)
    return on


async def test_a_tool_that_needs_an_approval_runs_once_after_it(stage: MakeStage, disk: Disk) -> None:
    on = await _asked(stage, disk)
    run = await on.service.last_run(LOCAL, THREAD)
    assert disk.deleted == []
    call = await on.open_call()
    assert await on.decide(call, YES) == Accepted()
    events = await on.told(run, RunFinished)
    assert text_in(events) == "deleted a.txt"
    assert disk.deleted == ["a.txt"]
    assert the(CallOpened, events).phase is Phase.ASKING
    told = [each for each in events if isinstance(each, ApprovalAnswered | CallTaken | CallSettled)]
    assert kinds(told) == ["ApprovalAnswered", "CallTaken", "CallSettled"]


async def test_a_tool_that_was_denied_does_not_run_and_the_model_hears_why(
    stage: MakeStage, disk: Disk
) -> None:
    on = await _asked(stage, disk)
    run = await on.service.last_run(LOCAL, THREAD)
    await on.decide(await on.open_call(), NO)
    assert text_in(await on.told(run, RunFinished)) == "denied: too dear"
    assert disk.deleted == []
    assert await on.outcomes(run) == [Denied("too dear")]


async def test_what_the_person_edited_is_what_runs(stage: MakeStage, disk: Disk) -> None:
    on = await _asked(stage, disk)
    run = await on.service.last_run(LOCAL, THREAD)
    await on.decide(await on.open_call(), Answer(approved=True, input={"path": "b.txt"}))
    assert text_in(await on.told(run, RunFinished)) == "deleted b.txt"
    assert disk.deleted == ["b.txt"]
    # and the model is told so: it would take the file for the one that it named
    told = on.model.prompts[-1].messages[-1]
    assert isinstance(told, ResultsMessage)
    assert [each.input for each in told.results] == [{"path": "b.txt"}]


@requirement("calls:always-in-thread")
async def test_an_approval_for_the_thread_is_not_asked_again_in_it(stage: MakeStage, disk: Disk) -> None:
    on = await _asked(stage, disk, DELETE)
    run = await on.service.last_run(LOCAL, THREAD)
    await on.decide(await on.open_call(), ALWAYS)
    events = await on.told(run, RunFinished)
    assert disk.deleted == ["a.txt", "a.txt"]
    assert [each.phase for each in events if isinstance(each, CallOpened)] == [Phase.ASKING, Phase.TAKEN]


@requirement("calls:always-in-thread")
async def test_an_approval_for_once_is_asked_again(stage: MakeStage, disk: Disk) -> None:
    on = await _asked(stage, disk, DELETE)
    run = await on.service.last_run(LOCAL, THREAD)
    at = await on.position(run)
    await on.decide(await on.open_call(), YES)
    await on.told(run, RunParked, after=at)
    assert (await on.open_call()).phase is Phase.ASKING
    assert disk.deleted == ["a.txt"]


async def test_a_question_that_times_out_is_told_to_the_model(
    stage: MakeStage, disk: Disk, clock: FakeClock
) -> None:
    on = await _asked(stage, disk)
    run = await on.service.last_run(LOCAL, THREAD)
    clock.advance(3 * 24 * 3600)
    await on.service.deadlines.sweep(on.service.desk)
    assert "timed out" in text_in(await on.told(run, RunFinished))
    assert isinstance((await on.outcomes(run))[0], TimedOut)
    assert disk.deleted == []


async def test_an_approved_frontend_tool_then_waits_for_its_far_hand(stage: MakeStage) -> None:
    on = await stage([Ask("take_photo", {"camera": "front"}), _tell], take_photo, settings=TURNS)
    run = await on.say("photo")
    await on.told(run)
    call = await on.open_call()
    early = await on.service.desk.settle(LOCAL, Result(call_id=call.call_id, outcome=Success("x")))
    assert early == Refused("not_approved")
    await on.decide(call, YES)
    assert (await on.stored(run)).parked
    await on.answer(call, Success("a photo"))
    assert text_in(await on.told(run, RunFinished)) == "a photo"


async def test_two_questions_of_one_step_are_answered_one_by_one(stage: MakeStage, disk: Disk) -> None:
    asks = [Ask("delete_file", {"path": path}) for path in ("a.txt", "b.txt")]
    on = await stage([asks, _tell], disk.delete_file, settings=TURNS)
    run = await on.say("delete both")
    await on.told(run)
    first, second = await on.calls(run)
    await on.decide(second, NO)
    await on.decide(first, YES)
    assert text_in(await on.told(run, RunFinished)) == "deleted a.txt denied: too dear"
    assert disk.deleted == ["a.txt"]


async def test_a_step_with_an_approved_tool_and_another_far_hand_waits_for_both(
    stage: MakeStage, disk: Disk
) -> None:
    asks = [DELETE, Ask("take_photo", {"camera": "front"})]
    on = await stage([asks, _tell], disk.delete_file, take_photo, settings=TURNS)
    run = await on.say("both")
    await on.told(run)
    await on.decide(await on.open_call("delete_file"), YES)
    photo = await on.open_call("take_photo")
    await on.decide(photo, YES)
    await on.answer(photo, Success("a photo"))
    assert text_in(await on.told(run, RunFinished)) == "deleted a.txt a photo"
    assert disk.deleted == ["a.txt"]


@requirement("calls:yes-acted-on")
@pytest.mark.parametrize("hold_for", [0.0, 30.0], ids=["parked", "held"])
async def test_an_approved_tool_runs_although_other_calls_of_its_step_are_open(
    stage: MakeStage, disk: Disk, hold_for: float
) -> None:
    asks = [Ask("delete_file", {"path": path}) for path in ("a.txt", "b.txt")]
    on = await stage([[*asks, Ask("take_photo", {"camera": "front"})], _tell], disk.delete_file, take_photo)
    run = await on.say("delete both", hold_for=hold_for)
    await on.told(run, StepFinished if hold_for else RunParked)
    first, second, photo = await on.calls(run)
    await on.decide(second, YES)
    await _settled(on, second)
    assert disk.deleted == ["b.txt"]
    await on.decide(first, YES)
    await _settled(on, first)
    assert disk.deleted == ["b.txt", "a.txt"]
    await comes_true(lambda: _rests(on, run, is_parked=not hold_for))
    assert (await on.open_call("take_photo")).phase is Phase.ASKING
    await on.decide(photo, NO)
    assert text_in(await on.told(run, RunFinished)) == "deleted a.txt deleted b.txt denied: too dear"
    assert disk.deleted == ["b.txt", "a.txt"]


@requirement("calls:yes-acted-on")
async def test_an_approved_tool_has_run_when_the_user_moves_on(stage: MakeStage, disk: Disk) -> None:
    asks = [DELETE, Ask("take_photo", {"camera": "front"})]
    on = await stage([asks, "Fine."], disk.delete_file, take_photo, settings=TURNS)
    run = await on.say("both")
    await on.told(run)
    deleting = await on.open_call("delete_file")
    await on.decide(deleting, YES)
    await _settled(on, deleting)
    await comes_true(lambda: _rests(on, run, is_parked=True))
    following = await on.say("never mind")
    assert text_in(await on.told(following, RunFinished)) == "Fine."
    assert disk.deleted == ["a.txt"]
    assert await on.outcomes(run) == [Success("deleted a.txt"), Cancelled("the user moved on")]


@requirement("calls:yes-acted-on")
async def test_nobody_moves_on_between_an_approval_and_its_effect(stage: MakeStage, disk: Disk) -> None:
    asks = [DELETE, Ask("take_photo", {"camera": "front"})]
    on = await stage([asks, "Fine."], disk.delete_file, take_photo, settings=TURNS)
    run = await on.say("both")
    await on.told(run)
    answered = on.decide(await on.open_call("delete_file"), YES)
    # in the same moment: whichever is first, an accepted yes has its effect
    receipt, moved_on = await asyncio.gather(answered, on.say("never mind"), return_exceptions=True)
    if receipt == Accepted():
        assert isinstance(moved_on, Busy)
        await comes_true(lambda: _was_deleted(disk))
    else:
        assert disk.deleted == []


async def _settled(on: Stage, call: Call) -> None:
    async def is_settled() -> bool:
        return call.call_id not in [each.call_id for each in await on.log.open_calls(LOCAL, THREAD)]

    await comes_true(is_settled)


async def _rests(on: Stage, run: Run, *, is_parked: bool) -> bool:
    now = await on.stored(run)
    return now.waits and now.parked is is_parked


async def _was_deleted(disk: Disk) -> bool:
    return disk.deleted == ["a.txt"]


@requirement("calls:always-in-thread")
async def test_an_approval_for_the_thread_allows_no_other_tool(stage: MakeStage, disk: Disk) -> None:
    on = await _asked(stage, disk, Ask("take_photo", {"camera": "front"}))
    run = await on.service.last_run(LOCAL, THREAD)
    at = await on.position(run)
    await on.decide(await on.open_call(), ALWAYS)
    await on.told(run, RunParked, after=at)
    assert (await on.open_call("take_photo")).phase is Phase.ASKING


@requirement("calls:what-was-approved")
async def test_a_tool_that_changed_since_the_approval_is_not_run(stage: MakeStage, disk: Disk) -> None:
    on = await _asked(stage, disk)
    run = await on.service.last_run(LOCAL, THREAD)

    @tool(needs_approval=True)
    def delete_file(path: str) -> str:
        """Delete a file and everything near it.

        Args:
            path: Which.
        """
        raise AssertionError("nobody approved this")

    on.service.context.toolbox._tools["delete_file"] = delete_file
    await on.decide(await on.open_call(), YES)
    assert "changed" in text_in(await on.told(run, RunFinished))
    assert isinstance((await on.outcomes(run))[0], Failure)


@requirement("calls:what-was-approved")
async def test_a_tool_that_is_gone_since_the_approval_is_not_run(stage: MakeStage, disk: Disk) -> None:
    on = await _asked(stage, disk)
    run = await on.service.last_run(LOCAL, THREAD)
    del on.service.context.toolbox._tools["delete_file"]
    await on.decide(await on.open_call(), YES)
    assert "changed" in text_in(await on.told(run, RunFinished))


async def test_an_approval_that_comes_while_another_tool_runs_is_not_forgotten(
    stage: MakeStage, disk: Disk
) -> None:
    begun, gate = asyncio.Event(), asyncio.Event()

    @tool
    async def slow() -> str:
        """Wait for a gate."""
        begun.set()
        await gate.wait()
        return "slow"

    on = await stage([[Ask("slow", {}), DELETE], _tell], slow, disk.delete_file, settings=TURNS)
    run = await on.say("both")
    async with asyncio.timeout(PATIENCE_SEC):
        await begun.wait()
    assert await on.decide(await on.open_call("delete_file"), YES) == Accepted()
    gate.set()
    assert text_in(await on.told(run, RunFinished)) == "slow deleted a.txt"
    assert disk.deleted == ["a.txt"]


async def test_only_inputs_that_need_an_approval_are_asked_for(stage: MakeStage) -> None:
    @tool(needs_approval=lambda input: input["path"] != "scratch")
    def wipe(path: str) -> str:
        """Wipe a folder.

        Args:
            path: Which.
        """
        return f"wiped {path}"

    asks = [Ask("wipe", {"path": path}) for path in ("scratch", "home")]
    on = await stage([asks, _tell], wipe, settings=TURNS)
    run = await on.say("wipe")
    await on.told(run)
    assert await on.outcomes(run) == [Success("wiped scratch"), None]
    await on.decide(await on.open_call(), NO)
    assert text_in(await on.told(run, RunFinished)) == "wiped scratch denied: too dear"


def _tell(moment: Moment) -> Step:
    return " ".join(str(each.output) if each.kind == "success" else each.error for each in moment.last)
