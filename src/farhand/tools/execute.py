"""Runs a function that somebody else wrote, and turns whatever it does into an outcome.

Owns the deadline of one execution and the words for what went wrong. This is the one module of `tools` that
catches everything: a tool may raise anything, and whatever it raises is an outcome. It must not know
toolboxes, schemas or calls.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeAlias, TypeVar

import anyio
from msgspec import Struct

from farhand.core.outcome import Failure, Success
from farhand.core.settings import Limits
from farhand.core.size import size_in_words
from farhand.tools.plain import NotJson, is_small, plain, size_of
from farhand.tools.threads import in_thread

log = logging.getLogger("farhand.tools")

T = TypeVar("T")


class ToolFailed(Exception):
    """Raised by a tool to fail in its own words: model and people are told the message, without the name of a
    class before it."""


class Raised(Struct, frozen=True):
    """What a foreign function raised, as a value."""

    error: BaseException


def attempt(work: Callable[[], T]) -> T | Raised:
    """What `work` returns, or what it raised."""
    try:
        return work()
    # also SystemExit: a tool that calls sys.exit() must not end the server
    except BaseException as error:  # noqa: BLE001
        return Raised(error)


async def executed(
    name: str, function: Callable[..., object], arguments: dict[str, object], *, within: float, at_most: int
) -> Success | Failure:
    """The outcome of calling the function: on the loop if it is async, else in a thread.

    An output of more than `at_most` bytes of JSON is a Failure.
    """
    if within <= 0:
        return _too_late(name, within)
    outcome: Success | Failure | None = None
    with anyio.move_on_after(within) as deadline:
        outcome = await _run(partial(_outcome, name, at_most), function, arguments)
    if outcome is None or deadline.cancel_called:
        # also when the function caught its cancellation and returned something: it is too late for that
        return _too_late(name, within)
    return outcome


TOOL_FAILED = "The tool failed."
"""What people who chat are shown of an exception: its words are for the model and for the log."""


def failure_of(name: str, error: BaseException) -> Failure:
    """Class and message for the model; the traceback goes to the log and nowhere else."""
    if isinstance(error, ToolFailed):
        log.info("tool %s failed in its own words", name)
    else:
        log.warning("tool %s raised %s", name, type(error).__name__, exc_info=error)
    message = attempt(partial(str, error))
    kind = type(error).__name__
    told = message if isinstance(message, str) else ""
    if isinstance(error, ToolFailed) and told:
        return Failure(_cut(told))
    return Failure(_cut(f"{kind}: {told}" if told else kind), public=TOOL_FAILED)


def _cut(text: str) -> str:
    return text.encode(errors="replace")[:_ERROR_BYTES].decode(errors="ignore")


_ERROR_BYTES = Limits().error_text


_Judge: TypeAlias = Callable[[object], Success | Failure]
"""What a value that a function returned, or what it raised, is as an outcome."""


async def _run(
    judge: _Judge, function: Callable[..., object], arguments: dict[str, object]
) -> Success | Failure:
    if inspect.iscoroutinefunction(function):
        return await _judged(judge, await _on_loop(partial(function, **arguments)))
    ended = await _on_loop(partial(in_thread, partial(_called, judge, partial(function, **arguments))))
    if isinstance(ended, Success | Failure):
        return ended
    # an awaitable has to be awaited here; else there was no thread to be had
    return await _judged(judge, await _on_loop(lambda: ended) if inspect.isawaitable(ended) else ended)


def _called(judge: _Judge, work: Callable[[], object]) -> object:
    value = attempt(work)
    # becomes JSON in the thread as well: a large result must not hold up the loop
    return value if inspect.isawaitable(value) else judge(value)


async def _judged(judge: _Judge, value: object) -> Success | Failure:
    """On the loop only if that takes no time."""
    if isinstance(value, Raised) or is_small(value):
        return judge(value)
    return await in_thread(partial(judge, value))


async def _on_loop(work: Callable[[], Awaitable[object]]) -> object:
    task = _task_of_now()
    try:
        return await work()
    except BaseException as error:
        if _is_meant_for(task, error):
            raise
        return Raised(error)


def _is_meant_for(task: asyncio.Task[object] | None, error: BaseException) -> bool:
    """A cancellation that nobody asked for is the tool's own affair; it must not look like a stopped run."""
    if isinstance(error, asyncio.CancelledError):
        return task is None or task.cancelling() > 0
    if isinstance(error, GeneratorExit):
        # a coroutine is closed from outside of its task; from inside, it is the tool that raised this
        return task is None or task is not _task_of_now()
    return isinstance(error, KeyboardInterrupt)


def _task_of_now() -> asyncio.Task[object] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def _outcome(name: str, at_most: int, value: object) -> Success | Failure:
    if isinstance(value, Raised):
        return failure_of(name, value.error)
    output = attempt(partial(plain, value))
    if isinstance(output, Raised):
        # a model or a struct may write itself, and raise what it likes
        told = f"`{name}` returned something that JSON cannot hold"
        if isinstance(output.error, NotJson):
            return Failure(f"{told}: {output.error}.")
        return Failure(f"{told}: {failure_of(name, output.error).error}.", public=TOOL_FAILED)
    size = size_of(output)
    return Success(output) if size <= at_most else _too_large(name, size, at_most)


def _too_large(name: str, size: int, at_most: int) -> Failure:
    told = f"The output of `{name}` is {size_in_words(size)}; at most {size_in_words(at_most)} is taken."
    return Failure(f"{told} The tool did run: ask it for less, or for a part at a time.")


def _too_late(name: str, within: float) -> Failure:
    return Failure(f"`{name}` did not finish within {max(within, 0):g} s; whether it took effect is unknown.")
