"""An agent at work: its store, its desk, its runs. Every face talks to this and to nothing behind it."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from farhand.agent.answers import Pause, pause_of
from farhand.agent.direct import Direct, Overdue, call_directly, fault_in, stop_calls
from farhand.agent.endings import DELETED
from farhand.agent.feed import FeedReader
from farhand.agent.files import Files
from farhand.agent.history import unfinished_step
from farhand.agent.kit import Kit
from farhand.agent.membership import Membership
from farhand.agent.quotas import Quotas
from farhand.agent.reader import Reader, entries_of_last_step, knows, step_end, told_until
from farhand.agent.threads import Place, Started, answer_again, start_run, stop_run
from farhand.agent.worker import Worker
from farhand.calls.change import Reply
from farhand.calls.deadlines import Deadlines
from farhand.calls.desk import Brought, Desk
from farhand.calls.room import Room
from farhand.clock import Clock, SystemClock
from farhand.core.call import Call
from farhand.core.event import START, AnswerHeard, Entry, News, Position, RunFailed, RunFinished, RunStarted
from farhand.core.outcome import Cancelled, Failure, Outcome
from farhand.core.principal import LOCAL, Owner
from farhand.core.result import Accepted, Receipt
from farhand.core.run import Run
from farhand.core.settings import Settings, Wait
from farhand.core.thread import AssistantMessage, Message, Thread, Used, UserMessage
from farhand.core.tool import Tool
from farhand.errors import NotFound, ShuttingDown
from farhand.models.base import Connected, Model
from farhand.store.base import DeleteThread, RenameThread, Stale, Store, WriteRun
from farhand.store.soon import soon
from farhand.tools.timeouts import asked_timeout
from farhand.tools.toolbox import Toolbox, ToolSource

log = logging.getLogger("farhand.runs")

JUST_ENDED_SEC = 60.0
STORED_SEC = 3.0
"""So long after they were told, words are stored, at the latest."""
TAKEN_OVER_SEC = 5.0
"""So long after its lease a dead worker's run goes on elsewhere, at the latest."""


@dataclass(frozen=True)
class Spec:
    """What an agent is: its model, its tools, its words."""

    model: Model
    toolbox: Toolbox = field(default_factory=Toolbox)
    instructions: str = ""
    formatter: str = "xml"
    """Default of the awaiting face."""
    wait: Wait | None = None
    """Default of the chat stream; None leaves it to the setting `chat.wait`."""


