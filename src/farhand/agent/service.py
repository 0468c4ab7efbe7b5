"""A running agent: its log, its desk, its runs. Every face reads from the log, and writes through the desk or
the methods of this service."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan

from farhand.agent.attachments import PreparedMessage
from farhand.agent.branding import Branding
from farhand.agent.context import AgentContext
from farhand.agent.direct_calls import DirectCall, Overdue, attach_and_wait, call_directly, stop_calls
from farhand.agent.files import Files
from farhand.agent.keyed_calls import OnSettled, Waiting, request_id_of
from farhand.agent.observations import Observations
from farhand.agent.offered_tools import ChooseText, ChooseTools, RequestTools, Summaries
from farhand.agent.ownership import Membership, Ownership
from farhand.agent.pause import Pause, pause_of
from farhand.agent.post_service import Posts
from farhand.agent.quotas import Quotas
from farhand.agent.rerun import NeedsConfirmation, Rerun, RerunRequest, rerun
from farhand.agent.start_run import DELETED, Asker, StartedRun, ThreadPlace, start_run, stop_run
from farhand.agent.turns import Turns
from farhand.agent.worker import Worker
from farhand.calls.deadlines import Deadlines
from farhand.calls.desk import Desk
from farhand.calls.limits import OpenCallLimit
from farhand.clock import Clock, SystemClock
from farhand.core.call import Call, Phase, ProgramRequest
from farhand.core.decide import runs as run_rules
from farhand.core.decide import threads as thread_rules
from farhand.core.ids import is_chosen_id
from farhand.core.outcome import Cancelled, Failure, Outcome, canonical
from farhand.core.position import START, Position
from farhand.core.principal import (
    CLAIMS_BYTES,
    LOCAL,
    Claims,
    Owner,
    Principal,
    Who,
    are_claims,
    claims_of,
    space_of,
)
from farhand.core.run import Run
from farhand.core.settings import Limits, Settings, Wait
from farhand.core.state import ThreadState
from farhand.core.thread import AssistantMessage, Message, UserMessage
from farhand.core.tool import Tool
from farhand.errors import Malformed, Misuse, NotFound, ShuttingDown, StoreDown, Unreadable
from farhand.eventlog.feed import FeedReader
from farhand.eventlog.log import EventLog
from farhand.eventlog.reader import LogReader
from farhand.eventlog.writer import Tick
from farhand.models.base import ClosableModel, Model
from farhand.store.base import bounded_wait
from farhand.tools.context import Context
from farhand.tools.timeouts import parse_call_timeout
from farhand.tools.toolbox import Toolbox, ToolSource

log = logging.getLogger("farhand.runs")

CANCELLED = "cancelled by the program"


@dataclass(frozen=True)
class Spec:
    """What an agent consists of: its model, its tools, its texts."""

    model: Model
    toolbox: Toolbox = field(default_factory=Toolbox)
    instructions: str | ChooseText = ""
    choose_tools: ChooseTools | None = None
    chat_title: Callable[[str], str] | None = None
    formatter: str = "xml"
    """Default for the awaiting face."""
    wait: Wait | None = None
    """Default for the chat stream; None means the setting `chat.wait`."""
    branding: Branding = field(default_factory=Branding)


class AgentService:
    # what an agent works with, each passed in by the code that assembles it
    def __init__(  # noqa: PLR0913
        self,
        spec: Spec,
        eventlog: EventLog,
        *,
        settings: Settings | None = None,
        clock: Clock | None = None,
        sources: tuple[ToolSource, ...] = (),
        shows_tool_errors: bool = True,
        request_tools: RequestTools | None = None,
    ) -> None:
        self.spec = spec
        self.log = eventlog
        """Answers all queries that only read."""
        self.settings = settings or Settings()
        self.clock = clock or SystemClock()
        self.files = Files(eventlog, self.clock, self.settings.files)
        self.deadlines = Deadlines(eventlog)
        eventlog.expect = self.deadlines.expect
        self.membership = Membership(eventlog, lease_sec=self.settings.timeouts.lease)
        summaries = Summaries(spec.toolbox)
        self.desk = Desk(eventlog, self.settings.timeouts, summaries.of)
        ownership = Ownership(eventlog, self.settings.timeouts, self.membership)
        self.context = AgentContext(
            log=eventlog,
            desk=self.desk,
            clock=self.clock,
            model=spec.model,
            toolbox=spec.toolbox,
            settings=self.settings,
            open_call_limit=OpenCallLimit(eventlog, self.settings.limits),
            files=self.files,
            instructions=spec.instructions,
            chat_title=spec.chat_title,
            choose_tools=spec.choose_tools,
            remember=summaries.remember,
            request_tools=request_tools,
            sources=sources,
            shows_tool_errors=shows_tool_errors,
            quotas=Quotas(eventlog, self.settings.limits),
            tick=Tick(),
            is_sure=ownership.is_sure,
            still_holds=ownership.still_holds,
        )
        self.worker = Worker(self.context, self.deadlines, self.membership, ownership)
        self.turns = Turns(self.context, self.worker, wait=spec.wait or self.settings.chat.wait)
        self.observations: Observations | None = None
        self.posts = Posts(self.context, self.worker, self.turns)
        self._serving: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Starts working: picks up what a crash left behind, watches deadlines. Call it once."""
        if self._serving is not None:
            return
        await self.log.recover()
        ready = asyncio.Event()
        # the only task outside a group: it owns the group that all others live in
        self._serving = asyncio.create_task(self.worker.serve(ready))  # noqa: TID251
        self._serving.add_done_callback(self._log_end)
        self._serving.add_done_callback(lambda _: ready.set())
        await ready.wait()
        self._check_that_it_works()

    async def drain(self, seconds: float = 0.0) -> None:
        """Parks held runs; active ones get this many seconds to finish. Then every reader is disconnected."""
        await self.worker.drain(seconds)
        self.log.broker.close()

    async def close(self) -> None:
        """Stops working and closes the store. Unfinished runs continue at the next open."""
        self.worker.stop()
        self.log.broker.close()
        if self._serving is not None:
            await asyncio.wait([self._serving])
        await self.log.close()
        if isinstance(self.spec.model, ClosableModel):
            await self.spec.model.close()

    async def start(
        self,
        owner: Owner,
        thread_id: str,
        message: UserMessage,
        *,
        hold_for: float,
        instead_of: str | None = None,
        asker: Asker | None = None,
    ) -> StartedRun:
        """Starts a run that answers this message; `hold_for` 0 parks it as soon as it waits for a far
        hand."""
        place = ThreadPlace(owner, thread_id, asker or Asker())
        prepared = PreparedMessage(message)
        started = start_run(self.context, place, prepared, instead_of=instead_of, hold_for=hold_for)
        return await bounded_wait(self.log, started)

    async def tools(self, principal: Principal) -> Sequence[Tool]:
        """The tools that a run of this person gets."""
        person = Context(owner=principal.owner, claims=principal.claims)
        return (await self.context.offered(person)).tools()

    async def stop(self, owner: Owner, thread_id: str, reason: str) -> bool:
        """True if a run or a call without a run was stopped, False if none was active; raises `NotFound` for
        an unknown thread."""
        stopped = await bounded_wait(self.log, stop_calls(self.context, owner, thread_id, reason))
        run = await self.log.last_run(owner, thread_id)
        if run is None and not stopped and await self.log.get_thread(owner, thread_id) is None:
            raise NotFound("There is no such thread.")
        if run is None or not run.active:
            return stopped
        self.worker.flush(run.run_id)
        return await bounded_wait(self.log, stop_run(self.context, run, reason)) or stopped

    async def last_run(self, owner: Owner, thread_id: str) -> Run:
        run = await self.log.last_run(owner, thread_id)
        if run is None:
            raise NotFound("There is no such thread.")
        return run

    async def now(self, run: Run) -> Run:
        """The same run as it is stored now."""
        return await self.log.get_run(run.owner, run.run_id) or run

    async def answered_by(self, run: Run) -> UserMessage | None:
        """The message that the run answers, if it still exists."""
        asked = run.user_message_id
        if asked is None:
            return None
        return await self.log.read(run.owner, run.thread_id, lambda thread: thread.user_message(asked))

    async def unfinished_step(self, run: Run, messages: Sequence[Message]) -> AssistantMessage | None:
        """What the model has written of the current step.

        `messages` were read after `run`: None if they already contain this step.
        """
        if not run.active or run.waits or _has_step(messages, run.run_id, run.step + 1):
            return None
        parts = await self.log.read(
            run.owner,
            run.thread_id,
            lambda thread: thread.unfinished_parts() if _is_last(thread, run) else (),
        )
        return AssistantMessage(run.run_id, run.step + 1, parts) if parts else None

    async def tool_of(self, call: Call) -> Tool | None:
        """The tool as it was when the call was opened."""
        return await self.log.get_tool(call.tool_version)

    async def rename(self, owner: Owner, thread_id: str, title: str) -> None:
        renamed = self.log.decide(owner, thread_id, lambda thread, now: thread_rules.rename(thread, title))
        await bounded_wait(self.log, renamed)

    async def disallow(self, owner: Owner, thread_id: str, tool: str) -> bool:
        """Its next call needs approval again; False if nothing was allowed."""
        taken_back = self.log.decide(
            owner, thread_id, lambda thread, now: thread_rules.disallow(thread, tool)
        )
        return await bounded_wait(self.log, taken_back)

    async def delete(self, owner: Owner, thread_id: str) -> bool:
        """Stops the thread's run and its calls, and removes the whole thread; False if there is none."""
        while True:
            try:
                run = await self.log.last_run(owner, thread_id)
            except Unreadable:
                # its run cannot be stopped, because nothing can advance it; the thread can still be removed
                run = None
            if run is not None and run.active:
                await bounded_wait(self.log, stop_run(self.context, run, DELETED))
            if await bounded_wait(self.log, self.log.delete(owner, thread_id)):
                return True
            if await self.log.get_thread(owner, thread_id) is None:
                return False

    async def calls(self, run: Run, step: int | None = None) -> list[Call]:
        return await self.log.calls_of(run.owner, run.run_id, step)

    async def pause(self, owner: Owner, thread_id: str) -> Pause:
        """What the thread's last run waits for."""
        run = await self.last_run(owner, thread_id)
        return pause_of(run, await self.calls(run, run.step))

    async def mark_delivered(self, run: Run) -> None:
        """An answer that ended unread has now reached a reader. If the store is down, it stays unread: its
        response is over, and the answer can be read again."""
        # a reader does not have to wait for this
        noted = self.log.decide_uncommitted(
            run.owner,
            run.thread_id,
            lambda thread, now: run_rules.deliver(thread, run.run_id),
            lambda thread, delivered: delivered,
        )
        try:
            await noted
        except StoreDown as error:
            log.warning("could not store that the answer of run %s was read: %s", run.run_id, error)

    def read(self, run: Run, after: Position = START) -> LogReader:
        if self.observations is not None:
            return self.observations.reader(run, after)
        return LogReader(self.log, run, after)

    def observe(self) -> None:
        """From now on, keeps observations outside the log for the Inspector."""
        self.observations = Observations(self.log)
        self.desk.on_receipt = self.observations.note_receipt

    async def rerun(self, run: Run, request: RerunRequest, claims: Claims) -> Rerun | NeedsConfirmation:
        """A new run on a copy of the thread, from a step or a call of this one."""
        return await bounded_wait(self.log, rerun(self.context, run, request, claims))

    async def ping(self) -> None:
        """Raises `StoreDown` if the store cannot be read or written, `ShuttingDown` if the worker has
        stopped."""
        self._check_that_it_works()
        await self.log.check()

    # the options of a call, each set by name by its caller
    async def call(  # noqa: PLR0913
        self,
        tool: str,
        input: Mapping[str, object],
        *,
        thread: str,
        key: str | None = None,
        owner: Who = LOCAL,
        timeout_sec: float | None = None,
        within: float | None = None,
        claims: Claims | None = None,
        ends_with_caller: bool = False,
    ) -> Outcome | Waiting:
        """Makes one call from the program's own code: see `App.call`. With `ends_with_caller` a call with a
        key is cancelled with its last caller, unless one of them waits at another worker, or would leave it
        open."""
        self._check_loop()
        seconds = parse_call_timeout(timeout_sec)
        _check_within(within)
        space = check_owner(owner)
        claims = claims_of(owner) if claims is None else claims
        _check_call(tool, thread, input, claims, limits=self.settings.limits)
        requested = DirectCall(
            owner=space,
            thread_id=thread,
            tool=tool,
            input=dict(input),
            timeout_sec=seconds,
            caller_timeout_sec=within,
            keep_after_timeout=True,
            attach_if_open=True,
            ends_with_caller=ends_with_caller,
            request=self._request(key),
            claims=claims,
        )
        try:
            called = await call_directly(self.context, self.worker, requested)
        except (NotFound, Malformed) as fault:
            return Failure(fault.message)
        if isinstance(called, Overdue):
            return _waiting(called.call, key)
        return called.outcome or Cancelled("the call is gone")

    def _request(self, key: str | None) -> ProgramRequest | None:
        if key is None:
            return None
        request_id = request_id_of(key)
        return ProgramRequest(request_id, is_reported=not self.worker.direct.reporter.is_wanted(key))

    async def keyed_call(self, key: str, *, owner: Who = LOCAL) -> Call | None:
        """The call with this key as it is stored now."""
        return await self.log.get_requested(check_owner(owner), request_id_of(key))

    async def attach(self, key: str, *, owner: Who = LOCAL) -> Call | None:
        """The call with this key, once it has its outcome; None if there is none, or no longer. Nothing is
        opened, and cancelling the caller leaves the call as it is."""
        call = await self.keyed_call(key, owner=owner)
        return None if call is None else await attach_and_wait(self.context, self.worker, call)

    async def cancel(self, key: str, *, owner: Who = LOCAL, reason: str = CANCELLED) -> bool:
        """Settles the call with this key as cancelled; False if none is open."""
        call = await self.keyed_call(key, owner=owner)
        if call is None:
            return False
        return await bounded_wait(self.log.store, self.desk.cancel([call], reason)) > 0

    def on_settled(self, key_prefix: str, function: OnSettled) -> None:
        self.worker.direct.reporter.listen(key_prefix, function)

    async def execute(self, requested: DirectCall) -> Call | Overdue:
        """Like `call`, for another program: returns the call once it is settled, or when the caller's time is
        over. Raises for an invalid request."""
        return await call_directly(self.context, self.worker, requested)

    def feed(self, owner: Owner, after: int) -> FeedReader:
        """Events of this owner's runs, calls and clients, after this number."""
        return FeedReader(self.log, owner, after)

    def _check_loop(self) -> None:
        if asyncio.get_running_loop() is not self.log.broker.loop:
            raise Misuse(
                "This call was made on a different event loop from the one the app was started on.",
                hint="Make it there, for instance with asyncio.run_coroutine_threadsafe(…, loop).",
            )

    def _check_that_it_works(self) -> None:
        if self._serving is not None and self._serving.done():
            raise ShuttingDown(
                "This server has stopped working on runs.", hint="See its log for the reason; restart it."
            )

    def _log_end(self, serving: asyncio.Task[None]) -> None:
        if self.worker.stopped or serving.cancelled():
            return
        log.critical("the agent service stopped unexpectedly", exc_info=serving.exception())


