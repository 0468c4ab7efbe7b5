"""Tests that every framework's bridge passes: `class TestHold(HoldLaws): loop_class = …`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import ClassVar

import pytest

from farhand import Answer
from farhand.core.call import Call
from farhand.core.principal import LOCAL
from tests.frameworks.loop import CHARGE, OPEN, PAY, QUICK, Ask, Loop, note_charges
from tests.frameworks.processes import run_to_end, run_until
from tests.frameworks.stage import PATIENCE_SEC, YES, Stage
from tests.requirement import requirement

NO = Answer(approved=False, reason="too much")
DENIED = "{failed}The user denied this call; it was not executed. They gave this reason: too much"
EDITED = 'The user edited the input before approving it, to {{"amount":2}}.\npaid 2'
LATE = "{failed}Nobody answered within 1 s. This call has no result."
VIEW = {"viewKey": "v1"}


class Laws:
    loop_class: ClassVar[type[Loop]]

    def told(self, text: str) -> str:
        return text.format(failed=self.loop_class.failed)


class HoldLaws(Laws):
    """While the framework's run waits."""

    def holding(self, stage: Stage, *steps: list[Ask]) -> Loop:
        return self.loop_class(stage.hands, stage.effects.parent, steps)

    @requirement("bridges:tools")
    async def test_a_frontend_call_is_answered_by_a_page(self, stage: Stage) -> None:
        async with self.holding(stage, [OPEN]) as loop, asyncio.TaskGroup() as group:
            run = group.create_task(loop.run())
            [call] = await stage.open_calls()
            assert call.thread_id == "t"
            await stage.answer(call, VIEW)
        assert run.result() == '{"viewKey":"v1"}'

    @pytest.mark.parametrize(
        ("answer", "told", "paid"),
        [
            (YES, "paid 3", ["paid 3"]),
            (NO, DENIED, []),
            (Answer(approved=True, input={"amount": 2}), EDITED, ["paid 2"]),
        ],
        ids=["yes", "no", "edited"],
    )
    @requirement("bridges:approval")
    async def test_the_model_is_told_what_the_person_decided(
        self, stage: Stage, answer: Answer, told: str, paid: list[str]
    ) -> None:
        async with self.holding(stage, [PAY]) as loop, asyncio.TaskGroup() as group:
            run = group.create_task(loop.run())
            await stage.approve_next(answer)
        assert run.result() == self.told(told)
        assert stage.paid == paid

    @requirement("bridges:deadline")
    async def test_a_deadline_is_told_to_the_model_in_words(self, stage: Stage) -> None:
        async with self.holding(stage, [QUICK]) as loop:
            assert await loop.run() == self.told(LATE)

    @requirement("bridges:deadline")
    async def test_bad_input_goes_back_to_the_model_before_anyone_is_asked(self, stage: Stage) -> None:
        async with self.holding(stage, [Ask("pay", {"amount": "much"}, "call_0")]) as loop:
            told = await loop.run()
        assert told is not None
        assert told.startswith(self.loop_class.failed)
        assert "amount" in told
        assert await stage.hands.service.log.open_calls(LOCAL) == []

    async def test_two_calls_of_one_step_wait_side_by_side_and_keep_their_results(self, stage: Stage) -> None:
        async with self.holding(stage, [PAY, OPEN]) as loop, asyncio.TaskGroup() as group:
            run = group.create_task(loop.run())
            pay, page = await stage.open_calls(2)
            await stage.answer(page, VIEW)
            await stage.approve(pay)
        assert run.result() == 'paid 3 | {"viewKey":"v1"}'

    @requirement("bridges:cancel")
    async def test_a_cancelled_run_cancels_its_held_call(self, stage: Stage) -> None:
        async with self.holding(stage, [PAY]) as loop:
            run = asyncio.create_task(loop.run())
            [call] = await stage.open_calls()
            run.cancel()
            with pytest.raises(asyncio.CancelledError):
                await run
        await stage.no_open_call()
        settled = await stage.hands.service.log.get_call(call.owner, call.call_id)
        assert settled is not None
        assert "the run that asked for it was cancelled" in repr(settled.outcome)
        assert stage.paid == []

    @requirement("bridges:once")
    @pytest.mark.timeout(180)
    async def test_two_hundred_runs_at_once_each_get_their_own_answer(self, stage: Stage) -> None:
        async def one(number: int) -> str | None:
            async with self.holding(stage, [Ask("pay", {"amount": number}, "call_0")]) as loop:
                return await loop.run(f"t{number}")

        async with asyncio.timeout(5 * PATIENCE_SEC), asyncio.TaskGroup() as group:
            runs = [group.create_task(one(number)) for number in range(200)]
            await stage.approve_next(count=200)
        assert [run.result() for run in runs] == [f"paid {number}" for number in range(200)]
        assert len(stage.paid) == 200

    @requirement("bridges:approved")
    async def test_a_tool_of_the_framework_s_own_runs_behind_approval(self, stage: Stage) -> None:
        own = self.holding(stage, [CHARGE]).charging(note_charges(stage.effects))
        async with own as loop, asyncio.TaskGroup() as group:
            run = group.create_task(loop.run())
            [call] = await stage.open_calls()
            assert stage.paid == []
            await stage.approve(call)
        assert run.result() == "charged 3"
        assert stage.paid == ["charged 3"]


