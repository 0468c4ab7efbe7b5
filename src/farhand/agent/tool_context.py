"""What a server tool does beside its own work: it reports progress, asks people and pages, and uses files.

A question is a call of its own, with the asking call as its parent. It stands in the same thread and run, so
every stream and the inbox show it; the model never sees it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import suppress
from typing import TypeVar

from msgspec import to_builtins

from farhand.agent.context import AgentContext
from farhand.agent.files import Label
from farhand.agent.offered_tools import OfferedTools
from farhand.calls.wait import wait_until_settled
from farhand.core.call import Call, Question
from farhand.core.decide.direct import AskerGone, LimitReached, OpenedQuestion, QuestionChanged, open_question
from farhand.core.decide.opening import Opening
from farhand.core.event import CallProgressed
from farhand.core.file import clean_name, media_type_of
from farhand.core.outcome import Cancelled, Outcome
from farhand.core.run import Run
from farhand.core.tool import Executor, Tool
from farhand.errors import Misuse, NotFound, ShuttingDown, StoreDown
from farhand.eventlog.pubsub import STORE_RETRY_SEC
from farhand.tools.context import Approved, Context
from farhand.tools.execute import ToolFailed, pause_deadline
from farhand.tools.forms import ANSWER_FORM
from farhand.tools.schema_admission import check_input
from farhand.tools.timeouts import effective_timeout, parse_call_timeout

log = logging.getLogger("farhand.calls")

T = TypeVar("T")

PROGRESS_SEC = 0.5
"""Between two reports of one tool; of several texts in this time, only the last one is sent."""
PROGRESS_TEXT = 1024


class OwnerFiles:
    """The files of the owner of one call."""

    def __init__(self, context: AgentContext, call: Call) -> None:
        self._files = context.files
        self._call = call
        self._saved = 0

    async def read(self, ref: str) -> bytes:
        found = await self._files.load(self._call.owner, ref)
        if found is None:
            raise NotFound(f"There is no file {ref}.")
        return found[1]

    async def save(self, data: bytes, *, name: str, media_type: str) -> str:
        # a tool may pass on what a model or a server elsewhere wrote
        kind = media_type_of(media_type)
        if kind is None:
            raise Misuse(f"{media_type!r} is not a media type.", hint="Pass one such as image/png.")
        self._saved += 1
        # a tool that is run again keeps the same file once
        known_as = f"{self._call.call_id}/{self._saved}"
        kept = await self._files.keep(
            self._call.owner, Label(clean_name(name), kind), data, known_as=known_as
        )
        return kept.ref


class ToolLink:
    """Connects one execution of a call to the agent. Ends with that execution: `close()`."""

    def __init__(
        self, context: AgentContext, call: Call, offered: OfferedTools, *, fence: int | None = None
    ) -> None:
        """`fence` is that of the claim on the call's run."""
        self.files = OwnerFiles(context, call)
        self._offered = offered
        self._context = context
        self._call = call
        self._fence = fence
        self._loop = asyncio.get_running_loop()
        self._text: str | None = None
        self._reporting: asyncio.Task[None] | None = None
        self._questions = 0
        self._waiting: set[asyncio.Task[object]] = set()
        """The tasks that tool threads wait for."""

    # --------------------------------------------------------------------------------------- progress

    def progress(self, text: str) -> None:
        """May be called from any thread."""
        with suppress(RuntimeError):
            # if the loop is closed, nobody watches any more
            self._loop.call_soon_threadsafe(self._note, str(text)[:PROGRESS_TEXT])

    def _note(self, text: str) -> None:
        self._text = text
        if self._reporting is None:
            # cancelled by `close()`, which ends every execution
            self._reporting = self._loop.create_task(self._report())

    async def _report(self) -> None:
        call = self._call
        while self._text is not None:
            text, self._text = self._text, None
            request_id = None if call.request is None else call.request.request_id
            notice = CallProgressed(call.call_id, call.tool, text, request_id)
            with suppress(StoreDown):
                # the next report replaces it
                await self._context.log.add_notice(call.owner, notice, call.thread_id)
            await asyncio.sleep(PROGRESS_SEC)
        self._reporting = None

    def wait_for(self, work: Coroutine[object, object, T]) -> T:
        """Called from the thread of a tool. The work has the thread's context variables."""
        return asyncio.run_coroutine_threadsafe(self._followed(work), self._loop).result()

    async def _followed(self, work: Coroutine[object, object, T]) -> T:
        task = asyncio.current_task()
        assert task is not None, "work runs in a task"
        self._waiting.add(task)
        try:
            return await work
        finally:
            self._waiting.discard(task)

    async def close(self) -> None:
        ending = [*self._waiting, *([] if self._reporting is None else [self._reporting])]
        for task in ending:
            task.cancel()
        if ending:
            await asyncio.wait(ending)

    # -------------------------------------------------------------------------------------- questions

    async def ask(
        self, tool: str, input: dict[str, object], *, key: str | None, timeout_sec: float | None
    ) -> Outcome:
        if asyncio.get_running_loop() is not self._loop:
            raise Misuse(
                f"A tool asked `{tool}` on an event loop of its own.",
                hint="In a tool that is a plain function, write `current().wait_for(ask(…))`.",
            )
        self._questions += 1
        question = Question(self._call.call_id, f"#{self._questions}" if key is None else f"={key}")
        opening = self._opening(tool, input, question, parse_call_timeout(timeout_sec))
        asked = await self._open_once_stored(opening)
        with pause_deadline():
            return await self._outcome(_checked(asked, tool))

    async def _open_once_stored(self, opening: Opening) -> OpenedQuestion:
        """A tool that has begun must not fail because the store is down for a moment: its own time limit ends
        this. If the question was stored after all, it is found again."""
        while True:
            try:
                async with self._context.open_call_limit.reserve(self._call.owner.tenant) as calls_left:
                    return await self._decide(opening, calls_left)
            except StoreDown as error:
                log.debug("cannot store a question of call %s yet: %s", self._call.call_id, error)
                await asyncio.sleep(STORE_RETRY_SEC)

    def _opening(
        self, name: str, input: dict[str, object], question: Question, timeout_sec: float | None
    ) -> Opening:
        context, call = self._context, self._call
        tool = ANSWER_FORM if name == ANSWER_FORM.name else self._offered.get(name)
        _check(tool, name, input)
        assert tool is not None, "it was checked a moment ago"
        return Opening(
            call_id=context.clock.fresh("call"),
            tool=tool,
            input=input,
            step=call.step,
            is_direct=call.run_id is None,
            timeout_sec=timeout_sec or effective_timeout(tool, input),
            is_held=False,
            approval_id=context.clock.fresh("apr") if self._asks(tool, input) else None,
            parent=question,
            claims=call.claims,
        )

    def _asks(self, tool: Tool, input: dict[str, object]) -> bool:
        return tool is not ANSWER_FORM and self._offered.asks(tool, input)

    async def _decide(self, opening: Opening, calls_left: int) -> OpenedQuestion:
        call = self._call
        assert call.take is not None, "a tool that runs is held by the server"
        holder = call.take.holder
        return await self._context.log.decide(
            call.owner,
            call.thread_id,
            lambda thread, now: open_question(
                thread,
                opening,
                holder,
                now=now,
                settings=self._context.settings,
                calls_left=calls_left,
                fence=self._fence,
            ),
        )

    async def _outcome(self, question: Call) -> Outcome:
        try:
            ended = await wait_until_settled(self._context.log, question)
        except ShuttingDown:
            # the question stays open; the worker is about to cancel this tool
            await asyncio.Event().wait()
            raise
        if ended is None or ended.outcome is None:
            return Cancelled("the question is gone")
        return ended.outcome


