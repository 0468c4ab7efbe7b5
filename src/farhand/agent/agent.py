"""The public Agent: a model with tools. Serve it with `create_app`, or use it directly from Python.

Without an app it keeps its own store and runs inside the caller's event loop.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Literal, Self

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from farhand.agent.branding import Logo, StarterLike, make_branding
from farhand.agent.offered_tools import ChooseText, ChooseTools
from farhand.agent.pause import answer_pause, reaction_of, refusal_of
from farhand.agent.service import AgentService, Spec, check_owner
from farhand.agent.start_run import STOPPED_BY_USER
from farhand.core.approval import Answer
from farhand.core.call import Call, Phase
from farhand.core.event import Event, RunFailed, RunFinished, RunParked, TextAdded
from farhand.core.ids import is_chosen_id
from farhand.core.outcome import Outcome
from farhand.core.position import Position
from farhand.core.principal import LOCAL, Owner
from farhand.core.result import Accepted
from farhand.core.run import Run
from farhand.core.settings import Limits, Settings, Wait, check_wait
from farhand.core.thread import Text, UserMessage
from farhand.errors import BadSetting, Misuse, ResultMismatch, ShuttingDown
from farhand.eventlog.log import EventLog
from farhand.eventlog.reader import LogReader
from farhand.models.base import Model
from farhand.models.registry import load_model
from farhand.store.base import Store
from farhand.store.open import check_store, open_store
from farhand.tools.context import context_parameter
from farhand.tools.keyword_arguments import explain_arguments
from farhand.tools.to_json import is_text
from farhand.tools.toolbox import make_toolbox

SILENCE_SEC = 60.0
WAITING = "awaiting_frontend_tools"


class Pending(Struct, frozen=True):
    """An open call: it waits for a far hand, or for a person's approval (`approval_id`). `key` is the one it
    was made with, if a program made it."""

    call_id: str
    tool: str
    input: dict[str, object]
    approval_id: str | None = None
    thread: str = ""
    key: str | None = None


class RunResult(Struct, frozen=True, kw_only=True):
    """`stop_reason` is `awaiting_frontend_tools` at a pause, else why the run ended (`end`, `failed`, …)."""

    thread: str
    run_id: str
    text: str
    stop_reason: str
    pending: tuple[Pending, ...] = ()
    error: str | None = None


class Agent:
    @explain_arguments("Agent()")
    # each is an option that a user of the agent sets by name
    def __init__(  # noqa: PLR0913
        self,
        model: Model | str,
        *,
        base_url: str | None = None,
        tools: Iterable[object] | Callable[..., object] = (),
        frontend_tools: Iterable[object] = (),
        instructions: str | ChooseText = "",
        formatter: Literal["xml", "raw"] = "xml",
        wait: Wait | None = None,
        max_steps: int = Limits().max_steps,
        store: str | Store = "memory:",
        limits: Limits | None = None,
        title: str | None = None,
        welcome: str | None = None,
        starters: Iterable[StarterLike] = (),
        logo: Logo | None = None,
        words: Mapping[str, str] | None = None,
        chat_title: Callable[[str], str] | None = None,
    ) -> None:
        """`tools` and `instructions` may each be a function of the `Context`, sync or async: for tools and
        instructions per person.

        `title`, `welcome`, `starters` and `logo` are what the chat page shows before the first message: its
        name, a sentence, suggested prompts (a text, or a pair of title and text), and an image, as a URL or
        as a file that the app serves. `words` replaces texts of the page, such as `{"newChat": "Neuer
        Chat"}`. `chat_title` names a new chat from the text of its first message; it must not block.

        `store` and `limits` apply when the agent is used without an app.
        """
        if formatter not in ("xml", "raw"):
            raise BadSetting(f"formatter must be 'xml' or 'raw', not {formatter!r}.")
        if wait is not None:
            check_wait(wait, "wait")
        if not _is_count(max_steps):
            raise BadSetting(f"max_steps must be a whole number of at least 1, not {max_steps!r}.")
        check_store(store)
        _check_title(chat_title)
        if not isinstance(instructions, str) and not callable(instructions):
            raise BadSetting(
                f"instructions must be a string, or a function of the Context, not {instructions!r}."
            )
        if limits is not None and not isinstance(limits, Limits):
            raise BadSetting(f"limits must be a Limits, not {limits!r}.", hint="Write limits=Limits(…).")
        choose = _chooser(tools)
        self.spec = Spec(
            model=_model(model, base_url),
            toolbox=make_toolbox(() if choose is not None else _listed(tools), _listed(frontend_tools)),
            instructions=instructions,
            choose_tools=choose,
            chat_title=chat_title,
            formatter=formatter,
            wait=wait,
            branding=make_branding(title=title, welcome=welcome, starters=starters, logo=logo, words=words),
        )
        self.settings = Settings(limits=replace(limits or Limits(), max_steps=max_steps))
        self._store = store
        self._service: AgentService | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._opening = asyncio.Lock()

    @explain_arguments("run()")
    async def run(self, prompt: str, *, thread: str | None = None, owner: Owner = LOCAL) -> RunResult:
        """Sends one message; returns when the model has answered or waits for far hands."""
        service, run = await self._begin(prompt, thread, owner)
        return await _result(service, run, Position())

    @explain_arguments("stream()")
    async def stream(
        self, prompt: str, *, thread: str | None = None, owner: Owner = LOCAL
    ) -> AsyncIterator[Event]:
        """Like `run`, event by event, until the run ends or pauses."""
        service, run = await self._begin(prompt, thread, owner)
        with service.read(run) as reader:
            async for event in _until_pause(reader):
                yield event

    @explain_arguments("answer()")
    async def answer(
        self, thread: str, results: Sequence[tuple[str, Outcome | Answer]], *, owner: Owner = LOCAL
    ) -> RunResult:
        """Takes exactly one outcome for each pending call, or an `Answer` for a call that needs approval.

        Anything else raises `ValueError`, and nothing is applied.
        """
        check_owner(owner)
        _check_pairs(results)
        service = await self._open()
        pause = await service.pause(owner, thread)
        got = [call_id for call_id, _ in results]
        reactions = [reaction_of(call_id, answer) for call_id, answer in results]
        if not pause.open and not pause.calls:
            raise ResultMismatch([], got)
        # the next pause has to return to the caller too, instead of being held
        service.worker.prefer(pause.run.run_id, hold_for=0.0)
        receipts = await answer_pause(service.desk, pause, reactions)
        if not any(isinstance(receipt, Accepted) for receipt in receipts):
            raise refusal_of(pause, got, receipts)
        current = await service.last_run(owner, thread)
        if current.rests and current.waits:
            # nothing continues yet: an approval is followed by a wait, or a result came before its approval
            return _run_result(current, stop_reason=WAITING, pending=await _pending(service, current))
        return await _result(service, pause.run, Position(pause.run.last_seq))

    async def stop(self, thread: str, *, owner: Owner = LOCAL) -> bool:
        """Stops the thread's run and cancels its open calls; False if none was active."""
        check_owner(owner)
        service = await self._open()
        return await service.stop(owner, thread, STOPPED_BY_USER)

    async def close(self) -> None:
        """Ends the runs here. Runs stored in a file continue with the next Agent that opens it."""
        if self._service is not None:
            service, self._service = self._service, None
            await service.close()

    async def __aenter__(self) -> Self:
        await self._open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _open(self) -> AgentService:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            if self._service is not None:
                raise Misuse(
                    "This Agent is already running in another event loop.",
                    hint="Use it in one asyncio.run(), or write `async with agent:` inside each.",
                )
            self._loop, self._opening = loop, asyncio.Lock()
        async with self._opening:
            if self._service is None:
                store = await open_store(self._store) if isinstance(self._store, str) else self._store
                service = AgentService(self.spec, EventLog(store), settings=self.settings)
                # the program itself
                service.context.quotas.exempt = LOCAL
                await service.open()
                self._service = service
            return self._service

    async def _begin(self, prompt: str, thread: str | None, owner: Owner) -> tuple[AgentService, Run]:
        check_owner(owner)
        _check_words(prompt, thread)
        service = await self._open()
        fresh = service.clock.fresh
        message = UserMessage(fresh("msg"), (Text(prompt),))
        started = await service.start(owner, thread or fresh("thr"), message, hold_for=0.0)
        return service, started.run