class ParkLaws(Laws):
    """While the framework's run is paused, by its own means."""

    def parking(self, stage: Stage, *steps: list[Ask], hold_for: float = 0.05) -> Loop:
        return self.loop_class(stage.hands, stage.effects.parent, steps, hold_for=hold_for)

    async def race(self, loop: Loop) -> list[str]:
        """What the model is told by two resumes at once; some frameworks end one of them with an error."""

        async def resume() -> list[str]:
            try:
                return [await loop.finish()]
            except self.loop_class.race_is_lost:
                return []

        return [told for both in await asyncio.gather(resume(), resume()) for told in both]

    async def test_a_call_that_is_answered_in_time_pauses_nothing(self, stage: Stage) -> None:
        parking = self.parking(stage, [PAY], [OPEN], hold_for=PATIENCE_SEC)
        async with parking as loop, asyncio.TaskGroup() as group:
            run = group.create_task(loop.run())
            await stage.approve_next()
            [page] = await stage.open_calls()
            await stage.answer(page, VIEW)
        assert run.result() == 'paid 3 | {"viewKey":"v1"}'

    @pytest.mark.parametrize(("answer", "told"), [(YES, "paid 3"), (NO, DENIED)], ids=["yes", "no"])
    @requirement("bridges:park")
    async def test_a_call_is_answered_while_nobody_runs_and_the_resumed_run_is_told(
        self, stage: Stage, answer: Answer, told: str
    ) -> None:
        async with self.parking(stage, [PAY]) as loop:
            assert await loop.run() is None
            await stage.approve_next(answer)
            await stage.no_open_call()
            assert await loop.resume() == self.told(told)

    @requirement("bridges:deadline")
    async def test_a_deadline_that_passes_while_nobody_runs_is_told_in_words(self, stage: Stage) -> None:
        async with self.parking(stage, [QUICK]) as loop:
            assert await loop.run() is None
            await stage.no_open_call()
            assert await loop.resume() == self.told(LATE)

    @requirement("bridges:park")
    async def test_a_run_that_is_resumed_early_waits_for_all_its_calls(self, stage: Stage) -> None:
        async with self.parking(stage, [PAY, OPEN]) as loop:
            assert await loop.run() is None
            async with asyncio.TaskGroup() as group:
                resumed = group.create_task(loop.finish())
                pay, page = await stage.open_calls(2)
                await stage.approve(pay)
                await stage.answer(page, VIEW)
            assert resumed.result() == 'paid 3 | {"viewKey":"v1"}'

    async def test_one_call_of_a_step_is_answered_in_time_and_the_other_later(self, stage: Stage) -> None:
        async with self.parking(stage, [PAY, OPEN], hold_for=1.0) as loop:
            async with asyncio.TaskGroup() as group:
                run = group.create_task(loop.run())
                _, page = await stage.open_calls(2)
                await stage.answer(page, VIEW)
            assert run.result() is None
            await stage.approve_next()
            # some frameworks tell the model in the order in which they got the results
            assert sorted((await loop.finish()).split(" | ")) == ["paid 3", '{"viewKey":"v1"}']

    async def test_each_step_of_a_run_can_be_parked(self, stage: Stage) -> None:
        async with self.parking(stage, [PAY], [OPEN]) as loop:
            assert await loop.run() is None
            await stage.approve_next()
            await stage.no_open_call()
            assert await loop.resume() is None
            [page] = await stage.open_calls()
            await stage.answer(page, VIEW)
            assert await loop.resume() == 'paid 3 | {"viewKey":"v1"}'

    @requirement("bridges:once")
    async def test_two_resumes_race_and_the_tool_runs_once(self, stage: Stage) -> None:
        async with self.parking(stage, [PAY]) as loop:
            assert await loop.run() is None
            async with asyncio.TaskGroup() as group:
                told = group.create_task(self.race(loop))
                await stage.approve_next()
        assert set(told.result()) == {"paid 3"}
        assert stage.paid == ["paid 3"]

    @requirement("bridges:once")
    async def test_an_own_tool_behind_approval_runs_once_when_two_resumes_race(self, stage: Stage) -> None:
        own = self.parking(stage, [CHARGE]).charging(note_charges(stage.effects))
        async with own as loop:
            assert await loop.run() is None
            await stage.approve_next()
            assert set(await self.race(loop)) == {"charged 3"}
        assert stage.paid == ["charged 3"]

    @requirement("bridges:cancel")
    async def test_a_parked_call_is_cancelled_by_its_key(self, stage: Stage) -> None:
        async with self.parking(stage, [PAY]) as loop:
            assert await loop.run() is None
            [call] = await stage.open_calls()
            assert await stage.hands.cancel(key=key_of(call))
            told = self.told("{failed}This call was cancelled and has no result: cancelled by the program.")
            assert await loop.resume() == told
        assert stage.paid == []

    @requirement("bridges:restart")
    async def test_a_parked_call_survives_the_death_of_its_process(self, tmp_path: Path) -> None:
        program = "tests.frameworks.program", self.loop_class.__module__.split(".")[-2], str(tmp_path)
        await run_until("parked", *program, "park")
        async with Stage(f"sqlite:///{tmp_path}/hands.db", tmp_path) as stage:
            await stage.approve_next()
            await stage.no_open_call()
        assert await run_to_end(*program, "resume") == "paid 3"
        assert stage.paid == ["paid 3"]


