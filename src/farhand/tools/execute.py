"""Runs the function of a tool and turns whatever it does into an outcome.

Owns the deadline of one execution, the worker threads and the wording of failures. This is the only module
of `tools` that catches everything: a tool may raise anything, and that is an outcome. It must not know
toolboxes, schemas or calls.

Worker threads are daemons: a function that never returns blocks neither the others nor the end of the
process. (anyio's own pool joins its threads at interpreter exit.)
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from functools import partial
from math import inf
from threading import Thread
from typing import TypeAlias, TypeVar

import anyio
from anyio import CapacityLimiter
from anyio.lowlevel import RunVar
from msgspec import Struct

from farhand.core.outcome import DID_RUN, UNKNOWN_EFFECT, Failure, Success
from farhand.core.settings import Limits, size_in_words
from farhand.tools.to_json import NotJson, is_small, json_size, to_json

log = logging.getLogger("farhand.tools")

T = TypeVar("T")

MOST_THREADS = 256

_limiters: RunVar[CapacityLimiter] = RunVar("farhand.tools.execute")


class ToolFailed(Exception):
    """Raised by a tool to fail with a message of its own, which is shown to the model and to people.

    ```python
    @tool
    def cancel_order(order_id: str) -> str:
        '''Cancel an order.

        Args:
            order_id: The number on the receipt.
        '''
        raise ToolFailed("This order has already been shipped.")
    ```
    """


MayStart: TypeAlias = Callable[[], Awaitable[bool]]
"""Asked right before the function of a tool is called, once there is a thread for it."""


class ToolNotStarted(Exception):
    """`may_start` returned False: the function was not called."""


class CaughtError(Struct, frozen=True):
    """An exception that a tool's function raised, as a value."""

    error: BaseException


def attempt(work: Callable[[], T]) -> T | CaughtError:
    """What `work` returns, or the exception that it raised."""
    try:
        return work()
    # also SystemExit: a tool that calls sys.exit() must not end the server
    except BaseException as error:  # noqa: BLE001
        return CaughtError(error)


async def run_tool_function(
    name: str,
    function: Callable[..., object],
    arguments: dict[str, object],
    *,
    within: float,
    at_most: int,
    may_start: MayStart | None = None,
) -> Success | Failure:
    """The outcome of calling the function: on the event loop if it is async, otherwise in a thread.

    An output of more than `at_most` bytes of JSON is a Failure. If `may_start` says no, `ToolNotStarted` is
    raised.
    """
    if within <= 0:
        return _too_late(name, within)
    outcome: Success | Failure | None = None
    with anyio.move_on_after(within) as deadline:
        _deadline.set(_Deadline(deadline))
        outcome = await _run(partial(_outcome, name, at_most), function, arguments, may_start)
    if outcome is None or deadline.cancel_called:
        # also if the function caught its cancellation and returned something: that is too late
        return _too_late(name, within)
    return outcome


class _Deadline:
    """The deadline of the tool that is being executed. It can be paused."""

    def __init__(self, scope: anyio.CancelScope) -> None:
        self._scope = scope
        self._waits = 0
        self._left = 0.0

    def pause(self) -> None:
        if not self._waits:
            self._left = self._scope.deadline - anyio.current_time()
            self._scope.deadline = inf
        self._waits += 1

    def resume(self) -> None:
        self._waits -= 1
        if not self._waits:
            self._scope.deadline = anyio.current_time() + self._left


_deadline: ContextVar[_Deadline] = ContextVar("farhand.deadline")


@contextmanager
def pause_deadline() -> Iterator[None]:
    """Inside a tool: the time in this block does not count. Blocks may overlap."""
    deadline = _deadline.get()
    deadline.pause()
    try:
        yield
    finally:
        deadline.resume()


TOOL_FAILED = "The tool failed."
"""What people in the chat see of an exception; its message is for the model and the log."""


def to_failure(name: str, error: BaseException) -> Failure:
    """Class and message for the model; the traceback goes only to the log."""
    if isinstance(error, ToolFailed):
        log.info("tool %s raised ToolFailed", name)
    elif isinstance(error, CancelledError):
        # that of a thread: its run was stopped, or this process is about to stop
        log.info("tool %s was cancelled while it waited", name)
    else:
        log.warning("tool %s raised %s", name, type(error).__name__, exc_info=error)
    message = attempt(partial(str, error))
    kind = type(error).__name__
    text = message if isinstance(message, str) else ""
    if isinstance(error, ToolFailed) and text:
        return Failure(_cut(text))
    return Failure(_cut(f"{kind}: {text}" if text else kind), public=TOOL_FAILED)