# `object`: not every caller checks types
def check_owner(owner: object) -> Owner:
    """Whose space this is; raises `Misuse` for anything else."""
    if not isinstance(owner, Owner | Principal):
        raise Misuse(f"owner must be an Owner(tenant, subject) or a Principal, not {owner!r}.")
    return space_of(owner)


# as above
def _check_call(tool: object, thread: object, input: object, claims: object, *, limits: Limits) -> None:
    if not isinstance(tool, str):
        raise Misuse(f"A call names its tool with a string, not {tool!r}.", hint='Write call("name", {…}).')
    if not isinstance(thread, str) or not is_chosen_id(thread):
        raise Misuse(f"A thread id has 1 to 128 letters, digits or _ . : -; got {thread!r}.")
    if not are_claims(claims):
        raise Misuse(f"claims must be a JSON object of at most {CLAIMS_BYTES} bytes.")
    if not isinstance(input, Mapping):
        raise Misuse(f"The input of a call must be a dict, not {input!r}.")
    try:
        size = len(canonical(input))
    except (TypeError, ValueError) as error:
        raise Misuse(f"The input cannot be encoded as JSON: {error}") from None
    if size > limits.call_input:
        raise Misuse(f"The input is larger than {limits.call_input} bytes.")


def _check_within(seconds: object) -> None:
    if seconds is None:
        return
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or isnan(seconds):
        raise Misuse(f"`within` must be a number of seconds, or None, not {seconds!r}.")


def _waiting(call: Call, key: str | None) -> Waiting:
    is_asking = call.approval is not None and call.phase is Phase.ASKING
    return Waiting(call.call_id, call.approval.approval_id if is_asking and call.approval else None, key)


def _has_step(messages: Sequence[Message], run_id: str, step: int) -> bool:
    steps = [each for each in messages if isinstance(each, AssistantMessage) and each.run_id == run_id]
    return any(each.step >= step for each in steps)


def _is_last(thread: ThreadState, run: Run) -> bool:
    return thread.run is not None and thread.run.run_id == run.run_id