class Farhand:
    def __init__(
        self,
        spec: Spec,
        store: Store,
        *,
        settings: Settings | None = None,
        clock: Clock | None = None,
        sources: tuple[ToolSource, ...] = (),
        shows_tool_errors: bool = True,
    ) -> None:
        self.spec = spec
        self.settings = settings or Settings()
        self.clock = clock or SystemClock()
        self.files = Files(store, self.clock, self.settings.files)
        self.deadlines = Deadlines(store)
        self.membership = Membership(store, lease_sec=self.settings.patience.lease)
        self.desk = Desk(
            store, self.settings.patience, expect=self.deadlines.expect, worker=self.membership.name
        )
        self.kit = Kit(
            store=store,
            desk=self.desk,
            clock=self.clock,
            model=spec.model,
            toolbox=spec.toolbox,
            settings=self.settings,
            room=Room(store, self.settings.limits),
            files=self.files,
            instructions=spec.instructions,
            sources=sources,
            shows_tool_errors=shows_tool_errors,
            quotas=Quotas(store, self.settings.limits),
        )
        self.worker = Worker(self.kit, self.deadlines, self.membership)
        self._serving: asyncio.Task[None] | None = None

    @property
    def wait(self) -> Wait:
        """How a chat response waits if its request does not say so."""
        return self.spec.wait or self.settings.chat.wait

    async def open(self) -> None:
        """Begins to work: picks up what a crash left behind, watches deadlines. Once."""
        if self._serving is not None:
            return
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
        self.kit.store.hub.close()

    async def close(self) -> None:
        """Stops working and closes the store. What was under way goes on with the next open."""
        self.worker.stop()
        self.kit.store.hub.close()
        if self._serving is not None:
            await asyncio.wait([self._serving])
        await self.kit.store.close()
        if isinstance(self.spec.model, Connected):
            await self.spec.model.close()

    async def start(
        self,
        owner: Owner,
        thread_id: str,
        message: UserMessage,
        *,
        hold_for: float,
        instead_of: str | None = None,
    ) -> Started:
        """A run that answers this message; `hold_for` 0 parks it as soon as it waits for a far hand."""
        place = Place(owner, thread_id)
        started = start_run(self.kit, self.worker, place, message, instead_of=instead_of, hold_for=hold_for)
        return await soon(self.kit.store, started)

    async def start_again(
        self, owner: Owner, thread_id: str, *, instead_of: str | None, hold_for: float
    ) -> Started:
        """Another answer to the message before this one."""
        place = Place(owner, thread_id)
        started = answer_again(self.kit, self.worker, place, instead_of=instead_of, hold_for=hold_for)
        return await soon(self.kit.store, started)

    async def stop(self, owner: Owner, thread_id: str, reason: str) -> bool:
        """True if a run or a call without a run was stopped, False if none was active; an unknown thread is
        not found."""
        stopped = await soon(self.kit.store, stop_calls(self.kit, owner, thread_id, reason))
        run = await self.find_run(owner, thread_id)
        if run is None and not stopped and await self.thread(owner, thread_id) is None:
            raise NotFound("There is no such thread.")
        if run is None or not run.active:
            return stopped
        return await soon(self.kit.store, stop_run(self.kit, self.worker, run, reason)) or stopped

    async def last_run(self, owner: Owner, thread_id: str) -> Run:
        run = await self.kit.store.last_run(owner, thread_id)
        if run is None:
            raise NotFound("There is no such thread.")
        return run

    async def now(self, run: Run) -> Run:
        """The same run as it is stored now."""
        return await self.kit.store.get_run(run.owner, run.run_id) or run

    async def find_run(self, owner: Owner, thread_id: str) -> Run | None:
        return await self.kit.store.last_run(owner, thread_id)

    async def runs(self, owner: Owner, *, limit: int, after: str | None = None) -> list[Run]:
        """Of all threads, the last begun first."""
        return await self.kit.store.runs(owner, limit=limit, after=after)

    async def run_of(self, owner: Owner, run_id: str) -> Run | None:
        return await self.kit.store.get_run(owner, run_id)

    async def answered_by(self, run: Run) -> UserMessage | None:
        """The message that the run answers, if it is still there."""
        first = await self.kit.store.events(run.owner, run.run_id, limit=1)
        begun = first[0].event if first else None
        asked = begun.user_message_id if isinstance(begun, RunStarted) else None
        for message in await self.messages(run.owner, run.thread_id):
            if isinstance(message, UserMessage) and message.message_id == asked:
                return message
        return None

    async def journal(self, run: Run) -> list[Entry]:
        """All that is kept of what the run said."""
        return await told_until(self.kit.store, run, Position(run.last_seq, sys.maxsize))

    async def unfinished_step(self, run: Run, messages: Sequence[Message]) -> AssistantMessage | None:
        """What the model has written of the step under way.

        `messages` were read after `run`: None if they have this step already.
        """
        if not run.active or run.waits or _has_step(messages, run.run_id, run.step + 1):
            return None
        return unfinished_step(await entries_of_last_step(self.kit.store, run), run)

    async def tool_of(self, call: Call) -> Tool | None:
        """The tool as it was when the call was opened."""
        return await self.kit.store.get_tool(call.tool_version)

    async def news(self, owner: Owner, *, after: int, limit: int) -> list[News]:
        """A page of the owner's feed."""
        return await self.kit.store.feed(owner, after=after, limit=limit)

    async def thread(self, owner: Owner, thread_id: str) -> Thread | None:
        return await self.kit.store.get_thread(owner, thread_id)

    async def threads(self, owner: Owner, *, limit: int, after: Used | None = None) -> list[Thread]:
        """The last used first."""
        return await self.kit.store.threads(owner, limit=limit, after=after)

    async def count_threads(self, owner: Owner) -> int:
        return await self.kit.store.count_threads(owner)

    async def count_runs(self, owner: Owner, thread_id: str) -> int:
        return await self.kit.store.count_runs(owner, thread_id)

    async def rename(self, owner: Owner, thread_id: str, title: str) -> None:
        store = self.kit.store
        await soon(store, store.commit(RenameThread(owner, thread_id, title)))

    async def delete(self, owner: Owner, thread_id: str) -> None:
        """Stops the thread's run and removes all of it."""
        store = self.kit.store
        while True:
            run = await self.find_run(owner, thread_id)
            if run is not None and run.active:
                await soon(store, stop_run(self.kit, self.worker, run, DELETED))
            commit = await soon(store, store.commit(DeleteThread(owner, thread_id)))
            if not (isinstance(commit, Stale) and commit.why == "active"):
                return

    async def messages(self, owner: Owner, thread_id: str) -> list[Message]:
        return await self.kit.store.messages(owner, thread_id)

    async def call_of(self, owner: Owner, call_id: str) -> Call | None:
        return await self.kit.store.get_call(owner, call_id)

    async def calls(self, run: Run, step: int | None = None) -> list[Call]:
        return await self.kit.store.calls_of(run.owner, run.run_id, step)

    async def open_calls(self, owner: Owner, thread_id: str | None = None) -> list[Call]:
        return await self.kit.store.open_calls(owner, thread_id)

    async def pause(self, owner: Owner, thread_id: str) -> Pause:
        """What the thread's last run waits for."""
        run = await self.last_run(owner, thread_id)
        return pause_of(run, await self.calls(run, run.step))

    async def accept(
        self, run: Run, brought: Sequence[Brought], *, hold_for: float
    ) -> list[tuple[Brought, Receipt]]:
        """What one message brings for the calls of this run; anything else in it has no effect.

        A parked run that this moves on holds for so long at its next pause.
        """
        calls = await self.calls(run)
        known = {call.call_id for call in calls}
        known |= {call.approval.approval_id for call in calls if call.approval}
        own = [item for item in brought if _address(item) in known]
        self.worker.prefer(run.run_id, hold_for=hold_for)
        receipts: list[Receipt] = []
        try:
            receipts = await self.desk.accept(run.owner, *own)
        finally:
            if not any(isinstance(receipt, Accepted) for receipt in receipts):
                self.worker.forget(run.run_id)
        return list(zip(own, receipts, strict=True))

    async def end_of_step(self, run: Run, call_ids: Collection[str]) -> Position:
        """Where the last step with one of these calls ends in the journal: their outcomes follow."""
        steps = [call.step for call in await self.calls(run) if call.call_id in call_ids]
        if not steps:
            raise NotFound("None of these calls is known in this thread.")
        return await step_end(self.kit.store, run, max(steps))

    async def returns_text(self, call: Call) -> bool:
        tool = await self.tool_of(call)
        return tool is not None and tool.returns_text

    async def heard(self, run: Run) -> None:
        """An answer that ended unheard has reached somebody now."""
        await self.kit.store.commit(WriteRun(run_id=run.run_id, events=(AnswerHeard(),)))

    async def is_to_be_heard(self, run: Run) -> bool:
        """Whether a reader gets the last answer: it goes on, or it is still kept and has just ended, or ended
        unheard."""
        if run.active:
            return True
        last = await self._last_said(run)
        just_ended = (run.ended_at or 0.0) + JUST_ENDED_SEC > self.kit.store.now()
        return bool(last) and (just_ended or _ended_unheard(last))

    async def is_unheard(self, run: Run) -> bool:
        """Ended while nobody was reading, and read by nobody since."""
        return not run.active and _ended_unheard(await self._last_said(run))

    async def knows(self, run: Run, position: Position) -> bool:
        """Whether the journal has this position, so that exactly the rest of it can be told."""
        store = self.kit.store
        # where nobody else can take the run over, only a slow disk is waited for
        within = self.settings.patience.lease + TAKEN_OVER_SEC if store.is_shared else STORED_SEC
        return await knows(store, run, position, within=within)

    async def told_until(self, run: Run, position: Position) -> list[Entry]:
        """What a reader at this position has been told."""
        return await told_until(self.kit.store, run, position)

    def read(self, run: Run, after: Position = START, *, is_new: bool = False) -> Reader:
        """`is_new`: the run was begun this very moment, and nothing can have been missed."""
        reader = Reader(self.kit.store, run.owner, run.run_id, after)
        if is_new:
            reader.believe(run)
        return reader

    async def ping(self) -> None:
        """Raises `StoreDown` if the store cannot be read or written, `ShuttingDown` if nobody works now."""
        self._check_that_it_works()
        await self.kit.store.check()

    async def call(
        self,
        tool: str,
        input: dict[str, object],
        *,
        thread: str,
        owner: Owner = LOCAL,
        timeout_sec: float | None = None,
    ) -> Outcome:
        """One call on the desk, from anyone's own loop; returns its outcome when it has one.

        If the caller is cancelled, so is the call. `timeout_sec` is from 1 to 86 400; anything else is
        `Misuse`.
        """
        seconds = asked_timeout(timeout_sec)
        wish = Direct(owner=owner, thread_id=thread, tool=tool, input=input, timeout_sec=seconds)
        fault = fault_in(self.kit, wish)
        if fault is not None:
            return Failure(fault.message)
        called = await call_directly(self.kit, self.worker, wish)
        assert isinstance(called, Call), "this caller waits for as long as it takes"
        return called.outcome or Cancelled("the call is gone")

    async def execute(self, wish: Direct) -> Call | Overdue:
        """The same for a program elsewhere: the call, once it is settled, unless the caller's time is over
        before. A bad wish is raised."""
        return await call_directly(self.kit, self.worker, wish)

    async def feed_span(self, owner: Owner) -> tuple[int, int]:
        """The first and the last number that the owner's feed has."""
        return await self.kit.store.feed_span(owner)

    def feed(self, owner: Owner, after: int) -> FeedReader:
        """What happens to this owner's runs, calls and clients, after this number."""
        return FeedReader(self.kit.store, owner, after)

    async def _last_said(self, run: Run) -> list[Entry]:
        """The end of its journal; nothing if that was removed."""
        return await self.kit.store.events(run.owner, run.run_id, after=max(0, run.last_seq - 1))

    def _check_that_it_works(self) -> None:
        if self._serving is not None and self._serving.done():
            raise ShuttingDown(
                "This server no longer works on runs.", hint="Its log says why; start it again."
            )

    def _say_why_it_ended(self, serving: asyncio.Task[None]) -> None:
        if self.worker.stopped or serving.cancelled():
            return
        log.critical("the agent stopped working though nobody asked it to", exc_info=serving.exception())


def _address(item: Brought) -> str:
    return item.approval_id if isinstance(item, Reply) else item.call_id


def _has_step(messages: Sequence[Message], run_id: str, step: int) -> bool:
    steps = [each for each in messages if isinstance(each, AssistantMessage) and each.run_id == run_id]
    return any(each.step >= step for each in steps)


def _ended_unheard(last: Sequence[Entry]) -> bool:
    return any(isinstance(each.event, RunFinished | RunFailed) and not each.event.heard for each in last)
