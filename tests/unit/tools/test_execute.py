"""Whatever a function does, its execution has an outcome."""

from __future__ import annotations

import asyncio
import logging
import math
import sys
import threading
import types
from collections.abc import Awaitable, Callable, Generator
from contextlib import suppress
from typing import Any

import anyio
import pytest
from pydantic import BaseModel, model_serializer

from farhand.core.outcome import Failure, Success
from farhand.tools import execute
from farhand.tools.execute import CaughtError, ToolFailed, attempt, run_tool_function, to_failure
from farhand.tools.to_json import to_json
from tests.requirement import requirement

ENOUGH = 30.0
MIB = 1024 * 1024


async def run(
    function: Callable[..., object], *, within: float = ENOUGH, at_most: int = MIB, **arguments: object
) -> Success | Failure:
    return await run_tool_function("t", function, arguments, within=within, at_most=at_most)


def add(left: int, right: int = 1) -> int:
    return left + right


async def add_later(left: int, right: int = 1) -> int:
    await anyio.lowlevel.checkpoint()
    return left + right


def add_eventually(left: int, right: int = 1) -> Awaitable[int]:
    return add_later(left, right)


@requirement("tools:schema")
@pytest.mark.parametrize("function", [add, add_later, add_eventually])
async def test_sync_and_async_functions_are_executed_alike(function: Callable[..., object]) -> None:
    assert await run(function, left=2) == Success(3)
    assert await run(function, left=2, right=5) == Success(7)


@requirement("tools:schema")
async def test_a_sync_function_runs_beside_the_loop_and_an_async_one_on_it() -> None:
    async def here() -> int:
        return threading.get_ident()

    assert await run(here) == Success(threading.get_ident())
    assert await run(threading.get_ident) != Success(threading.get_ident())


class Silent(Exception):
    def __str__(self) -> str:
        raise RuntimeError("even this fails")


def raising(error: BaseException) -> Callable[[], object]:
    def function() -> object:
        raise error

    return function


def raising_later(error: BaseException) -> Callable[[], Awaitable[object]]:
    async def function() -> object:
        raise error

    return function


@requirement("tools:exception")
@pytest.mark.parametrize("make", [raising, raising_later])
@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ValueError("no such city"), "ValueError: no such city"),
        (KeyError("x"), "KeyError: 'x'"),
        (ValueError(), "ValueError"),
        (Silent(), "Silent"),
        (TimeoutError("of the tool itself"), "TimeoutError: of the tool itself"),
        (SystemExit(3), "SystemExit: 3"),
        (GeneratorExit(), "GeneratorExit"),
        (asyncio.CancelledError(), "CancelledError"),
        (ValueError("half \ud800"), "ValueError: half ?"),
    ],
)
async def test_whatever_is_raised_is_a_failure_with_class_and_message(
    make: Callable[[BaseException], Callable[[], object]],
    error: BaseException,
    expected: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    # half a character in a captured log cannot be sent to the process that collects the reports
    caplog.set_level(logging.CRITICAL, logger="farhand.tools")
    assert await run(make(error)) == Failure(expected, public="The tool failed.")


@pytest.mark.parametrize("make", [raising, raising_later])
@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ToolFailed("The shop is closed on Sundays."), Failure("The shop is closed on Sundays.")),
        (ToolFailed(), Failure("ToolFailed", public="The tool failed.")),
    ],
)
async def test_a_tool_may_fail_in_its_own_words(
    make: Callable[[BaseException], Callable[[], object]], error: BaseException, expected: Failure
) -> None:
    assert await run(make(error)) == expected


@requirement("tools:exception")
async def test_a_missing_argument_is_a_failure_that_names_it() -> None:
    failed = await run(add)
    assert isinstance(failed, Failure)
    assert failed.error.startswith("TypeError: add() missing 1 required positional argument: 'left'")
    assert "'left'" in str(await run(add_later))


async def test_a_traceback_goes_to_the_log_as_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "farhand.tools"):
        await run(raising(ValueError("no such city")))
    (record,) = caplog.records
    assert (record.levelno, record.getMessage()) == (logging.WARNING, "tool t raised ValueError")
    assert record.exc_info is not None


async def test_a_tool_that_fails_in_its_own_words_leaves_no_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.DEBUG, "farhand.tools"):
        await run(raising(ToolFailed("The shop is closed.")))
    (record,) = caplog.records
    assert (record.levelno, record.exc_info) == (logging.INFO, None)


@requirement("tools:exception")
def test_a_long_message_is_cut() -> None:
    assert len(to_failure("t", ValueError("é" * 10_000)).error.encode()) <= 4096


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (math.nan, "`t` returned a value that JSON cannot represent: the value is not a finite number."),
        ({"a": [b""]}, "`t` returned a value that JSON cannot represent: `a[0]` is a bytes."),
        ({1: 2}, "`t` returned a value that JSON cannot represent: the value has a key of type int"),
    ],
)
async def test_a_result_that_json_cannot_hold_is_a_failure_that_names_the_place(
    value: object, expected: str
) -> None:
    async def later() -> object:
        return value

    for function in (lambda: value, later):
        failed = await run(function)
        assert isinstance(failed, Failure)
        assert failed.error.startswith(expected)


class Grumpy(BaseModel):
    @model_serializer
    def grumble(self) -> str:
        raise OSError("not today")


async def test_an_outcome_is_a_result_like_any_other_struct() -> None:
    async def later() -> object:
        return Success({"a": 1})

    for function in (lambda: Success({"a": 1}), later):
        assert await run(function) == Success({"kind": "success", "output": {"a": 1}})


