"""Starts and stops runs in threads: one at a time, one for each user message.

A message that was posted before starts nothing. A new one ends a waiting run, and is refused while a run
works. An edited message or a regeneration cuts the thread first; tools that have run are not undone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from farhand.agent.attachments import PreparedMessage
from farhand.agent.context import AgentContext
from farhand.calls.desk import Following, Submission
from farhand.core.decide import runs
from farhand.core.decide.decision import Decision
from farhand.core.decide.queued_messages import Next, Queued, accept_with_tools, answer_next
from farhand.core.decide.runs import Beginning, Known, NewRun, NotStarted, Started
from farhand.core.decide.threads import tidy_title
from farhand.core.principal import Claims, Owner
from farhand.core.result import Receipt, Result
from farhand.core.run import Run
from farhand.core.state import ThreadState
from farhand.core.thread import Note, Text, UserMessage, is_same_message, text_of
from farhand.core.tool import Tool
from farhand.errors import Busy, Malformed, NoAgent, NotFound, TooMany, Unanswered
from farhand.eventlog.batch import Command
from farhand.models.base import NoModel

log = logging.getLogger("farhand.runs")

STOPPED_BY_USER = "stopped by the user"
ABORTED = "aborted by the user"
DELETED = "the chat was deleted"
ANSWER_FIRST = "Answer every open interrupt; nothing was applied."


class Asker(Struct, frozen=True):
    """What a request contains besides its message: the claims of the person who sent it, the tools that its
    client describes and executes itself, results for calls of the previous run, and the client's name for the
    run.

    With `spares_questions` nothing starts while a person is being asked something.
    """

    claims: Claims = {}
    request_tools: tuple[Tool, ...] = ()
    results: tuple[Submission, ...] = ()
    alias: str = ""
    spares_questions: bool = False


class ThreadPlace(Struct, frozen=True):
    """Whose thread, and who asks there."""

    owner: Owner
    thread_id: str
    asker: Asker = Asker()


class StartedRun(Struct, frozen=True):
    """The run that answers the message; `again` if the message was already known. `receipts` are for the
    results that came with it."""

    run: Run
    again: bool = False
    receipts: tuple[Receipt, ...] = ()


async def start_run(
    context: AgentContext,
    place: ThreadPlace,
    prepared: PreparedMessage,
    *,
    instead_of: str | None = None,
    hold_for: float,
) -> StartedRun:
    """Answers a new message. With `instead_of`, it replaces that message and everything after it.

    Raises `TooMany` for an owner over its quota; but a repeated message starts nothing, and is answered as
    usual.
    """
    _check_model(context)
    message = prepared.message
    try:
        async with context.quotas.reserve_slot(place.owner, place.thread_id, _size(message)) as slot:
            if prepared.files:
                await _refuse_early(context, place, message, instead_of=instead_of)
                await context.files.keep_all(prepared.files)
            started = await _begin(context, place, message, instead_of=instead_of, hold_for=hold_for)
            if started.again:
                slot.give_back()
        return started
    except TooMany:
        again = None if instead_of else await _answered_before(context, place, message)
        if again is None:
            raise
        return again


async def follow_run(
    context: AgentContext, place: ThreadPlace, prepared: PreparedMessage, *, run_id: str
) -> list[Receipt]:
    """Queues a message together with the answers to this run: it is answered when the run has used the
    answers, whatever happens to this process. Raises `TooMany` as above; nothing is applied then."""
    _check_model(context)
    asker, message = place.asker, prepared.message
    new = _new_run(context, asker, 0.0)

    def follow(
        thread: ThreadState, accepted: Decision[list[Receipt]]
    ) -> Decision[tuple[Next, list[Receipt]]]:
        changed = accept_with_tools(thread, accepted, run_id, asker.request_tools, alias=asker.alias)
        return answer_next(thread, changed, message, new)

    async with context.quotas.reserve_slot(place.owner, place.thread_id, _size(message)) as slot:
        if prepared.files:
            # without its events: raises if the message would be refused now
            await _accept(context, place, lambda thread, accepted: Decision(follow(thread, accepted).answer))
            await context.files.keep_all(prepared.files)
        answer, receipts = await _accept(context, place, follow)
        if not isinstance(answer, Started) and answer != Queued(new.run_id):
            slot.give_back()
    return await context.desk.complete(place.owner, asker.results, receipts)


async def _accept(
    context: AgentContext, place: ThreadPlace, then: Following[tuple[Next, list[Receipt]]]
) -> tuple[Next, list[Receipt]]:
    answer, receipts = await context.desk.accept_with(
        place.owner, place.thread_id, place.asker.results, then, lambda thread, answer: answer
    )
    _refuse(answer)
    return answer, receipts


async def answer_again(
    context: AgentContext,
    place: ThreadPlace,
    *,
    instead_of: str | None,
    hold_for: float,
    after_run: str | None = None,
) -> StartedRun:
    """Another answer to the user's message before this one (or before the last one); with `after_run` only if
    no other run has started since that one. Raises `TooMany` as above."""
    _check_model(context)
    new = _new_run(context, place.asker, hold_for)
    async with context.quotas.reserve_slot(place.owner, place.thread_id, 0):
        return await _decide(
            context,
            place,
            new.run_id,
            lambda thread, now: runs.begin_again(thread, new, instead_of=instead_of, after_run=after_run),
        )


def _new_run(context: AgentContext, asker: Asker, hold_for: float) -> NewRun:
    return NewRun(
        context.clock.fresh("run"),
        hold_for,
        asker.claims,
        asker.request_tools,
        asker.alias,
        asker.spares_questions,
    )


def _size(message: UserMessage) -> int:
    return sum(len(part.text) for part in message.parts if isinstance(part, Text | Note))


async def _chat_title(
    context: AgentContext, place: ThreadPlace, message: UserMessage, name: Callable[[str], str]
) -> str:
    """The result of the agent's own function for the first message; empty for a chat that has a title."""
    if await context.log.read(place.owner, place.thread_id, lambda thread: thread.exists):
        return ""
    try:
        return tidy_title(name(text_of(message)))
    # a user's function may raise anything, and a chat starts without it too
    except Exception:
        log.exception("chat_title failed; using the first words of the message as the title")
        return ""


