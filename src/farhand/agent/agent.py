"""The public Agent: a model with tools. Served by `create_app`, or used from Python as it is.

Used without an app it keeps its own store and runs inside the caller's event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from types import TracebackType
from typing import Literal, Self

from msgspec import Struct
from msgspec.structs import replace

from farhand.agent.answers import Reaction, answer_pause
from farhand.agent.farhand import Farhand, Spec
from farhand.agent.reader import Reader
from farhand.core.approval import Answer
from farhand.core.call import Call, Phase
from farhand.core.event import Event, Position, RunFailed, RunFinished, RunParked, TextAdded
from farhand.core.outcome import Outcome
from farhand.core.principal import LOCAL, Owner
from farhand.core.result import Accepted
from farhand.core.run import Run
from farhand.core.settings import Limits, Settings
from farhand.core.thread import Text, UserMessage
from farhand.errors import BadSetting, ResultMismatch, ShuttingDown
from farhand.models.base import Model
from farhand.models.named import model_named
from farhand.store.address import open_store
from farhand.store.base import Store
from farhand.tools.toolbox import toolbox_of

SILENCE_SEC = 60.0
WAITING = "awaiting_frontend_tools"


class Pending(Struct, frozen=True):
    """A call that waits for a far hand, or for a person's yes (`approval_id`)."""

    call_id: str
    tool: str
    input: dict[str, object]
    approval_id: str | None = None


class RunResult(Struct, frozen=True, kw_only=True):
    """`stop_reason` is `awaiting_frontend_tools` at a pause, else why the run ended (`end`, `failed`, …)."""

    thread: str
    run_id: str
    text: str
    stop_reason: str
    pending: tuple[Pending, ...] = ()
    error: str | None = None


class Agent:
    # the knobs of an agent, each of them a word that its user writes
    def __init__(  # noqa: PLR0913
        self,
        model: Model | str,
        *,
        tools: Iterable[object] = (),
        frontend_tools: Iterable[object] = (),
        instructions: str = "",
        formatter: Literal["xml", "raw"] = "xml",
        max_steps: int = Limits().max_steps,
        store: str | Store = "memory:",
    ) -> None:
        if formatter not in ("xml", "raw"):
            raise BadSetting(f"formatter is 'xml' or 'raw', not {formatter!r}.")
        if max_steps < 1:
            raise BadSetting(f"max_steps is a number from 1 on, not {max_steps}.")
        self.spec = Spec(
            model=model_named(model) if isinstance(model, str) else model,
            toolbox=toolbox_of(tools, frontend_tools),
            instructions=instructions,
            formatter=formatter,
        )
        self.settings = Settings(limits=Limits(max_steps=max_steps))
        self._store = store
        self._farhand: Farhand | None = None
        self._opening = asyncio.Lock()

    async def run(self, prompt: str, *, thread: str | None = None, owner: Owner = LOCAL) -> RunResult:
        """One message, until the model has answered or waits for hands elsewhere."""
        farhand, run = await self._begin(prompt, thread, owner)
        return await _result(farhand, run, Position())

    async def stream(
        self, prompt: str, *, thread: str | None = None, owner: Owner = LOCAL
    ) -> AsyncIterator[Event]:
        """The same, event by event, until the run ends or pauses."""
        farhand, run = await self._begin(prompt, thread, owner)
        with farhand.read(run) as reader:
            async for event in _until_pause(reader):
                yield event

    async def answer(
        self, thread: str, results: Sequence[tuple[str, Outcome | Answer]], *, owner: Owner = LOCAL
    ) -> RunResult:
        """Exactly one outcome for each pending call, or an `Answer` for one that needs a yes.

        Anything else is a `ValueError`, and nothing is applied.
        """
        farhand = await self._open()
        pause = await farhand.pause(owner, thread)
        got = [call_id for call_id, _ in results]
        if not pause.open:
            raise ResultMismatch([], got)
        reactions = [_reaction(call_id, brought) for call_id, brought in results]
        # the next pause has to come back to the caller, too, instead of being held
        farhand.worker.prefer(pause.run.run_id, hold_for=0.0)
        receipts = await answer_pause(farhand.desk, pause, reactions)
        if not any(isinstance(receipt, Accepted) for receipt in receipts):
            raise ResultMismatch([], got)
        now = await farhand.last_run(owner, thread)
        if now.parked and now.waits:
            # nothing goes on yet: a yes is followed by a wait, or a result came before its yes
            return _told(now, stop_reason=WAITING, pending=await _pending(farhand, now))
        return await _result(farhand, pause.run, Position(pause.run.last_seq))

    async def close(self) -> None:
        """Ends what runs here. What was stored in a file goes on with the next Agent that opens it."""
        if self._farhand is not None:
            farhand, self._farhand = self._farhand, None
            await farhand.close()

    async def __aenter__(self) -> Self:
        await self._open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _open(self) -> Farhand:
        async with self._opening:
            if self._farhand is None:
                store = await open_store(self._store) if isinstance(self._store, str) else self._store
                farhand = Farhand(self.spec, store, settings=self.settings)
                await farhand.open()
                self._farhand = farhand
            return self._farhand

    async def _begin(self, prompt: str, thread: str | None, owner: Owner) -> tuple[Farhand, Run]:
        farhand = await self._open()
        fresh = farhand.clock.fresh
        message = UserMessage(fresh("msg"), (Text(prompt),))
        started = await farhand.start(owner, thread or fresh("thr"), message, hold_for=0.0)
        return farhand, started.run


def _reaction(call_id: str, brought: Outcome | Answer) -> Reaction:
    if isinstance(brought, Answer):
        return Reaction(call_id, answer=brought)
    return Reaction(call_id, brought)


async def _result(farhand: Farhand, run: Run, after: Position) -> RunResult:
    text: list[str] = []
    last: Event | None = None
    with farhand.read(run, after) as reader:
        async for event in _until_pause(reader):
            last = event
            if isinstance(event, TextAdded):
                text.append(event.text)
    told = _told(run, text="".join(text))
    match last:
        case RunParked():
            return replace(told, stop_reason=WAITING, pending=await _pending(farhand, run))
        case RunFailed(message=message):
            return replace(told, stop_reason="failed", error=message)
        case RunFinished(reason=reason):
            return replace(told, stop_reason=reason or "end")
        case _:
            raise ShuttingDown("The agent was closed in mid-run.", hint="The run goes on from its store.")


def _told(
    run: Run, *, text: str = "", stop_reason: str = "end", pending: tuple[Pending, ...] = ()
) -> RunResult:
    return RunResult(
        thread=run.thread_id, run_id=run.run_id, text=text, stop_reason=stop_reason, pending=pending
    )


async def _pending(farhand: Farhand, run: Run) -> tuple[Pending, ...]:
    pause = await farhand.pause(run.owner, run.thread_id)
    return tuple(Pending(call.call_id, call.tool, call.input, _question(call)) for call in pause.open)


def _question(call: Call) -> str | None:
    return call.approval.approval_id if call.approval and call.phase is Phase.ASKING else None


async def _until_pause(reader: Reader) -> AsyncIterator[Event]:
    while True:
        entries = await reader.next(SILENCE_SEC)
        if entries is None:
            return
        for entry in entries:
            yield entry.event
            if isinstance(entry.event, RunParked | RunFinished | RunFailed):
                return