async def test_a_model_that_cannot_write_itself_is_a_failure() -> None:
    failed = await run(Grumpy)
    assert isinstance(failed, Failure)
    assert failed.error.startswith(
        "`t` returned a value that JSON cannot represent: PydanticSerializationError: "
    )
    assert "not today" in failed.error


@requirement("tools:exception")
async def test_a_sync_tool_that_does_not_finish_is_given_up() -> None:
    release = threading.Event()
    try:
        expected = Failure("`t` did not finish within 0.05 s; whether it took effect is unknown.")
        assert await run(release.wait, within=0.05) == expected
    finally:
        release.set()


@requirement("tools:exception")
async def test_an_async_tool_that_does_not_finish_is_cancelled() -> None:
    stopped = anyio.Event()

    async def wait() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            stopped.set()

    expected = Failure("`t` did not finish within 0.05 s; whether it took effect is unknown.")
    assert await run(wait, within=0.05) == expected
    assert stopped.is_set()


@requirement("tools:exception")
async def test_a_sync_function_that_returns_an_awaitable_has_the_same_deadline() -> None:
    def wait() -> Awaitable[None]:
        return anyio.sleep_forever()

    expected = Failure("`t` did not finish within 0.05 s; whether it took effect is unknown.")
    assert await run(wait, within=0.05) == expected


@requirement("tools:exception")
async def test_a_tool_that_answers_its_cancellation_is_too_late_anyway() -> None:
    async def stubborn() -> str:
        with suppress(asyncio.CancelledError):
            await anyio.sleep_forever()
        return "done after all"

    async def angry() -> None:
        try:
            await anyio.sleep_forever()
        except asyncio.CancelledError:
            raise RuntimeError("interrupted") from None

    for function in (stubborn, angry):
        outcome = await run(function, within=0.05)
        assert isinstance(outcome, Failure)
        assert outcome.error.startswith("`t` did not finish within 0.05 s")


@requirement("tools:exception")
@pytest.mark.parametrize("within", [0, -1.0])
async def test_without_time_left_the_tool_is_not_started(within: float) -> None:
    started: list[int] = []
    outcome = await run(lambda: started.append(1), within=within)
    assert outcome == Failure("`t` did not finish within 0 s; whether it took effect is unknown.")
    assert started == []


async def test_a_cancellation_from_outside_is_raised_and_reaches_the_tool() -> None:
    running = anyio.Event()
    seen: list[str] = []

    async def wait() -> None:
        running.set()
        try:
            await anyio.sleep_forever()
        except asyncio.CancelledError:
            seen.append("the tool")
            raise

    async def call() -> None:
        try:
            await run(wait)
        except asyncio.CancelledError:
            seen.append("the caller")
            raise

    async with anyio.create_task_group() as group:
        group.start_soon(call)
        await running.wait()
        group.cancel_scope.cancel()
    assert seen == ["the tool", "the caller"]


def test_closing_an_execution_is_not_taken_for_a_failure_of_the_tool() -> None:
    @types.coroutine
    def suspended() -> Generator[None, None, None]:
        yield

    waiting = execute._on_loop(suspended)
    waiting.send(None)
    # a coroutine that swallowed this would raise RuntimeError here
    waiting.close()


@requirement("tools:exception")
async def test_a_machine_without_threads_left_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    class NoThread:
        def __init__(self, **anything: Any) -> None: ...

        def start(self) -> None:
            raise RuntimeError("can't start new thread")

    monkeypatch.setattr(execute, "Thread", NoThread)
    assert await run(add, left=1) == Failure(
        "RuntimeError: can't start new thread", public="The tool failed."
    )


def test_an_attempt_is_what_was_returned_or_what_was_raised() -> None:
    assert attempt(lambda: 3) == 3
    raised = attempt(lambda: sys.exit(2))
    assert isinstance(raised, CaughtError)
    assert isinstance(raised.error, SystemExit)


def _later(function: Callable[..., object]) -> Callable[..., object]:
    async def later() -> object:
        await anyio.lowlevel.checkpoint()
        return function()

    return later


@requirement("tools:exception")
@pytest.mark.parametrize("later", [False, True])
async def test_an_output_over_the_limit_is_a_failure_that_names_both_sizes(*, later: bool) -> None:
    def large() -> list[str]:
        return ["x" * 1000] * 20_000

    outcome = await run(_later(large) if later else large)
    assert outcome == Failure(
        "The output of `t` is 20.1 MB; the limit is 1 MiB. "
        "The tool did run: request less, or one part at a time."
    )


@requirement("tools:exception")
async def test_the_limit_counts_bytes_of_json_and_is_itself_allowed() -> None:
    assert await run(lambda: "a" * 8, at_most=10) == Success("a" * 8)
    over = await run(lambda: "é" * 5, at_most=10)
    assert isinstance(over, Failure)
    assert "is 12 bytes; the limit is 10 bytes" in over.error


@requirement("tools:exception")
@pytest.mark.parametrize("large", ["x" * 100_000, [0] * 100_000, {str(n): n for n in range(50_000)}])
async def test_a_large_output_of_an_async_tool_becomes_json_beside_the_loop(
    large: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    def noted(value: object) -> object:
        seen.append(threading.get_ident())
        return to_json(value)

    monkeypatch.setattr(execute, "to_json", noted)
    assert await run(_later(lambda: large)) == Success(large)
    assert await run(_later(lambda: "small")) == Success("small")
    beside, here = seen
    assert beside != threading.get_ident()
    assert here == threading.get_ident()
