"""An awaitable that is begun at once behaves like one that is awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Generator

import pytest

from farhand.wire.begun import Begun


async def ready(value: str) -> str:
    return value


async def late(turns: int, value: str) -> str:
    for _ in range(turns):
        await asyncio.sleep(0)
    return value


async def test_what_does_not_wait_is_done_at_once() -> None:
    begun = Begun(ready("now"))
    assert begun.is_done
    assert begun.value == "now"
    assert await begun == "now"


@pytest.mark.parametrize("turns", [1, 2, 5])
async def test_what_waits_is_awaited_to_its_end(turns: int) -> None:
    begun = Begun(late(turns, "later"))
    assert not begun.is_done
    assert await begun == "later"
    assert await begun == "later"
    assert begun.is_done


async def test_a_future_may_be_done_before_it_is_awaited() -> None:
    future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    begun = Begun(future)
    asyncio.get_running_loop().call_soon(future.set_result, "set")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert await begun == "set"


async def test_an_error_is_raised_where_it_happens() -> None:
    async def fail(turns: int) -> None:
        await late(turns, "")
        raise KeyError("broken")

    with pytest.raises(KeyError):
        await Begun(fail(0))
    begun = Begun(fail(1))
    with pytest.raises(KeyError):
        await begun


async def test_a_cancel_reaches_what_waits_and_lets_it_clean_up() -> None:
    steps = []

    async def wait_for_ever() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            steps.append("cleaned up")
            raise

    async def begin() -> None:
        await Begun(wait_for_ever())

    async with asyncio.TaskGroup() as group:
        task = group.create_task(begin())
        await asyncio.sleep(0)
        task.cancel()
    assert task.cancelled()
    assert steps == ["cleaned up"]


async def test_a_cancel_that_is_caught_inside_stays_inside() -> None:
    async def survive() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "survived"
        return "never"

    async with asyncio.timeout(0.01):
        assert await Begun(survive()) == "survived"


async def test_an_awaitable_that_is_no_coroutine_will_do() -> None:
    class Plain:
        def __await__(self) -> Generator[object, None, str]:
            yield from asyncio.sleep(0).__await__()
            return "plain"

    assert await Begun(Plain()) == "plain"
