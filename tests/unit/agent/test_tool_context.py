"""A server tool knows whom it works for, reports progress, uses files, and asks while it runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from farhand.core.call import Phase
from farhand.core.decide.calls import ASKER_GONE
from farhand.core.event import CallOpened, CallProgressed, RunFinished, RunParked
from farhand.core.outcome import Cancelled, Failure, Success
from farhand.core.principal import LOCAL
from farhand.core.run import RunState
from farhand.errors import Misuse
from farhand.models.scripted import Ask
from farhand.testing import FakeClock
from farhand.tools.context import Context, NotAnswered, ask, current
from farhand.tools.decorate import tool
from farhand.tools.forms import ask_form
from tests.requirement import requirement
from tests.unit.agent.conftest import MakeStage
from tests.unit.agent.hands import ask_text, open_url
from tests.unit.agent.stage import PATIENCE_SEC, THREAD, Stage, comes_true, text_in
from tests.unit.agent.test_recovery import Machine, asking

DAYS = 86_400.0


@tool
def whose() -> str:
    """Say whose order it is."""
    return f"{current().owner.subject} {current().claims.get('plan')}"


@tool(idempotent=True, timeout_sec=2)
async def ask_twice() -> str:
    """Ask two questions."""
    first = await ask("ask_text", {"question": "first?"})
    second = await ask("ask_text", {"question": "second?"}, timeout_sec=60)
    return f"{first} and {second}"


@pytest.fixture
async def machine(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Machine]:
    made = Machine(tmp_path, clock)
    yield made
    await made.close()


def test_outside_a_tool_there_is_nobody_to_work_for() -> None:
    with pytest.raises(Misuse, match=r"current\(\) works only inside a server tool"):
        current()


def test_the_context_is_no_part_of_the_schema() -> None:
    @tool
    async def pay(amount: int, context: Context) -> str:
        """Pay.

        Args:
            amount: How much.
        """
        return f"{amount} for {context.owner.subject}"

    assert pay.tool.input_schema["required"] == ["amount"]
    assert "context" not in str(pay.tool.input_schema)


@requirement("hands:questions-after-a-crash")
async def test_a_tool_that_may_not_be_repeated_is_unknown_and_its_question_ends(machine: Machine) -> None:
    @tool
    async def ask_once() -> str:
        """Ask a question."""
        return str(await ask("ask_text", {"question": "first?"}))

    before = await machine.boot(asking(Ask("ask_once")), ask_once, ask_text)
    run = await before.say("go")
    await comes_true(lambda: _is_asked(before, "first?"))
    after = await machine.boot(asking(Ask("ask_once")), ask_once, ask_text)
    assert "Whether it took effect is unknown" in text_in(await after.told(run, RunFinished))
    assert await after.log.open_calls(LOCAL, THREAD) == []
    assert (await after.outcomes(run))[-1] == Cancelled(ASKER_GONE)


async def test_a_question_stands_beside_its_tool_and_the_model_never_sees_it(stage: MakeStage) -> None:
    on = await stage([Ask("ask_twice"), "done"], ask_twice, ask_text)
    run = await on.say("go")
    events = await on.told(run, CallOpened)
    await comes_true(lambda: _is_asked(on, "first?"))
    question = await on.open_call("ask_text")
    assert question.parent is not None
    assert question.run_id == run.run_id
    assert (await on.stored(run)).state is RunState.WAITING
    await on.answer(question, Success("one"))
    await comes_true(lambda: _is_asked(on, "second?"))
    await on.answer(await on.open_call("ask_text"), Success("two"))
    events = await on.told(run, RunFinished)
    assert [type(event) for event in events].count(CallOpened) == 3
    assert (await on.outcomes(run))[0] == Success("one and two")
    told = str(await on.messages())
    assert "one and two" in told
    assert "first?" not in told


async def _is_asked(on: Stage, question: str) -> bool:
    calls = await on.log.open_calls(LOCAL, THREAD)
    return any(call.input.get("question") == question for call in calls)


async def test_the_time_of_a_tool_stands_still_while_it_asks(stage: MakeStage, clock: FakeClock) -> None:
    on = await stage([Ask("ask_twice"), "done"], ask_twice, ask_text)
    run = await on.say("go")
    await comes_true(lambda: _is_asked(on, "first?"))
    await on.answer(await on.open_call("ask_text"), Success("one"))
    await comes_true(lambda: _is_asked(on, "second?"))
    clock.advance(30)
    await on.answer(await on.open_call("ask_text"), Success("two"))
    await on.told(run)
    assert (await on.outcomes(run))[0] == Success("one and two")


async def test_a_question_that_is_not_answered_fails_its_tool_in_clear_words(
    stage: MakeStage, clock: FakeClock
) -> None:
    on = await stage([Ask("ask_twice"), "done"], ask_twice, ask_text)
    run = await on.say("go")
    await comes_true(lambda: _is_asked(on, "first?"))
    question = await on.open_call("ask_text")
    clock.advance(6)
    assert await on.service.desk.expire(question)
    await on.told(run)
    assert (await on.outcomes(run))[0] == Failure(
        "The question `ask_text` was not answered: nobody answered in time."
    )


async def test_a_tool_may_live_with_a_question_that_is_not_answered(stage: MakeStage) -> None:
    @tool
    async def careful() -> str:
        """Ask, and do without an answer."""
        try:
            await ask("ask_text", {"question": "may I?"})
        except NotAnswered as error:
            return f"went on: {type(error.outcome).__name__}"
        raise AssertionError("nobody answered")

    on = await stage([Ask("careful"), "done"], careful, ask_text)
    run = await on.say("go")
    await comes_true(lambda: _is_asked(on, "may I?"))
    await on.answer(await on.open_call("ask_text"), Failure("the page is gone"))
    await on.told(run)
    assert (await on.outcomes(run))[0] == Success("went on: Failure")


async def test_when_the_run_is_stopped_its_questions_are_cancelled(stage: MakeStage) -> None:
    on = await stage([Ask("ask_twice"), "done"], ask_twice, ask_text)
    run = await on.say("go")
    await comes_true(lambda: _is_asked(on, "first?"))
    assert await on.service.stop(LOCAL, THREAD, "stopped")
    assert await on.log.open_calls(LOCAL, THREAD) == []
    assert [type(outcome) for outcome in await on.outcomes(run)] == [Cancelled, Cancelled]


async def test_when_the_asking_call_ends_its_questions_are_cancelled(stage: MakeStage) -> None:
    on = await stage([], ask_twice, ask_text)
    calling = asyncio.create_task(on.service.call("ask_twice", {}, thread=THREAD))
    await comes_true(lambda: _is_asked(on, "first?"))
    question = await on.open_call("ask_text")
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    ended = await on.log.get_call(LOCAL, question.call_id)
    assert ended is not None
    assert ended.outcome == Cancelled(ASKER_GONE)


async def test_a_call_without_a_run_may_ask(stage: MakeStage) -> None:
    on = await stage([], ask_twice, ask_text)
    calling = asyncio.create_task(on.service.call("ask_twice", {}, thread=THREAD))
    for question, answer in (("first?", "one"), ("second?", "two")):
        await comes_true(lambda asked=question: _is_asked(on, asked))  # type: ignore[misc]
        await on.answer(await on.open_call("ask_text"), Success(answer))
    async with asyncio.timeout(PATIENCE_SEC):
        assert await calling == Success("one and two")


async def test_what_cannot_be_asked_fails_the_tool_and_asks_nobody(stage: MakeStage) -> None:
    @tool
    async def wrong(name: str) -> str:
        """Ask wrongly.

        Args:
            name: What.
        """
        return str(await ask(name, {"question": 7}))

    names = ("no_such_tool", "whose", "ask_text")
    on = await stage([[Ask("wrong", {"name": name}) for name in names], "done"], wrong, whose, ask_text)
    run = await on.say("go")
    await on.told(run)
    errors = [outcome.error for outcome in await on.outcomes(run) if isinstance(outcome, Failure)]
    assert len(errors) == 3
    assert "the agent has no such tool" in errors[0]
    assert "runs on the server" in errors[1]
    assert "bad input" in errors[2]


async def test_progress_of_a_tool_reaches_the_owners_feed(stage: MakeStage) -> None:
    @tool
    def count() -> str:
        """Count in a thread."""
        current().progress("half")
        return "done"

    @tool
    async def wait_for_it() -> str:
        """Report, and wait until it is told."""
        current().progress("begun")
        current().progress("nearly done")
        await comes_true(lambda: _is_told(on, "nearly done"))
        return "done"

    on = await stage([[Ask("count"), Ask("wait_for_it")], "done"], count, wait_for_it)
    run = await on.say("go")
    await on.told(run)
    assert (await on.outcomes(run)) == [Success("done"), Success("done")]


async def _is_told(on: Stage, text: str) -> bool:
    page = await on.log.feed(LOCAL, after=0, limit=100)
    return any(isinstance(news.event, CallProgressed) and news.event.text == text for news in page)


async def test_a_tool_keeps_a_file_and_reads_it_again(stage: MakeStage) -> None:
    @tool
    async def export() -> str:
        """Write a file."""
        files = current().files
        ref = await files.save(b"a,b", name="orders.csv", media_type="text/csv")
        return f"{ref} {(await files.read(ref)).decode()}"

    on = await stage([Ask("export"), "done"], export)
    run = await on.say("go")
    await on.told(run)
    [outcome] = await on.outcomes(run)
    assert isinstance(outcome, Success)
    ref, text = str(outcome.output).split(" ")
    assert text == "a,b"
    assert (await on.service.files.find(LOCAL, ref)).name == "orders.csv"


async def test_name_and_type_of_a_file_that_a_tool_keeps_are_cleaned(stage: MakeStage) -> None:
    @tool
    async def export(media_type: str) -> str:
        """Write a file.

        Args:
            media_type: Of the file.
        """
        name = "../../a\u202egnp.exe\r\nSet-Cookie: a=b"
        return await current().files.save(b"x", name=name, media_type=media_type)

    types = ["IMAGE/PNG; charset=binary", "text/plain\r\nSet-Cookie: a=b", "image"]
    on = await stage([[Ask("export", {"media_type": each}) for each in types], "done"], export)
    run = await on.say("go")
    await on.told(run)
    first, *others = await on.outcomes(run)
    assert isinstance(first, Success)
    file = await on.service.files.find(LOCAL, str(first.output))
    assert (file.name, file.media_type) == ("a gnp.exe Set-Cookie_ a=b", "image/png")
    assert all(isinstance(each, Failure) for each in others)


async def test_a_page_may_be_asked_too(stage: MakeStage) -> None:
    @tool
    async def show() -> object:
        """Open a page."""
        return await ask("open_url", {"url": "https://example.org"}, key="page")

    on = await stage([Ask("show"), "done"], show, open_url)
    run = await on.say("go")

    async def is_open() -> bool:
        calls = await on.log.open_calls(LOCAL, THREAD)
        return any(call.tool == "open_url" and call.phase is Phase.READY for call in calls)

    await comes_true(is_open)
    await on.answer(await on.open_call("open_url"), Success({"viewKey": "v1"}))
    await on.told(run)
    assert (await on.outcomes(run))[0] == Success({"viewKey": "v1"})


@tool
async def book(url: str = "") -> str:
    """Book a table.

    Args:
        url: A page to open instead.
    """
    fields = {
        "type": "object",
        "properties": {"guests": {"type": "integer", "minimum": 1}},
        "required": ["guests"],
    }
    answer = await ask_form("For how many?", None if url else fields, url=url or None, key="table")
    return f"{answer.action} {answer.content.get('guests')}"


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({"action": "accept", "content": {"guests": 4}}, Success("accept 4")),
        ({"action": "decline"}, Success("decline None")),
        ({"action": "cancel"}, Success("cancel None")),
    ],
)
async def test_a_form_is_accepted_declined_or_cancelled(
    stage: MakeStage, answer: dict[str, object], told: Success
) -> None:
    on = await stage([Ask("book"), "done"], book)
    run = await on.say("go")
    await comes_true(lambda: _has_open(on, "answer_form"))
    question = await on.open_call("answer_form")
    assert question.card == "form"
    await on.answer(question, Success(answer))
    await on.told(run)
    assert (await on.outcomes(run))[0] == told


async def test_an_answer_that_does_not_fit_the_form_fails_the_tool(stage: MakeStage) -> None:
    on = await stage([Ask("book"), "done"], book)
    run = await on.say("go")
    await comes_true(lambda: _has_open(on, "answer_form"))
    await on.answer(
        await on.open_call("answer_form"), Success({"action": "accept", "content": {"guests": 0}})
    )
    await on.told(run)
    [failed, _] = await on.outcomes(run)
    assert isinstance(failed, Failure)
    assert "does not fit the form" in failed.error


@pytest.mark.parametrize("url", ["javascript:alert(1)", "https://user@example.org/", "example.org"])
async def test_a_form_opens_only_pages(stage: MakeStage, url: str) -> None:
    on = await stage([Ask("book", {"url": url}), "done"], book)
    run = await on.say("go")
    await on.told(run)
    [failed] = await on.outcomes(run)
    assert isinstance(failed, Failure)
    assert "is not the address of a page" in failed.error


async def test_the_model_cannot_ask_for_a_form_itself(stage: MakeStage) -> None:
    on = await stage([Ask("answer_form", {"message": "your password?"}), "done"], book)
    run = await on.say("go")
    await on.told(run)
    [failed] = await on.outcomes(run)
    assert isinstance(failed, Failure)
    assert "There is no tool" in failed.error


async def _has_open(on: Stage, name: str) -> bool:
    return any(call.tool == name for call in await on.log.open_calls(LOCAL, THREAD))


async def test_a_tool_may_ask_several_at_once_and_its_time_stands_still_for_all(stage: MakeStage) -> None:
    @tool(timeout_sec=1)
    async def ask_both() -> str:
        """Ask two at once."""
        questions = [ask("ask_text", {"question": each}, key=each, timeout_sec=60) for each in ("a?", "b?")]
        return " ".join(str(answer) for answer in await asyncio.gather(*questions))

    on = await stage([Ask("ask_both"), "done"], ask_both, ask_text)
    run = await on.say("go")
    for question in ("a?", "b?"):
        await comes_true(lambda asked=question: _is_asked(on, asked))  # type: ignore[misc]
    calls = await on.log.open_calls(LOCAL, THREAD)
    for question in ("b?", "a?"):
        [call] = [call for call in calls if call.input.get("question") == question]
        await on.answer(call, Success(question[0]))
    await on.told(run, RunFinished)
    assert (await on.outcomes(run))[0] == Success("a b")


async def test_a_question_of_a_direct_call_outlives_the_sweep(stage: MakeStage) -> None:
    on = await stage([], ask_twice, ask_text)
    calling = asyncio.create_task(on.service.call("ask_twice", {}, thread=THREAD, key="k"))
    await comes_true(lambda: _is_asked(on, "first?"))
    for _ in range(3):
        await on.service.worker.direct.sweep()
    for question, answer in (("first?", "one"), ("second?", "two")):
        await comes_true(lambda asked=question: _is_asked(on, asked))  # type: ignore[misc]
        await on.answer(await on.open_call("ask_text"), Success(answer))
    async with asyncio.timeout(PATIENCE_SEC):
        assert await calling == Success("one and two")


async def test_after_a_restart_the_time_of_a_tool_stands_still_while_it_asks(
    machine: Machine,
) -> None:
    before = await machine.boot(asking(Ask("ask_twice")), ask_twice, ask_text)
    run = await before.say("go")
    await comes_true(lambda: _is_asked(before, "first?"))
    await before.answer(await before.open_call("ask_text"), Success("one"))
    await comes_true(lambda: _is_asked(before, "second?"))
    after = await machine.boot(asking(Ask("ask_twice")), ask_twice, ask_text)

    async def is_held() -> bool:
        [asker, *_] = await after.calls(run)
        return asker.deadline is not None and asker.deadline > machine.clock.now() + 60

    await comes_true(is_held)


async def test_what_a_tool_does_to_its_claims_reaches_nobody(stage: MakeStage) -> None:
    @tool
    def promote() -> str:
        """Try to become somebody else."""
        current().claims["admin"] = True
        return "tried"

    claims: dict[str, object] = {"plan": "free"}
    on = await stage([], promote)
    await on.service.call("promote", {}, thread=THREAD, claims=claims, key="k")
    assert claims == {"plan": "free"}
    call = await on.log.get_requested(LOCAL, "key=k")
    assert call is not None
    assert call.claims == {"plan": "free"}


# ------------------------------------------------------------------------------------- from a thread


@tool(idempotent=True)
def ask_in_thread() -> str:
    """Ask from a plain function."""
    context = current()
    answer = context.wait_for(ask("ask_text", {"question": "first?"}, timeout_sec=600))
    saved = context.wait_for(context.files.save(b"x", name="a.txt", media_type="text/plain"))
    return f"{answer} for {context.owner.subject}, {len(context.wait_for(context.files.read(saved)))} byte"


@requirement("hands:who-asks")
async def test_a_plain_function_asks_and_its_thread_waits(stage: MakeStage) -> None:
    on = await stage([Ask("ask_in_thread"), "done"], ask_in_thread, ask_text)
    run = await on.say("go")
    assert isinstance((await on.told(run))[-1], RunParked)
    await on.answer(await on.open_call("ask_text"), Success("yes"))
    await on.told(run, RunFinished)
    assert (await on.outcomes(run))[0] == Success("yes for me, 1 byte")


@requirement("hands:who-asks")
async def test_a_thread_that_waits_is_told_when_the_user_moves_on(
    stage: MakeStage, caplog: pytest.LogCaptureFixture
) -> None:
    caught: list[str] = []

    @tool
    def ask_and_note() -> str:
        """Ask from a plain function."""
        try:
            return str(current().wait_for(ask("ask_text", {"question": "first?"}, timeout_sec=600)))
        # whatever it is: the thread continues here
        except BaseException as error:
            caught.append(type(error).__name__)
            raise

    on = await stage([Ask("ask_and_note"), "Next."], ask_and_note, ask_text)
    await on.told(await on.say("go"), RunParked)
    await on.told(await on.say("never mind"), RunFinished)

    async def is_told() -> bool:
        return bool(caught)

    await comes_true(is_told)
    assert caught[0] in ("CancelledError", "NotAnswered")
    # its thread ends after that
    await on.service.close()
    assert "raised CancelledError" not in caplog.text, "nothing is wrong with the tool"


@requirement("hands:who-asks")
async def test_on_the_event_loop_a_tool_awaits_instead(stage: MakeStage) -> None:
    @tool
    async def mistaken() -> str:
        """Block the event loop."""
        return str(current().wait_for(ask("ask_text", {"question": "first?"})))

    on = await stage([Ask("mistaken"), "done"], mistaken, ask_text)
    run = await on.say("go")
    await on.told(run)
    [failed] = await on.outcomes(run)
    assert isinstance(failed, Failure)
    assert "Write `await` instead" in failed.error


async def test_a_plain_function_with_a_loop_of_its_own_is_told_how_to_ask(stage: MakeStage) -> None:
    @tool
    def ask_elsewhere() -> str:
        """Ask on another event loop."""
        return str(asyncio.run(ask("ask_text", {"question": "?"})))

    on = await stage([], ask_elsewhere, ask_text)
    outcome = await on.service.call("ask_elsewhere", {}, thread=THREAD)
    assert isinstance(outcome, Failure)
    assert "current().wait_for(ask(…))" in outcome.error


def test_where_nothing_is_executed_there_is_nothing_to_wait_for() -> None:
    with pytest.raises(Misuse, match="available only while a tool is being executed"):
        Context(owner=LOCAL).wait_for(ask("ask_text", {"question": "first?"}))
