"""The public Agent, used from Python without an app."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from farhand.agent.agent import Agent, Pending, RunResult
from farhand.core.approval import Answer
from farhand.core.event import Event, RunFinished, RunParked, TextAdded
from farhand.core.outcome import Failure, Success
from farhand.core.principal import Owner
from farhand.errors import BadSetting, BadTool, Busy, NotFound, ResultMismatch, ResultRefused, ShuttingDown
from farhand.models.scripted import Ask, Fail, Moment, Say, ScriptedModel, Step
from farhand.models.scripted.model import Script
from farhand.tools.decorate import tool
from tests.requirement import requirement
from tests.unit.agent.hands import add, ask_text, open_url, take_photo
from tests.unit.agent.stage import NO, PATIENCE_SEC, YES, text_in

OPEN = Ask("open_url", {"url": "https://example.org"})
ASK = Ask("ask_text", {"question": "?"})
PHOTO = Ask("take_photo", {"camera": "front"})
VIEW = Success({"viewKey": "v1"})
WAITS = "awaiting_frontend_tools"

pytestmark = pytest.mark.timeout(PATIENCE_SEC)


def _agent(*steps: Step | Script, store: str = "memory:") -> Agent:
    return Agent(
        ScriptedModel([*steps, _tell]),
        tools=[add, take_photo, delete_file],
        frontend_tools=[open_url, ask_text],
        store=store,
    )


@tool(needs_approval=True)
def delete_file(path: str) -> str:
    """Delete a file.

    Args:
        path: Which.
    """
    return f"deleted {path}"


async def test_a_run_returns_the_text_and_why_it_ended() -> None:
    async with _agent(["Hello ", "you."]) as agent:
        result = await agent.run("hi", thread="t1")
    assert result == RunResult(thread="t1", run_id=result.run_id, text="Hello you.", stop_reason="end")


async def test_an_agent_needs_no_opening_and_makes_a_thread_when_none_is_named() -> None:
    agent = _agent("Hello.", "Again.")
    first, second = await agent.run("hi"), await agent.run("hi")
    assert first.thread.startswith("thr_")
    assert first.thread != second.thread
    await agent.close()
    await agent.close()


async def test_a_thread_remembers_what_was_said() -> None:
    async with _agent("Hello.", lambda moment: str(len(moment.messages))) as agent:
        await agent.run("hi", thread="t1")
        assert (await agent.run("how many?", thread="t1")).text == "3"


async def test_a_failed_run_says_why() -> None:
    async with _agent(Fail("Overloaded.", "Try again.")) as agent:
        result = await agent.run("hi")
    assert (result.stop_reason, result.error) == ("failed", "Overloaded. Try again.")


async def test_a_pause_names_its_calls_and_an_answer_continues() -> None:
    async with _agent(["I open it. ", OPEN]) as agent:
        paused = await agent.run("open it", thread="t1")
        assert (paused.text, paused.stop_reason) == ("I open it. ", WAITS)
        [pending] = paused.pending
        assert pending == Pending(pending.call_id, "open_url", {"url": "https://example.org"}, thread="t1")
        result = await agent.answer("t1", [(pending.call_id, VIEW)])
    assert (result.text, result.stop_reason) == ("{'viewKey': 'v1'}", "end")
    assert (result.pending, result.run_id) == ((), paused.run_id)


async def test_the_pause_after_an_answer_comes_back_as_well() -> None:
    async with _agent(OPEN, [OPEN, ASK]) as agent:
        first = await agent.run("open it", thread="t1")
        second = await agent.answer("t1", [(first.pending[0].call_id, VIEW)])
        assert second.stop_reason == WAITS
        assert [each.tool for each in second.pending] == ["open_url", "ask_text"]
        answers = [(each.call_id, Failure("no")) for each in reversed(second.pending)]
        assert (await agent.answer("t1", answers)).text == "no no"


async def test_an_approval_lets_a_server_tool_run() -> None:
    async with _agent(Ask("delete_file", {"path": "a.txt"})) as agent:
        paused = await agent.run("delete it", thread="t1")
        [pending] = paused.pending
        assert pending.approval_id is not None
        assert (await agent.answer("t1", [(pending.call_id, YES)])).text == "deleted a.txt"


async def test_a_no_is_an_answer() -> None:
    async with _agent(Ask("delete_file", {"path": "a.txt"})) as agent:
        paused = await agent.run("delete it", thread="t1")
        assert (await agent.answer("t1", [(paused.pending[0].call_id, NO)])).text == "denied: too dear"


async def test_an_approved_far_tool_comes_back_as_pending_without_its_question() -> None:
    async with _agent(PHOTO) as agent:
        asked = await agent.run("photo", thread="t1")
        waits = await agent.answer("t1", [(asked.pending[0].call_id, YES)])
        assert waits.stop_reason == WAITS
        call_id = asked.pending[0].call_id
        assert waits.pending == (Pending(call_id, "take_photo", {"camera": "front"}, thread="t1"),)
        assert (await agent.answer("t1", [(waits.pending[0].call_id, Success("a photo"))])).text == "a photo"


async def test_an_edited_approval_runs_what_the_person_wrote() -> None:
    async with _agent(Ask("delete_file", {"path": "a.txt"})) as agent:
        paused = await agent.run("delete it", thread="t1")
        edited = Answer(approved=True, input={"path": "b.txt"})
        assert (await agent.answer("t1", [(paused.pending[0].call_id, edited)])).text == "deleted b.txt"


async def test_an_outcome_for_a_call_that_was_not_approved_is_refused_and_the_others_count() -> None:
    async with _agent([PHOTO, OPEN]) as agent:
        paused = await agent.run("both", thread="t1")
        photo, page = paused.pending
        waits = await agent.answer("t1", [(photo.call_id, Success("forged")), (page.call_id, VIEW)])
        assert waits.stop_reason == WAITS
        assert waits.pending == (photo,)


@pytest.mark.parametrize("wrong", ["missing", "unknown", "doubled", "none"])
async def test_answers_that_do_not_fit_the_pause_are_a_value_error_and_nothing_is_applied(wrong: str) -> None:
    async with _agent([OPEN, ASK]) as agent:
        paused = await agent.run("both", thread="t1")
        page, text = (each.call_id for each in paused.pending)
        given = {
            "missing": [(page, VIEW)],
            "unknown": [(page, VIEW), (text, Success("x")), ("call_" + "0" * 32, VIEW)],
            "doubled": [(page, VIEW), (page, VIEW), (text, Success("x"))],
            "none": [],
        }[wrong]
        with pytest.raises(ValueError, match="mismatch") as refused:
            await agent.answer("t1", given)
        assert isinstance(refused.value, ResultMismatch)
        assert (await agent.answer("t1", [(page, VIEW), (text, Success("y"))])).text.endswith(" y")


async def test_an_approval_to_a_call_that_asked_nothing_is_a_value_error_and_nothing_is_applied() -> None:
    async with _agent([OPEN, ASK]) as agent:
        paused = await agent.run("both", thread="t1")
        page, text = (each.call_id for each in paused.pending)
        with pytest.raises(ValueError, match="mismatch"):
            await agent.answer("t1", [(page, VIEW), (text, YES)])
        assert (await agent.answer("t1", [(page, VIEW), (text, Success("y"))])).text.endswith(" y")


async def test_an_answer_when_nothing_waits_is_a_value_error() -> None:
    async with _agent(OPEN, "Hello.") as agent:
        paused = await agent.run("open it", thread="t1")
        await agent.answer("t1", [(paused.pending[0].call_id, VIEW)])
        with pytest.raises(ValueError, match="mismatch"):
            await agent.answer("t1", [(paused.pending[0].call_id, VIEW)])
        with pytest.raises(NotFound):
            await agent.answer("t2", [])


@requirement("calls:first-wins")
async def test_of_many_answers_at_once_one_continues_and_the_model_is_asked_once() -> None:
    model = ScriptedModel([OPEN, _tell])
    async with Agent(model, frontend_tools=[open_url]) as agent:
        paused = await agent.run("open it", thread="t1")
        call_id = paused.pending[0].call_id
        tried = await asyncio.gather(
            *(agent.answer("t1", [(call_id, Success({"viewKey": str(n)}))]) for n in range(10)),
            return_exceptions=True,
        )
        results = [each for each in tried if isinstance(each, RunResult)]
        assert len({each.text for each in results}) == 1
        assert all(isinstance(each, RunResult | ResultRefused) for each in tried)
        assert len(model.prompts) == 2


async def test_a_stream_tells_event_by_event_until_the_end_or_a_pause() -> None:
    async with _agent(["One ", "two. ", OPEN], "Hello.") as agent:
        events = [event async for event in agent.stream("open it", thread="t1")]
        assert text_in(events) == "One two. "
        assert isinstance(events[-1], RunParked)
        events = [event async for event in agent.stream("never mind", thread="t1")]
        assert isinstance(events[-1], RunFinished)


async def test_a_stream_that_is_left_does_not_stop_the_run() -> None:
    async with _agent(Say(["One ", "two."])) as agent:
        async for event in agent.stream("speak", thread="t1"):
            if isinstance(event, TextAdded):
                break
        service = agent._service
        assert service is not None
        run = await service.last_run(Owner("local", "me"), "t1")
        with service.read(run) as reader:
            events: list[Event] = []
            while not events or not isinstance(events[-1], RunFinished):
                events += [entry.event for entry in await reader.next(5) or []]
        assert text_in(events) == "One two."


@requirement("runs:one-at-a-time")
async def test_a_second_message_while_the_first_is_answered_is_busy() -> None:
    async with _agent([Say(["One "]), Say(["two."], delay=60)]) as agent:
        async for event in agent.stream("speak", thread="t1"):
            if isinstance(event, TextAdded):
                break
        with pytest.raises(Busy):
            await agent.run("hurry", thread="t1")


async def test_a_pause_kept_in_a_file_is_answered_by_the_next_agent(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/agent.db"
    async with _agent(OPEN, store=address) as before:
        paused = await before.run("open it", thread="t1")
    async with _agent(store=address) as after:
        result = await after.answer("t1", [(paused.pending[0].call_id, VIEW)])
    assert result.text == "{'viewKey': 'v1'}"


@requirement("calls:owner")
async def test_another_owner_finds_nothing_to_answer() -> None:
    async with _agent(OPEN) as agent:
        paused = await agent.run("open it", thread="t1", owner=Owner("acme", "ann"))
        with pytest.raises(NotFound):
            await agent.answer("t1", [(paused.pending[0].call_id, VIEW)], owner=Owner("acme", "bob"))


async def test_a_run_that_is_in_progress_when_the_agent_closes_says_so() -> None:
    agent = Agent(ScriptedModel(lambda moment: [Say(["One "]), Say(["two."], delay=60)]))
    async with asyncio.TaskGroup() as group:
        running = group.create_task(_ends(agent))
        async for event in agent.stream("other", thread="t2"):
            if isinstance(event, TextAdded):
                break
        await agent.close()
    assert isinstance(running.result(), ShuttingDown)


async def _ends(agent: Agent) -> object:
    try:
        return await agent.run("speak", thread="t1")
    except ShuttingDown as error:
        return error


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"formatter": "yaml"}, "formatter"),
        ({"wait": "held"}, "wait must be 'turn' or 'hold', not 'held'"),
        ({"max_steps": 0}, "max_steps"),
    ],
)
def test_a_setting_that_cannot_be_is_reported_at_once(setting: dict[str, object], words: str) -> None:
    with pytest.raises(BadSetting, match=words):
        Agent(ScriptedModel([]), **setting)  # type: ignore[arg-type]


def test_a_server_tool_among_the_frontend_tools_is_reported_at_once() -> None:
    with pytest.raises(BadTool, match="add"):
        Agent(ScriptedModel([]), frontend_tools=[add])


def test_a_store_address_that_cannot_be_used_is_refused_at_once() -> None:
    with pytest.raises(BadSetting, match="redis"):
        _agent("Hello.", store="redis://nowhere")


def _tell(moment: Moment) -> Step:
    return " ".join(str(each.output) if each.kind == "success" else each.error for each in moment.last)