def _check_model(context: AgentContext) -> None:
    if isinstance(context.model, NoModel):
        raise NoAgent(
            "This server has tools but no agent: it serves calls, not conversations.",
            hint="Create the app from an Agent to chat with it.",
        )


async def stop_run(context: AgentContext, run: Run, reason: str) -> bool:
    """True if this stopped it; False if it had already ended. Its worker learns of it through the log."""
    return await context.log.decide(
        run.owner,
        run.thread_id,
        lambda thread, now: runs.stop(thread, run.run_id, reason),
        lambda thread, stopped: bool(stopped),
    )


async def _refuse_early(
    context: AgentContext, place: ThreadPlace, message: UserMessage, *, instead_of: str | None
) -> None:
    """Raises if the message would be refused now. It is decided again when it is stored."""
    results = () if instead_of else place.asker.results
    settles = [each.call_id for each in results if isinstance(each, Result)]
    new = _new_run(context, place.asker, 0.0)
    _refuse(
        await context.log.read(
            place.owner,
            place.thread_id,
            lambda thread: runs.begin(thread, message, new, instead_of=instead_of, settles=settles).answer,
        )
    )


async def _begin(
    context: AgentContext,
    place: ThreadPlace,
    message: UserMessage,
    *,
    instead_of: str | None,
    hold_for: float,
) -> StartedRun:
    new = _new_run(context, place.asker, hold_for)
    if context.chat_title is not None:
        new = replace(new, title=await _chat_title(context, place, message, context.chat_title))
    if place.asker.results and instead_of is None:
        return await _begin_after(context, place, message, new)
    return await _decide(
        context,
        place,
        new.run_id,
        lambda thread, now: runs.begin(thread, message, new, instead_of=instead_of),
    )


async def _begin_after(
    context: AgentContext, place: ThreadPlace, message: UserMessage, new: NewRun
) -> StartedRun:
    """Results and a new message in one append."""
    started, receipts = await context.desk.accept_with(
        place.owner,
        place.thread_id,
        place.asker.results,
        lambda thread, accepted: runs.begin_after(thread, accepted, message, new),
        lambda thread, answer: (_with_run(thread, answer[0]), answer[1]),
    )
    return replace(_started(started, new.run_id), receipts=tuple(receipts))


async def _decide(
    context: AgentContext, place: ThreadPlace, run_id: str, command: Command[Beginning]
) -> StartedRun:
    started = await context.log.decide(place.owner, place.thread_id, command, _with_run)
    return _started(started, run_id)


async def _answered_before(
    context: AgentContext, place: ThreadPlace, message: UserMessage
) -> StartedRun | None:
    """The run of the thread, if this message is already in it; None for a new one."""
    known, run = await context.log.read(
        place.owner,
        place.thread_id,
        lambda thread: (thread.user_message(message.message_id), thread.run_record()),
    )
    if known is None or run is None:
        return None
    if not is_same_message(known, message):
        raise _different()
    return StartedRun(run, again=True)


def _with_run(thread: ThreadState, beginning: Beginning) -> tuple[Beginning, Run | None]:
    return beginning, thread.run_record()


def _started(started: tuple[Beginning, Run | None], run_id: str) -> StartedRun:
    beginning, run = started
    _refuse(beginning)
    assert run is not None, "a thread with an answered message has a run"
    return StartedRun(run, again=run.run_id != run_id)


def _refuse(answer: Next) -> None:
    match answer:
        case NotStarted(why="busy"):
            raise Busy(
                "The assistant is still working on the last message.",
                hint="Wait for its answer, or stop it (POST /api/chat/{id}/stop, or `agent.stop(thread)`).",
            )
        case NotStarted(why="asked"):
            raise Unanswered("The thread waits for an answer.", hint=ANSWER_FIRST)
        case NotStarted(why="different_message"):
            raise _different()
        case NotStarted():
            raise NotFound("There is no such message in this thread.")
        case Started() | Known() | Queued():
            return


def _different() -> Malformed:
    return Malformed(
        "A different message with this id already exists in this thread.",
        hint="Give a new message a new id; to change the old one, send its id as messageId as well.",
    )
