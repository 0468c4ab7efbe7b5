"""A message with more than its text: notes for the model, and results for the previous run."""

from __future__ import annotations

from farhand.agent.attachments import prepare_message
from farhand.agent.start_run import Asker
from farhand.core.approval import Answer
from farhand.core.decide.calls import Reply
from farhand.core.event import RunFinished, RunParked
from farhand.core.outcome import Cancelled, Denied, Success
from farhand.core.principal import LOCAL, Owner
from farhand.core.result import Accepted, Result, Unknown
from farhand.core.run import Run, RunState
from farhand.core.thread import Note, ResultsMessage, Text, UserMessage, text_of
from farhand.models.base import Prompt
from farhand.models.render import render_user_parts
from farhand.models.scripted import Ask, Moment
from farhand.tools.decorate import tool
from tests.unit.agent.conftest import MakeStage
from tests.unit.agent.hands import ask_text, open_url
from tests.unit.agent.stage import THREAD, text_in

BOTH = [Ask("open_url", {"url": "https://example.org"}), Ask("ask_text", {"question": "?"})]


def _results(moment: Moment) -> str:
    return f"{moment.text}: {len(moment.results)}"


async def test_results_and_a_new_message_settle_end_and_begin_together(stage: MakeStage) -> None:
    on = await stage([BOTH, _results], open_url, ask_text)
    first = await on.say("open it")
    await on.told(first, RunParked)
    opened = await on.open_call("open_url")
    asked = await on.open_call("ask_text")
    before = await on.log.read(LOCAL, THREAD, lambda thread: thread.version)
    results = (
        Result(call_id=opened.call_id, outcome=Success({"viewKey": "v"})),
        Result(call_id="call_unknown", outcome=Success("x")),
    )
    message = UserMessage("m2", (Text("go on"),))
    started = await on.service.start(LOCAL, THREAD, message, hold_for=0.0, asker=Asker(results=results))
    assert started.receipts == (Accepted(), Unknown())
    assert text_in(await on.told(started.run, RunFinished)) == "go on: 0"
    assert (await on.stored(first)).state is RunState.STOPPED
    assert await on.outcomes(first) == [Success({"viewKey": "v"}), Cancelled("the user moved on")]
    assert asked.call_id != opened.call_id
    told = [each for each in await on.messages() if isinstance(each, ResultsMessage)]
    assert told[0].results[0].outcome == Success({"viewKey": "v"})
    assert await on.log.read(LOCAL, THREAD, lambda thread: thread.version) > before


async def test_sent_again_it_changes_nothing(stage: MakeStage) -> None:
    on = await stage([BOTH, _results], open_url, ask_text)
    first = await on.say("open it")
    await on.told(first, RunParked)
    opened = await on.open_call("open_url")
    asker = Asker(results=(Result(call_id=opened.call_id, outcome=Success({"viewKey": "v"})),))
    message = UserMessage("m2", (Text("go on"),))
    started = await on.service.start(LOCAL, THREAD, message, hold_for=0.0, asker=asker)
    await on.told(started.run, RunFinished)
    again = await on.service.start(LOCAL, THREAD, message, hold_for=0.0, asker=asker)
    assert (again.again, again.run.run_id, again.receipts) == (True, started.run.run_id, ())


async def test_the_run_that_it_began_is_given_though_another_one_follows_at_once(stage: MakeStage) -> None:
    on = await stage([BOTH, _results, _results], open_url, ask_text)
    await on.told(await on.say("open it"), RunParked)
    opened = await on.open_call("open_url")
    last_run = on.log.last_run

    async def followed(owner: Owner, thread_id: str) -> Run | None:
        """Whoever asks for the last run after the append gets that of the next message."""
        run = await last_run(owner, thread_id)
        if run is not None and run.user_message_id == "m2":
            await on.told(run, RunFinished)
            await on.say("and then", message_id="m3")
        return await last_run(owner, thread_id)

    on.log.last_run = followed  # type: ignore[method-assign]
    asker = Asker(results=(Result(call_id=opened.call_id, outcome=Success({"viewKey": "v"})),))
    message = UserMessage("m2", (Text("go on"),))
    started = await on.service.start(LOCAL, THREAD, message, hold_for=0.0, asker=asker)
    on.log.last_run = last_run  # type: ignore[method-assign]
    assert (started.again, started.run.user_message_id) == (False, "m2")
    await on.told(started.run, RunFinished)


async def test_a_note_is_for_the_model_and_not_among_the_users_words(stage: MakeStage) -> None:
    on = await stage([_results])
    said = (Text("What is this?"), Note("page", "A map of Rome"))
    prepared = await prepare_message(on.service.files, LOCAL, THREAD, message_id="m1", said=said)
    message = prepared.message
    assert text_of(message) == "What is this?"
    assert render_user_parts(message, Prompt((message,))) == ["What is this?", "[page]\nA map of Rome"]
    started = await on.service.start(LOCAL, THREAD, message, hold_for=0.0)
    await on.told(started.run, RunFinished)
    assert (await on.messages())[0] == message
    assert (await on.service.log.get_thread(LOCAL, THREAD)).title == "What is this?"  # type: ignore[union-attr]


async def test_an_approval_may_come_with_a_new_message(stage: MakeStage) -> None:
    @tool(needs_approval=True)
    def pay(amount: int) -> str:
        """Pay.

        Args:
            amount: How much.
        """
        raise AssertionError("the run that asked for it has ended")

    on = await stage([Ask("pay", {"amount": 3}), _results], pay)
    first = await on.say("pay")
    await on.told(first, RunParked)
    call = await on.open_call("pay")
    assert call.approval is not None
    no = Reply(call.approval.approval_id, Answer(approved=False, reason="too much"))
    message = UserMessage("m2", (Text("never mind"),))
    started = await on.service.start(LOCAL, THREAD, message, hold_for=0.0, asker=Asker(results=(no,)))
    assert started.receipts == (Accepted(),)
    await on.told(started.run, RunFinished)
    assert await on.outcomes(first) == [Denied("too much")]