class RepeatedIdLaws(Laws):
    """Where the framework has more than the provider's id of a call."""

    @requirement("bridges:once")
    async def test_a_provider_may_repeat_its_ids_in_every_step(self, stage: Stage) -> None:
        steps = [[Ask("pay", {"amount": amount}, "call_0")] for amount in (1, 2, 2)]
        loop = self.loop_class(stage.hands, stage.effects.parent, steps)
        async with loop, asyncio.TaskGroup() as group:
            run = group.create_task(loop.run())
            for _ in steps:
                await stage.approve_next()
        assert run.result() == "paid 1 | paid 2 | paid 2"
        assert stage.paid == ["paid 1", "paid 2", "paid 2"]

    @requirement("bridges:once")
    async def test_parked_steps_with_the_same_id_of_a_provider_are_told_apart(self, stage: Stage) -> None:
        steps = [[Ask("pay", {"amount": amount}, "call_0")] for amount in (1, 2, 2)]
        async with self.loop_class(stage.hands, stage.effects.parent, steps, hold_for=0.05) as loop:
            told = await loop.run()
            for _ in steps:
                assert told is None
                await stage.approve_next()
                await stage.no_open_call()
                told = await loop.resume()
        assert told == "paid 1 | paid 2 | paid 2"
        assert stage.paid == ["paid 1", "paid 2", "paid 2"]


def key_of(call: Call) -> str:
    assert call.request is not None
    assert call.request.key is not None
    return call.request.key
