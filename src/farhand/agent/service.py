"""An agent at work: its log, its desk, its runs. Every face talks to this and to nothing behind it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan

from farhand.agent.appearance import Appearance
from farhand.agent.context import AgentContext
from farhand.agent.direct_calls import DirectCall, Overdue, attached, call_directly, stop_calls
from farhand.agent.files import Files
from farhand.agent.keyed_calls import OnSettled, Waiting, request_id_of
from farhand.agent.observations import Observations
from farhand.agent.offered_tools import BroughtTools, ChooseText, ChooseTools, Summaries
from farhand.agent.ownership import Membership, Ownership
from farhand.agent.pause import Pause, pause_of
from farhand.agent.posts import Posts
from farhand.agent.quotas import Quotas
from farhand.agent.rerun import Rerun, RerunRequest, Unasked, rerun
from farhand.agent.start_run import DELETED, Asker, StartedRun, ThreadPlace, answer_again, start_run, stop_run
from farhand.agent.thread_search import Matches, search_threads
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
from farhand.core.position import START, Entry, News, Position
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
from farhand.core.state import Allowed, ThreadState
from farhand.core.thread import AssistantMessage, ListedThread, Message, Thread, Used, UserMessage
from farhand.core.tool import Tool
from farhand.errors import Malformed, Misuse, NotFound, ShuttingDown
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
    """What an agent is: its model, its tools, its words."""

    model: Model
    toolbox: Toolbox = field(default_factory=Toolbox)
    instructions: str | ChooseText = ""
    choose_tools: ChooseTools | None = None
    formatter: str = "xml"
    """Default of the awaiting face."""
    wait: Wait | None = None
    """Default of the chat stream; None leaves it to the setting `chat.wait`."""
    appearance: Appearance = field(default_factory=Appearance)


class AgentService:
    # what an agent works with, each handed in by whoever assembles it
    def __init__(  # noqa: PLR0913
        self,
        spec: Spec,
        eventlog: EventLog,
        *,
        settings: Settings | None = None,
        clock: Clock | None = None,
        sources: tuple[ToolSource, ...] = (),
        shows_tool_errors: bool = True,
        brought: BroughtTools | None = None,
    ) -> None:
        self.spec = spec
        self.settings = settings or Settings()
        self.clock = clock or SystemClock()
        self.files = Files(eventlog, self.clock, self.settings.files)
        self.deadlines = Deadlines(eventlog)
        eventlog.expect = self.deadlines.expect
        self.membership = Membership(eventlog, lease_sec=self.settings.patience.lease)
        summaries = Summaries(spec.toolbox)
        self.desk = Desk(eventlog, self.settings.patience, summaries.of)
        ownership = Ownership(eventlog, self.settings.patience, self.membership.name)
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
            choose_tools=spec.choose_tools,
            remember=summaries.remember,
            brought=brought,
            sources=sources,
            shows_tool_errors=shows_tool_errors,
            quotas=Quotas(eventlog, self.settings.limits),
            tick=Tick(),
            is_sure=ownership.is_sure,
        )
        self.worker = Worker(self.context, self.deadlines, self.membership, ownership)
        self.turns = Turns(self.context, self.worker, wait=spec.wait or self.settings.chat.wait)
        self.observations: Observations | None = None
        self.posts = Posts(self.context, self.worker, self.turns)
        self._serving: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Begins to work: picks up what a crash left behind, watches deadlines. Once."""
        if self._serving is not None:
            return
        await self.context.log.recover()
        ready = asyncio.Event()
        # the one task without a group: it owns the group that all others live in
        self._serving = asyncio.create_task(self.worker.serve(ready))  # noqa: TID251
        self._serving.add_done_callback(self._say_why_it_ended)
        self._serving.add_done_callback(lambda _: ready.set())
        await ready.wait()
        self._check_that_it_works()

    async def drain(self, seconds: float = 0.0) -> None:
        """Parks what is held; what works gets so many seconds to end. Then every reader is sent away."""
        await self.worker.drain(seconds)
        self.context.log.broker.close()

    async def close(self) -> None:
        """Stops working and closes the store. What was under way goes on with the next open."""
        self.worker.stop()
        self.context.log.broker.close()
        if self._serving is not None:
            await asyncio.wait([self._serving])
        await self.context.log.close()
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
        """A run that answers this message; `hold_for` 0 parks it as soon as it waits for a far hand."""
        place = ThreadPlace(owner, thread_id, asker or Asker())
        started = start_run(self.context, place, message, instead_of=instead_of, hold_for=hold_for)
        return await bounded_wait(self.context.log, started)

    async def start_again(
        self,
        owner: Owner,
        thread_id: str,
        *,
        instead_of: str | None,
        hold_for: float,
        asker: Asker | None = None,
    ) -> StartedRun:
        """Another answer to the message before this one."""
        place = ThreadPlace(owner, thread_id, asker or Asker())
        started = answer_again(self.context, place, instead_of=instead_of, hold_for=hold_for)
        return await bounded_wait(self.context.log, started)

    async def tools(self, principal: Principal) -> Sequence[Tool]:
        """What a run of this person is offered."""
        person = Context(owner=principal.owner, claims=principal.claims)
        return (await self.context.offered(person)).tools()

    async def stop(self, owner: Owner, thread_id: str, reason: str) -> bool:
        """True if a run or a call without a run was stopped, False if none was active; an unknown thread is
        not found."""
        stopped = await bounded_wait(self.context.log, stop_calls(self.context, owner, thread_id, reason))
        run = await self.find_run(owner, thread_id)
        if run is None and not stopped and await self.thread(owner, thread_id) is None:
            raise NotFound("There is no such thread.")
        if run is None or not run.active:
            return stopped
        self.worker.flush(run.run_id)
        return await bounded_wait(self.context.log, stop_run(self.context, run, reason)) or stopped

    async def last_run(self, owner: Owner, thread_id: str) -> Run:
        run = await self.context.log.last_run(owner, thread_id)
        if run is None:
            raise NotFound("There is no such thread.")
        return run

    async def now(self, run: Run) -> Run:
        """The same run as it is stored now."""
        return await self.context.log.get_run(run.owner, run.run_id) or run

    async def find_run(self, owner: Owner, thread_id: str) -> Run | None:
        return await self.context.log.last_run(owner, thread_id)

    async def runs(self, owner: Owner, *, limit: int, after: str | None = None) -> list[Run]:
        """Of all threads, the last begun first."""
        return await self.context.log.runs(owner, limit=limit, after=after)

    async def run_of(self, owner: Owner, run_id: str) -> Run | None:
        return await self.context.log.get_run(owner, run_id)

    async def answered_by(self, run: Run) -> UserMessage | None:
        """The message that the run answers, if it is still there."""
        asked = run.user_message_id
        if asked is None:
            return None
        return await self.context.log.read(
            run.owner, run.thread_id, lambda thread: thread.user_message(asked)
        )

    async def journal(self, run: Run) -> list[Entry]:
        """All that is kept of what the run said."""
        return await self.context.log.entries(run)

    async def unfinished_step(self, run: Run, messages: Sequence[Message]) -> AssistantMessage | None:
        """What the model has written of the step under way.

        `messages` were read after `run`: None if they have this step already.
        """
        if not run.active or run.waits or _has_step(messages, run.run_id, run.step + 1):
            return None
        parts = await self.context.log.read(
            run.owner,
            run.thread_id,
            lambda thread: thread.unfinished_parts() if _is_last(thread, run) else (),
        )
        return AssistantMessage(run.run_id, run.step + 1, parts) if parts else None

    async def tool_of(self, call: Call) -> Tool | None:
        """The tool as it was when the call was opened."""
        return await self.context.log.get_tool(call.tool_version)

    async def news(self, owner: Owner, *, after: int, limit: int) -> list[News]:
        """A page of the owner's feed."""
        return await self.context.log.feed(owner, after=after, limit=limit)

    async def thread(self, owner: Owner, thread_id: str) -> Thread | None:
        return await self.context.log.get_thread(owner, thread_id)

    async def threads(self, owner: Owner, *, limit: int, after: Used | None = None) -> list[ListedThread]:
        """The last used first."""
        return await self.context.log.threads_of(owner, limit=limit, after=after)

    async def search(self, owner: Owner, words: str, *, limit: int, after: Used | None = None) -> Matches:
        """Of the chats, those that have all of the words in their title or in what the person said."""
        return await search_threads(self.context.log, owner, words, limit=limit, after=after)

    async def count_threads(self, owner: Owner) -> int:
        return await self.context.log.count_threads(owner)

    async def rename(self, owner: Owner, thread_id: str, title: str) -> None:
        renamed = self.context.log.decide(
            owner, thread_id, lambda thread, now: thread_rules.rename(thread, title)
        )
        await bounded_wait(self.context.log, renamed)

    async def allowed_in(self, owner: Owner, thread_id: str) -> list[Allowed]:
        """What a person allowed for the whole thread, the oldest first."""
        return await self.context.log.allowed_in(owner, thread_id)

    async def disallow(self, owner: Owner, thread_id: str, tool: str) -> bool:
        """Its next call is asked about again; False if nothing was allowed."""
        taken_back = self.context.log.decide(
            owner, thread_id, lambda thread, now: thread_rules.disallow(thread, tool)
        )
        return await bounded_wait(self.context.log, taken_back)

    async def delete(self, owner: Owner, thread_id: str) -> None:
        """Stops the thread's run and its calls, and removes all of it."""
        while True:
            run = await self.find_run(owner, thread_id)
            if run is not None and run.active:
                await bounded_wait(self.context.log, stop_run(self.context, run, DELETED))
            if await bounded_wait(self.context.log, self.context.log.delete(owner, thread_id)):
                return
            if await self.thread(owner, thread_id) is None:
                return

    async def messages(self, owner: Owner, thread_id: str) -> list[Message]:
        return await self.context.log.messages(owner, thread_id)

    async def call_of(self, owner: Owner, call_id: str) -> Call | None:
        return await self.context.log.get_call(owner, call_id)

    async def calls(self, run: Run, step: int | None = None) -> list[Call]:
        return await self.context.log.calls_of(run.owner, run.run_id, step)

    async def open_calls(self, owner: Owner, thread_id: str | None = None) -> list[Call]:
        return await self.context.log.open_calls(owner, thread_id)

    async def pause(self, owner: Owner, thread_id: str) -> Pause:
        """What the thread's last run waits for."""
        run = await self.last_run(owner, thread_id)
        return pause_of(run, await self.calls(run, run.step))

    async def mark_delivered(self, run: Run) -> None:
        """An answer that ended unread has reached somebody now."""
        # nobody who has read it should have to wait for the note
        await self.context.log.decide_uncommitted(
            run.owner,
            run.thread_id,
            lambda thread, now: run_rules.deliver(thread, run.run_id),
            lambda thread, delivered: delivered,
        )

    def read(self, run: Run, after: Position = START) -> LogReader:
        if self.observations is not None:
            return self.observations.reader(run, after)
        return LogReader(self.context.log, run, after)

    def observe(self) -> None:
        """From now on what is seen beside the log is kept for the Inspector."""
        self.observations = Observations(self.context.log)
        self.desk.on_receipt = self.observations.note_receipt

    async def rerun(self, run: Run, request: RerunRequest, claims: Claims) -> Rerun | Unasked:
        """A new run on a copy of the thread, from a step or a call of this one."""
        return await bounded_wait(self.context.log, rerun(self.context, run, request, claims))

    async def ping(self) -> None:
        """Raises `StoreDown` if the store cannot be read or written, `ShuttingDown` if nobody works now."""
        self._check_that_it_works()
        await self.context.log.check()

    # the options of a call, each of them a word that its caller writes
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
        """One call on the desk, from anyone's own loop: see `App.call`. With `ends_with_caller` a call with a
        key is cancelled with its last caller, unless one of them waits at another worker, or would leave it
        open."""
        self._check_loop()
        seconds = parse_call_timeout(timeout_sec)
        _check_within(within)
        space = _space(owner)
        claims = claims_of(owner) if claims is None else claims
        _check_call(thread, input, claims, self.settings.limits)
        requested = DirectCall(
            owner=space,
            thread_id=thread,
            tool=tool,
            input=dict(input),
            timeout_sec=seconds,
            within=within,
            keep=True,
            attach=True,
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
        return await self.context.log.get_requested(_space(owner), request_id_of(key))

    async def attach(self, key: str, *, owner: Who = LOCAL) -> Call | None:
        """The call with this key, once it has its outcome; None if there is none, or not any more. Nothing is
        opened, and a caller that is cancelled leaves the call as it is."""
        call = await self.keyed_call(key, owner=owner)
        return None if call is None else await attached(self.context, self.worker, call)

    async def cancel(self, key: str, *, owner: Who = LOCAL, reason: str = CANCELLED) -> bool:
        """Settles the call with this key as cancelled; False if there is none that is open."""
        call = await self.keyed_call(key, owner=owner)
        if call is None:
            return False
        return await bounded_wait(self.context.log.store, self.desk.cancel([call], reason)) > 0

    def on_settled(self, key_prefix: str, function: OnSettled) -> None:
        self.worker.direct.reporter.listen(key_prefix, function)

    async def execute(self, requested: DirectCall) -> Call | Overdue:
        """The same for a program elsewhere: the call, once it is settled, unless the caller's time is over
        before. A bad wish is raised."""
        return await call_directly(self.context, self.worker, requested)

    async def feed_span(self, owner: Owner) -> tuple[int, int]:
        """The first and the last number that the owner's feed has."""
        return await self.context.log.feed_span(owner)

    def feed(self, owner: Owner, after: int) -> FeedReader:
        """What happens to this owner's runs, calls and clients, after this number."""
        return FeedReader(self.context.log, owner, after)

    def _check_loop(self) -> None:
        if asyncio.get_running_loop() is not self.context.log.broker.loop:
            raise Misuse(
                "This call was made on another event loop than the one that the app was started on.",
                hint="Make it there, for instance with asyncio.run_coroutine_threadsafe(…, loop).",
            )

    def _check_that_it_works(self) -> None:
        if self._serving is not None and self._serving.done():
            raise ShuttingDown(
                "This server no longer works on runs.", hint="Its log says why; start it again."
            )

    def _say_why_it_ended(self, serving: asyncio.Task[None]) -> None:
        if self.worker.stopped or serving.cancelled():
            return
        log.critical("the agent stopped working though nobody asked it to", exc_info=serving.exception())


# `object`: types are promises of those who check them, and not everybody does
def _space(owner: object) -> Owner:
    if not isinstance(owner, Owner | Principal):
        raise Misuse(f"owner is an Owner(tenant, subject) or a Principal, not {owner!r}.")
    return space_of(owner)


# as above
def _check_call(thread: object, input: object, claims: object, limits: Limits) -> None:
    if not isinstance(thread, str) or not is_chosen_id(thread):
        raise Misuse(f"A thread is named with 1 to 128 letters, digits or _ . : -, not {thread!r}.")
    if not are_claims(claims):
        raise Misuse(f"claims is a JSON object of at most {CLAIMS_BYTES} bytes.")
    if not isinstance(input, Mapping):
        raise Misuse(f"The input of a call is an object, as a dict, not {input!r}.")
    try:
        size = len(canonical(input))
    except (TypeError, ValueError) as error:
        raise Misuse(f"The input is nothing that JSON can hold: {error}") from None
    if size > limits.call_input:
        raise Misuse(f"The input is larger than {limits.call_input} bytes.")


def _check_within(seconds: object) -> None:
    if seconds is None:
        return
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or isnan(seconds):
        raise Misuse(f"`within` is a number of seconds, or None, not {seconds!r}.")


def _waiting(call: Call, key: str | None) -> Waiting:
    is_asking = call.approval is not None and call.phase is Phase.ASKING
    return Waiting(call.call_id, call.approval.approval_id if is_asking and call.approval else None, key)


def _has_step(messages: Sequence[Message], run_id: str, step: int) -> bool:
    steps = [each for each in messages if isinstance(each, AssistantMessage) and each.run_id == run_id]
    return any(each.step >= step for each in steps)


def _is_last(thread: ThreadState, run: Run) -> bool:
    return thread.run is not None and thread.run.run_id == run.run_id
