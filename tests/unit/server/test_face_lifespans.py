"""What a face keeps open: entered before the first request, left when the app stops, by the same task."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager

import anyio
import pytest

from farhand.errors import FarhandError
from farhand.faces.base import Face
from farhand.server.face_lifespans import face_lifespans


def face(name: str, serving: Callable[[], AbstractAsyncContextManager[None]]) -> Face:
    return Face(name, routes=(), explain=_explain, serving=serving)


def _explain(error: FarhandError, status: int) -> bytes:
    return b"{}"


class Noted:
    def __init__(self) -> None:
        self.events: list[str] = []

    def serving(self, name: str) -> Callable[[], AbstractAsyncContextManager[None]]:
        @asynccontextmanager
        async def serve() -> AsyncIterator[None]:
            self.events.append(f"{name} entered")
            # only the task that entered it may leave it
            async with anyio.create_task_group():
                yield
            self.events.append(f"{name} left")

        return serve


async def test_faces_are_entered_in_order_and_left_in_reverse_by_another_task() -> None:
    noted, stack = Noted(), AsyncExitStack()
    faces = [face(name, noted.serving(name)) for name in ("one", "two")]
    await asyncio.create_task(stack.enter_async_context(face_lifespans(faces)))
    assert noted.events == ["one entered", "two entered"]
    await stack.aclose()
    assert noted.events[2:] == ["two left", "one left"]


async def test_a_face_that_cannot_be_entered_fails_the_start_and_the_others_are_left() -> None:
    class Broken(AbstractAsyncContextManager[None]):
        async def __aenter__(self) -> None:
            raise OSError("no such device")

        async def __aexit__(self, *_: object) -> None:
            raise AssertionError("never entered")

    noted = Noted()
    with pytest.raises(OSError, match="no such device"):
        async with face_lifespans([face("one", noted.serving("one")), face("two", Broken)]):
            raise AssertionError("not entered")
    assert noted.events == ["one entered", "one left"]


async def test_a_face_that_crashes_later_is_logged_and_the_others_stay(
    caplog: pytest.LogCaptureFixture,
) -> None:
    crash = asyncio.Event()

    @asynccontextmanager
    async def crashing() -> AsyncIterator[None]:
        async def fail() -> None:
            await crash.wait()
            raise OSError("gone")

        async with asyncio.TaskGroup() as group:
            group.create_task(fail())
            yield

    noted = Noted()
    async with face_lifespans([face("weak", crashing), face("one", noted.serving("one"))]):
        crash.set()
        async with asyncio.timeout(10):
            # a log tells nobody that it grew
            while "face weak crashed" not in caplog.text:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert noted.events == ["one entered"]
    assert noted.events == ["one entered", "one left"]
