"""A WebSocket whose peer is gone or reads nothing is not waited for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from starlette.types import Message

from farhand.wire import websocket
from farhand.wire.websocket import NO_CREDENTIAL, Socket

WITHIN_SEC = 20.0


class Peer:
    """Sends nothing. With a fault, sending to it raises that; with `is_stalled`, sending never ends."""

    def __init__(self) -> None:
        self.fault: Exception | None = None
        self.is_stalled = False

    async def receive(self) -> Message:
        await asyncio.Event().wait()
        raise AssertionError("it sends nothing")

    async def send(self, message: Message) -> None:
        if self.fault is not None:
            raise self.fault
        if self.is_stalled:
            await asyncio.Event().wait()


@pytest.fixture
def peer() -> Peer:
    return Peer()


def open_socket(peer: Peer, *, idle_after: float = 1000.0, stall_after: float = 1000.0) -> Socket:
    socket = Socket(peer.receive, peer.send, idle_after=idle_after, stall_after=stall_after)
    socket.is_open = True
    return socket


@pytest.fixture(autouse=True)
async def limited() -> AsyncIterator[None]:
    async with asyncio.timeout(WITHIN_SEC):
        yield


async def test_a_close_does_not_wait_for_a_peer_that_reads_nothing(
    peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(websocket, "CLOSE_WITHIN_SEC", 0.01)
    peer.is_stalled = True
    socket = open_socket(peer)
    await socket.close(NO_CREDENTIAL)
    assert not socket.is_open


@pytest.mark.parametrize("fault", [OSError("gone"), RuntimeError("already closed")])
async def test_a_close_of_a_connection_that_is_gone_raises_nothing(peer: Peer, fault: Exception) -> None:
    peer.fault = fault
    socket = open_socket(peer)
    await socket.close(NO_CREDENTIAL)
    assert not socket.is_open


async def test_reading_ends_once_the_peer_takes_nothing_any_more(peer: Peer) -> None:
    socket = open_socket(peer, stall_after=0.01)
    peer.is_stalled = True
    with socket.in_use():
        async with asyncio.TaskGroup() as group:
            reading = group.create_task(socket.read())
            await asyncio.sleep(0)
            await socket.write(b"hello")
        assert reading.result() is None


async def test_a_close_at_the_moment_the_peer_was_idle_for_too_long_raises_nothing(peer: Peer) -> None:
    socket = open_socket(peer, idle_after=0.0)
    async with asyncio.TaskGroup() as group:
        reading = group.create_task(socket.read())
        # it begins to read, then its time is over and it has not noticed yet
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await socket.close(NO_CREDENTIAL)
    assert reading.result() is None