def _cut(text: str) -> str:
    return text.encode(errors="replace")[:_ERROR_BYTES].decode(errors="ignore")


_ERROR_BYTES = Limits().error_text


_ToOutcome: TypeAlias = Callable[[object], Success | Failure]
"""Turns what a function returned or raised into an outcome."""


async def _run(
    to_outcome: _ToOutcome,
    function: Callable[..., object],
    arguments: dict[str, object],
    may_start: MayStart | None,
) -> Success | Failure:
    if inspect.iscoroutinefunction(function):
        await _require(may_start)
        return await _convert(to_outcome, await _on_loop(partial(function, **arguments)))
    async with _limiter():
        # not before: where all threads are busy, one may be waited for long
        await _require(may_start)
        work = partial(_call, to_outcome, partial(function, **arguments))
        ended = await _on_loop(partial(_start_thread, work))
    if isinstance(ended, Success | Failure):
        return ended
    # an awaitable has to be awaited here; anything else means that no thread could be started
    return await _convert(to_outcome, await _on_loop(lambda: ended) if inspect.isawaitable(ended) else ended)


async def _require(may_start: MayStart | None) -> None:
    if may_start is not None and not await may_start():
        raise ToolNotStarted


def _call(to_outcome: _ToOutcome, work: Callable[[], object]) -> object:
    value = attempt(work)
    # converted to JSON in the thread as well: a large result must not block the event loop
    return value if inspect.isawaitable(value) else to_outcome(value)


async def _convert(to_outcome: _ToOutcome, value: object) -> Success | Failure:
    """On the event loop only if the value is small."""
    if isinstance(value, CaughtError) or is_small(value):
        return to_outcome(value)
    return await run_in_thread(partial(to_outcome, value))


async def _on_loop(work: Callable[[], Awaitable[object]]) -> object:
    task = _current_task()
    try:
        return await work()
    except BaseException as error:
        if _is_meant_for(task, error):
            raise
        return CaughtError(error)


def _is_meant_for(task: asyncio.Task[object] | None, error: BaseException) -> bool:
    """A cancellation that nobody requested is the tool's own doing and must not look like a stopped run."""
    if isinstance(error, asyncio.CancelledError):
        return task is None or task.cancelling() > 0
    if isinstance(error, GeneratorExit):
        # a coroutine is closed from outside its task; inside the task, the tool itself raised this
        return task is None or task is not _current_task()
    return isinstance(error, KeyboardInterrupt)


def _current_task() -> asyncio.Task[object] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def _outcome(name: str, at_most: int, value: object) -> Success | Failure:
    if isinstance(value, CaughtError):
        return to_failure(name, value.error)
    output = attempt(partial(to_json, value))
    if isinstance(output, CaughtError):
        # a model or a struct may serialize itself, and raise anything
        message = f"`{name}` returned a value that JSON cannot represent"
        if isinstance(output.error, NotJson):
            return Failure(f"{message}: {output.error}.")
        return Failure(f"{message}: {to_failure(name, output.error).error}.", public=TOOL_FAILED)
    size = json_size(output)
    return Success(output) if size <= at_most else _too_large(name, size, at_most)


def _too_large(name: str, size: int, at_most: int) -> Failure:
    message = f"The output of `{name}` is {size_in_words(size)}; the limit is {size_in_words(at_most)}."
    return Failure(f"{message} {DID_RUN}: request less, or one part at a time.")


def _too_late(name: str, within: float) -> Failure:
    return Failure(f"`{name}` did not finish within {max(within, 0):g} s; {UNKNOWN_EFFECT}.")


async def run_in_thread(work: Callable[[], T]) -> T:
    """What `work` returns; it must not raise. If cancelled, the thread is abandoned and its slot freed."""
    async with _limiter():
        return await _start_thread(work)


def _limiter() -> CapacityLimiter:
    # one per event loop: a limiter cannot wake tasks of another loop
    limiter = _limiters.get(None)
    if limiter is None:
        limiter = CapacityLimiter(MOST_THREADS)
        _limiters.set(limiter)
    return limiter


def _start_thread(work: Callable[[], T]) -> asyncio.Future[T]:
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()
    context = copy_context()

    def report(value: T) -> None:
        if not done.cancelled():
            done.set_result(value)

    def body() -> None:
        value = context.run(work)
        # once the loop is closed, nobody waits for the value
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(report, value)

    Thread(target=body, name="farhand tool", daemon=True).start()
    return done
