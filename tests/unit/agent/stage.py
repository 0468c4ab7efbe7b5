"""A running agent on a store, with a scripted model, and queries about its runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from farhand.agent.service import AgentService, Spec
from farhand.clock import Clock
from farhand.core.approval import Answer
from farhand.core.call import Call
from farhand.core.event import Event, RunFailed, RunFinished, RunParked, TextAdded
from farhand.core.outcome import Outcome
from farhand.core.position import START, Entry, Position
from farhand.core.principal import LOCAL
from farhand.core.result import Accepted, Receipt, Result
from farhand.core.run import Run
from farhand.core.settings import Settings
from farhand.core.thread import Message, Text, UserMessage
from farhand.eventlog.log import EventLog
from farhand.models.scripted import ScriptedModel
from farhand.models.scripted.model import Script, Step, check_history
from farhand.store.base import Store
from farhand.tools.toolbox import make_toolbox

PATIENCE_SEC = 20.0
"""Bounds every wait of a test; what is waited for comes at once."""

THREAD = "t1"
YES = Answer(approved=True)
NO = Answer(approved=False, reason="too dear")
E = TypeVar("E", bound=Event)


class Stage:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        script: Script | Sequence[Step | Script],
        *tools: object,
        settings: Settings | None = None,
    ) -> None:
        self.store = store
        self.log = EventLog(store)
        self.clock = clock
        self.model = ScriptedModel(script)
        self.service = AgentService(
            Spec(self.model, make_toolbox(tools)), self.log, settings=settings, clock=clock
        )

    async def say(self, text: str, *, hold_for: float = 0.0, message_id: str | None = None) -> Run:
        message = UserMessage(message_id or self.clock.fresh("msg"), (Text(text),))
        return (await self.service.start(LOCAL, THREAD, message, hold_for=hold_for)).run

    async def told(self, run: Run, *until: type[Event], after: Position = START) -> list[Event]:
        """What a reader hears, up to the first event of these kinds, or to a pause or the end."""
        return [entry.event for entry in await self.heard(run, *until, after=after)]

    async def heard(self, run: Run, *until: type[Event], after: Position = START) -> list[Entry]:
        last = until or (RunParked, RunFinished, RunFailed)
        found: list[Entry] = []
        with self.service.read(run, after) as reader:
            async with asyncio.timeout(PATIENCE_SEC):
                while not found or not isinstance(found[-1].event, last):
                    entries = await reader.next(PATIENCE_SEC)
                    assert entries is not None, f"the run ended without {last}: {found}"
                    found += _up_to(entries, last)
        return found

    async def stored(self, run: Run) -> Run:
        now = await self.log.get_run(run.owner, run.run_id)
        assert now is not None
        return now

    async def journal(self, run: Run) -> list[Event]:
        return [entry.event for entry in await self.log.entries(run)]

    async def messages(self) -> list[Message]:
        return await self.log.messages(LOCAL, THREAD)

    async def calls(self, run: Run) -> list[Call]:
        return await self.log.calls_of(run.owner, run.run_id)

    async def open_call(self, tool: str = "") -> Call:
        """The open call of this tool, or the only one there is."""
        calls = [call for call in await self.log.open_calls(LOCAL, THREAD) if tool in ("", call.tool)]
        assert len(calls) == 1, calls
        return calls[0]

    async def answer(self, call: Call, outcome: Outcome) -> None:
        result = Result(call_id=call.call_id, outcome=outcome)
        assert await self.service.desk.settle(LOCAL, result) == Accepted()

    async def decide(self, call: Call, answer: Answer) -> Receipt:
        assert call.approval is not None
        return await self.service.desk.approve(LOCAL, call.approval.approval_id, answer)

    async def outcomes(self, run: Run) -> list[Outcome | None]:
        return [call.outcome for call in await self.calls(run)]

    async def position(self, run: Run) -> Position:
        return Position((await self.stored(run)).last_seq)

    async def idle(self) -> None:
        """Until no run is worked on or held here."""

        async def nothing_runs() -> bool:
            return not self.service.worker._active

        await comes_true(nothing_runs)

    async def check(self) -> None:
        """What holds after every test: journals without gaps, a history that a provider would take."""
        run = await self.log.last_run(LOCAL, THREAD)
        if run is None:
            return
        entries = await self.log.entries(run)
        assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
        if not run.active:
            check_history(await self.messages())


async def comes_true(question: Callable[[], Awaitable[bool]]) -> None:
    """For facts that no event tells of: asks again and again, within bounds."""
    for _ in range(int(PATIENCE_SEC / 0.005)):
        if await question():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it did not come true")


def text_in(events: Sequence[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextAdded))


def kinds(events: Sequence[Event]) -> list[str]:
    return [type(event).__name__ for event in events]


def the(kind: type[E], events: Sequence[Event]) -> E:
    [found] = [event for event in events if isinstance(event, kind)]
    return found


def _up_to(entries: list[Entry], last: tuple[type[Event], ...]) -> list[Entry]:
    for index, entry in enumerate(entries):
        if isinstance(entry.event, last):
            return entries[: index + 1]
    return entries