def _chooser(tools: object) -> ChooseTools | None:
    """The function that chooses tools, if `tools` is one: its only parameter is a `Context`. Any other
    function is a tool."""
    if not inspect.isroutine(tools):
        return None
    takes = context_parameter(tools)
    return tools if takes is not None and len(inspect.signature(tools).parameters) == 1 else None


# `object`: not every caller checks types
def _check_pairs(results: object) -> None:
    if not isinstance(results, Collection) or not all(_is_pair(each) for each in results):
        raise Misuse(
            "results must be pairs of a call id and its result.",
            hint='Write answer(thread, [(call_id, Success("yes"))]).',
        )


def _is_pair(each: object) -> bool:
    return isinstance(each, list | tuple) and len(each) == 2 and isinstance(each[0], str)


def _listed(tools: object) -> Iterable[object]:
    return [tools] if callable(tools) or not isinstance(tools, Iterable) else tools


def _model(model: Model | str, base_url: str | None) -> Model:
    if isinstance(model, str):
        return load_model(model, base_url=base_url)
    if not hasattr(model, "stream"):
        raise BadSetting(
            f"model must be a name such as anthropic:…, or a Model, not {model!r}.",
            hint="" if isinstance(model, type) or not callable(model) else "Write ScriptedModel(function).",
        )
    if isinstance(model, type):
        raise BadSetting(
            f"model must be a Model, not the class {model.__name__}.",
            hint=f"Create one: {model.__name__}(…).",
        )
    if base_url is not None:
        raise BadSetting(
            "base_url applies only to a model given by name; this one already exists.",
            hint="Pass it to the model: OpenAIChat('llama3', base_url=…).",
        )
    return model


