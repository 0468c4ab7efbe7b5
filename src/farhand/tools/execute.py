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
from typing import TypeVar

import anyio
from msgspec import Struct

from farhand.core.outcome import Failure, Success
from farhand.core.settings import Limits
from farhand.tools.plain import NotJson, plain
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
    name: str, function: Callable[..., object], arguments: dict[str, object], *, within: float
) -> Success | Failure:
    """The outcome of calling the function: on the loop if it is async, else in a thread."""
    if within <= 0:
        return _too_late(name, within)
    outcome: Success | Failure | None = None
    with anyio.move_on_after(within) as deadline:
        outcome = await _run(name, function, arguments)
    if outcome is None or deadline.cancel_called:
        # also when the function caught its cancellation and returned something: it is too late for that
        return _too_late(name, within)
    return outcome


def failure_of(error: BaseException) -> Failure:
    """Class and message; the traceback goes to the log, at debug level, and nowhere else."""
    log.debug("a tool raised", exc_info=error)
    message = attempt(partial(str, error))
    kind = type(error).__name__
    told = message if isinstance(message, str) else ""
    own_words = told if isinstance(error, ToolFailed) else ""
    text = own_words or (f"{kind}: {told}" if told else kind)
    return Failure(text.encode(errors="replace")[:_ERROR_BYTES].decode(errors="ignore"))


_ERROR_BYTES = Limits().error_text


async def _run(name: str, function: Callable[..., object], arguments: dict[str, object]) -> Success | Failure:
    if inspect.iscoroutinefunction(function):
        return _outcome(name, await _on_loop(partial(function, **arguments)))
    ended = await _on_loop(partial(in_thread, partial(_called, name, partial(function, **arguments))))
    if isinstance(ended, Success | Failure):
        return ended
    # an awaitable has to be awaited here; else there was no thread to be had
    return _outcome(name, await _on_loop(lambda: ended) if inspect.isawaitable(ended) else ended)


def _called(name: str, work: Callable[[], object]) -> object:
    value = attempt(work)
    # becomes JSON in the thread as well: a large result must not hold up the loop
    return value if inspect.isawaitable(value) else _outcome(name, value)


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


def _outcome(name: str, value: object) -> Success | Failure:
    if isinstance(value, Raised):
        return failure_of(value.error)
    output = attempt(partial(plain, value))
    if isinstance(output, Raised):
        # a model or a struct may write itself, and raise what it likes
        why = str(output.error) if isinstance(output.error, NotJson) else failure_of(output.error).error
        return Failure(f"`{name}` returned something that JSON cannot hold: {why}.")
    return Success(output)


def _too_late(name: str, within: float) -> Failure:
    return Failure(f"`{name}` did not finish within {max(within, 0):g} s; whether it took effect is unknown.")