def person_of(run: Run) -> Context:
    """The context for which a run's tools are chosen, before one of them is executed."""
    # a copy: changes by a tool must not reach the record
    claims = to_builtins(run.claims)
    return Context(owner=run.owner, claims=claims, thread_id=run.thread_id, run_id=run.run_id)


def context_of(call: Call, run: Run | None, link: ToolLink | None = None) -> Context:
    """The context of this call, from the log, so that it is the same days later and on another worker."""
    approval, approved = call.approval, None
    if approval is not None and approval.answer is not None and approval.answered_at is not None:
        approved = Approved(
            to_builtins(approval.by), approval.answered_at, is_edited=approval.asked_input is not None
        )
    return Context(
        owner=call.owner,
        claims=to_builtins(call.claims if run is None else run.claims),
        thread_id=call.thread_id,
        run_id=call.run_id,
        call_id=call.call_id,
        approval=approved,
        link=link,
    )


def _check(tool: Tool | None, name: str, input: dict[str, object]) -> None:
    if tool is None:
        raise Misuse(f"A tool asked `{name}`, but the agent has no such tool.")
    if tool.executor is Executor.SERVER:
        raise Misuse(
            f"A tool asked `{name}`, but that tool runs on the server.",
            hint="Call its function; ask people and pages.",
        )
    wrong = check_input(tool, input)
    if wrong is not None:
        raise Misuse(f"A tool asked `{name}` with a bad input: {wrong}")


def _checked(asked: OpenedQuestion, tool: str) -> Call:
    match asked:
        case Call():
            return asked
        case LimitReached(why=why):
            raise ToolFailed(why)
        case AskerGone():
            raise ToolFailed("The call of this tool has already ended.")
        case QuestionChanged():
            raise Misuse(
                f"The question `{tool}` was asked before with another input.",
                hint="Give each question a key of its own: ask(…, key=…).",
            )