# `object`: not every caller checks types
def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _check_title(name: object) -> None:
    if name is not None and (not callable(name) or inspect.iscoroutinefunction(name)):
        raise BadSetting(f"chat_title must be a function of the first message, not {name!r}.")


def _check_words(prompt: object, thread: object) -> None:
    if not isinstance(prompt, str) or not is_text(prompt):
        raise Misuse(f"The prompt must be a string, not {prompt!r}.")
    if thread is not None and not (isinstance(thread, str) and is_chosen_id(thread)):
        raise Misuse(f"A thread id has 1 to 128 letters, digits or _ . : -; got {thread!r}.")


async def _result(service: AgentService, run: Run, after: Position) -> RunResult:
    text: list[str] = []
    last: Event | None = None
    with service.read(run, after) as reader:
        async for event in _until_pause(reader):
            last = event
            if isinstance(event, TextAdded):
                text.append(event.text)
    result = _run_result(run, text="".join(text))
    match last:
        case RunParked():
            return replace(result, stop_reason=WAITING, pending=await _pending(service, run))
        case RunFailed(message=message, detail=detail):
            # the caller is the program itself, which may see everything
            return replace(result, stop_reason="failed", error=detail or message)
        case RunFinished(reason=reason):
            return replace(result, stop_reason=reason or "end")
        case _:
            raise ShuttingDown("The agent was closed during a run.", hint="The run continues from its store.")


def _run_result(
    run: Run, *, text: str = "", stop_reason: str = "end", pending: tuple[Pending, ...] = ()
) -> RunResult:
    return RunResult(
        thread=run.thread_id, run_id=run.run_id, text=text, stop_reason=stop_reason, pending=pending
    )


async def _pending(service: AgentService, run: Run) -> tuple[Pending, ...]:
    pause = await service.pause(run.owner, run.thread_id)
    return tuple(pending_of(call) for call in pause.open)


def pending_of(call: Call) -> Pending:
    """An open call as programs see it."""
    return Pending(
        call.call_id,
        call.tool,
        to_builtins(call.input),
        approval_id=call.approval.approval_id if call.approval and call.phase is Phase.ASKING else None,
        thread=call.thread_id,
        key=None if call.request is None else call.request.key,
    )


async def _until_pause(reader: LogReader) -> AsyncIterator[Event]:
    while True:
        entries = await reader.next(SILENCE_SEC)
        if entries is None:
            return
        for entry in entries:
            yield entry.event
            if isinstance(entry.event, RunParked | RunFinished | RunFailed):
                return
