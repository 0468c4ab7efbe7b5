"""Threads: another answer, an edited message, a drain, tools that come and go."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from farhand.agent.service import AgentService, Spec
from farhand.agent.start_run import Asker, StartedRun, ThreadPlace, answer_again
from farhand.core.event import CallOpened, RunFinished, RunParked, StepFinished, TextAdded
from farhand.core.outcome import Cancelled, Success
from farhand.core.principal import LOCAL, Owner
from farhand.core.run import RunState
from farhand.core.settings import Settings, Timeouts
from farhand.core.thread import Text, UserMessage, text_of
from farhand.core.tool import Executor, Tool
from farhand.errors import Busy, NotFound
from farhand.models.scripted import Ask, Moment, Say, Step
from farhand.store.base import Append, AppendResult
from farhand.testing import FakeClock
from farhand.tools.toolbox import make_toolbox
from tests.requirement import requirement
from tests.unit.agent.conftest import MakeStage
from tests.unit.agent.hands import add, open_url
from tests.unit.agent.stage import PATIENCE_SEC, THREAD, Stage, text_in, the

pytestmark = pytest.mark.timeout(PATIENCE_SEC)
OPEN = Ask("open_url", {"url": "https://example.org"})


async def _answer_again(on: Stage, instead_of: str | None = None, thread: str = THREAD) -> StartedRun:
    place = ThreadPlace(LOCAL, thread, Asker())
    return await answer_again(on.service.context, place, instead_of=instead_of, hold_for=0.0)


async def _texts(on: Stage) -> list[str]:
    return [text_of(message) for message in await on.messages()]


async def test_another_answer_takes_the_place_of_the_last_one(stage: MakeStage) -> None:
    on = await stage(["First.", "Second."])
    await on.told(await on.say("hi"))
    again = await _answer_again(on)
    assert text_in(await on.told(again.run)) == "Second."
    assert await _texts(on) == ["hi", "Second."]
    assert len(on.model.prompts[1].messages) == 1


@pytest.mark.parametrize("by", ["run", "message"])
async def test_another_answer_to_an_earlier_message_cuts_what_came_after(stage: MakeStage, by: str) -> None:
    on = await stage(["One.", "Two.", "Other."])
    first = await on.say("1", message_id="m1")
    await on.told(first)
    await on.told(await on.say("2"))
    instead_of = first.run_id if by == "run" else "m1"
    again = await _answer_again(on, instead_of)
    await on.told(again.run)
    assert await _texts(on) == ["1", "Other."]


async def test_another_answer_while_the_run_waits_leaves_it_behind(stage: MakeStage) -> None:
    on = await stage([OPEN, "Other."], open_url)
    first = await on.say("open it")
    await on.told(first)
    again = await _answer_again(on)
    assert text_in(await on.told(again.run)) == "Other."
    assert await on.outcomes(first) == [Cancelled("the user moved on")]


async def test_another_answer_while_the_model_speaks_is_busy(stage: MakeStage) -> None:
    on = await stage([[Say(["a"]), Say(["b"], delay=60)]])
    await on.told(await on.say("speak"), TextAdded)
    with pytest.raises(Busy):
        await _answer_again(on)
    await on.service.stop(LOCAL, THREAD, "stopped by the user")


@pytest.mark.parametrize("instead_of", ["m9", None])
async def test_another_answer_to_nothing_is_not_found(stage: MakeStage, instead_of: str | None) -> None:
    on = await stage(["One."])
    thread = THREAD if instead_of else "empty"
    await on.told(await on.say("1"))
    with pytest.raises(NotFound):
        await _answer_again(on, instead_of, thread)
    assert await _texts(on) == ["1", "One."]


async def test_an_edited_message_takes_the_place_of_the_old_one(stage: MakeStage) -> None:
    on = await stage(["One.", "Two.", "Other."])
    await on.told(await on.say("1", message_id="m1"))
    await on.told(await on.say("2", message_id="m2"))
    edited = UserMessage("m3", (Text("1, but better"),))
    started = await on.service.start(LOCAL, THREAD, edited, hold_for=0.0, instead_of="m1")
    await on.told(started.run)
    assert await _texts(on) == ["1, but better", "Other."]


@requirement("ui-stream:dropped")
async def test_a_run_whose_sender_leaves_while_it_is_stored_is_advanced_anyway(
    stage: MakeStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    on = await stage(["Done."])
    append, stored, go_on = on.store.append, asyncio.Event(), asyncio.Event()

    async def append_and_linger(appends: Sequence[Append]) -> list[AppendResult]:
        done = await append(appends)
        stored.set()
        await go_on.wait()
        return done

    async with asyncio.TaskGroup() as group:
        with monkeypatch.context() as slow:
            slow.setattr(on.store, "append", append_and_linger)
            saying = group.create_task(on.say("go"))
            await stored.wait()
        saying.cancel()
    go_on.set()
    run = await on.service.last_run(LOCAL, THREAD)
    assert text_in(await on.told(run, RunFinished)) == "Done."
    assert len(on.model.prompts) == 1


async def test_an_edit_of_a_message_that_is_not_there_is_not_found(stage: MakeStage) -> None:
    on = await stage(["One."])
    await on.told(await on.say("1"))
    with pytest.raises(NotFound):
        await on.service.start(LOCAL, THREAD, UserMessage("m3", (Text("x"),)), hold_for=0.0, instead_of="m9")
    assert await _texts(on) == ["1", "One."]


async def test_a_thread_is_named_after_its_first_words(stage: MakeStage) -> None:
    on = await stage(["Hello.", "Again."])
    await on.told(await on.say("  What is\nthe **weather** in " + "Oslo and " * 20))
    await on.told(await on.say("other"))
    thread = await on.service.log.get_thread(LOCAL, THREAD)
    assert thread is not None
    assert thread.title.startswith("What is the weather in Oslo and ")
    assert thread.title.endswith("…")
    assert len(thread.title) <= 80


@requirement("runs:drain")
async def test_a_drain_parks_what_is_held_and_loses_nothing(stage: MakeStage) -> None:
    on = await stage([OPEN, _tell], open_url)
    run = await on.say("open it", hold_for=600)
    await on.told(run, StepFinished)
    await on.service.drain(5.0)
    stored = await on.stored(run)
    assert (stored.state, stored.parked) == (RunState.WAITING, True)


@requirement("runs:drain")
async def test_a_drain_lets_what_works_come_to_its_end(stage: MakeStage) -> None:
    on = await stage([Say(["a ", "b ", "c"], delay=0.01)])
    run = await on.say("speak")
    await on.told(run, TextAdded)
    await on.service.drain(PATIENCE_SEC)
    assert (await on.stored(run)).state is RunState.DONE
    assert text_in(await on.journal(run)) == "a b c"


@requirement("runs:drain")
async def test_a_drain_waits_no_longer_than_it_is_told(stage: MakeStage) -> None:
    on = await stage([[Say(["a"]), Say(["b"], delay=60)]])
    run = await on.say("speak")
    await on.told(run, TextAdded)
    await on.service.drain(0.01)
    assert (await on.stored(run)).active


@requirement("runs:drain")
async def test_after_a_drain_answers_are_still_taken(stage: MakeStage) -> None:
    on = await stage([OPEN, _tell], open_url)
    run = await on.say("open it", hold_for=600)
    await on.told(run, StepFinished)
    await on.service.drain(5.0)
    await on.answer(await on.open_call(), Success({"viewKey": "v1"}))
    assert await on.outcomes(run) == [Success({"viewKey": "v1"})]


class Visitor:
    """Tools of somebody who registered for one owner."""

    def __init__(self, owner: Owner, *tools: Tool) -> None:
        self._owner = owner
        self._tools = tools

    def tools(self, owner: Owner) -> Sequence[Tool]:
        return self._tools if owner == self._owner else ()

    def get(self, owner: Owner, name: str) -> Tool | None:
        return next((tool for tool in self.tools(owner) if tool.name == name), None)

    def asks(self, tool: Tool, input: dict[str, object]) -> bool:
        return tool.may_ask


PRINT = Tool(
    name="print_page",
    description="Print it.",
    input_schema={"type": "object", "properties": {"page": {"type": "integer"}}},
    executor=Executor.CLIENT,
)


async def test_tools_of_registered_clients_are_offered_to_their_owner_and_shadow_nothing(
    clock: FakeClock, stage: MakeStage
) -> None:
    printed, added = Ask("print_page", {"page": 1}), Ask("add", {"a": 1, "b": 2})
    on = await stage([printed, _tell, printed, _tell, added, _tell], add)
    shadow = Tool(name="add", description="Not yours.", input_schema={}, executor=Executor.CLIENT)
    visitor = Visitor(LOCAL, PRINT, shadow)
    with_visitor = AgentService(
        Spec(on.model, make_toolbox([add])),
        on.log,
        clock=clock,
        settings=Settings(timeouts=Timeouts(hold_for=0.0)),
        sources=(visitor,),
    )
    on.service.worker.stop()
    on.service = with_visitor
    await on.service.open()
    run = await on.say("print")
    opened = the(CallOpened, await on.told(run, RunParked))
    assert (opened.executor, opened.deadline) == (Executor.CLIENT, clock.now() + 30)
    assert [tool.name for tool in on.model.prompts[0].tools] == ["add", "print_page"]
    assert on.model.prompts[0].tools[0].executor is Executor.SERVER
    await on.answer(await on.open_call(), Success("printed"))
    assert text_in(await on.told(run, RunFinished)) == "printed"
    other = await on.service.start(Owner("acme", "bob"), "t2", UserMessage("m", (Text("x"),)), hold_for=0.0)
    assert "There is no tool 'print_page'" in text_in(await on.told(other.run))
    assert text_in(await on.told(await on.say("add"), RunFinished)) == "3"


def _tell(moment: Moment) -> Step:
    return " ".join(str(each.output) if each.kind == "success" else each.error for each in moment.last)
