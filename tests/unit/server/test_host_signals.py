"""Signal handlers inside a host: called first, passed on, and restored."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Iterator
from types import FrameType

import pytest

from farhand.server.host_signals import HostSignals


class Host:
    """A program with a handler of its own."""

    def __init__(self) -> None:
        self.received: list[int] = []
        self.drained = asyncio.Event()

    def handle(self, number: int, frame: FrameType | None) -> None:
        self.received.append(number)

    async def drain(self) -> None:
        self.drained.set()


@pytest.fixture
def host() -> Iterator[Host]:
    host = Host()
    before = signal.signal(signal.SIGTERM, host.handle)
    yield host
    signal.signal(signal.SIGTERM, before)


async def test_a_signal_drains_and_reaches_the_handler_that_was_there(host: Host) -> None:
    signals = HostSignals(host.drain)
    signals.open()
    signal.raise_signal(signal.SIGTERM)
    await asyncio.wait_for(host.drained.wait(), 10)
    assert host.received == [signal.SIGTERM]
    await signals.close()
    assert signal.getsignal(signal.SIGTERM) == host.handle


async def test_a_later_handler_is_kept_and_a_closed_app_only_calls_the_previous_one(host: Host) -> None:
    first, second = HostSignals(host.drain), HostSignals(host.drain)
    first.open()
    second.open()
    await first.close()
    signal.raise_signal(signal.SIGTERM)
    assert host.received == [signal.SIGTERM]
    await second.close()
    signal.raise_signal(signal.SIGTERM)
    assert host.received == [signal.SIGTERM] * 2


async def test_pythons_own_interrupt_and_the_default_action_are_left_alone() -> None:
    host = Host()
    before = (
        signal.signal(signal.SIGTERM, signal.SIG_DFL),
        signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    signals = HostSignals(host.drain)
    try:
        signals.open()
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        await signals.close()
    finally:
        signal.signal(signal.SIGTERM, before[0])
        signal.signal(signal.SIGINT, before[1])


def test_an_app_may_be_started_again_in_another_event_loop(host: Host) -> None:
    signals = HostSignals(host.drain)

    async def live() -> None:
        host.drained = asyncio.Event()
        signals.open()
        signal.raise_signal(signal.SIGTERM)
        await asyncio.wait_for(host.drained.wait(), 10)
        await signals.close()

    for _ in range(2):
        asyncio.run(live())
    assert host.received == [signal.SIGTERM] * 2


def test_another_thread_installs_nothing(host: Host) -> None:
    async def start_and_stop() -> None:
        signals = HostSignals(host.drain)
        signals.open()
        await signals.close()

    thread = threading.Thread(target=lambda: asyncio.run(start_and_stop()))
    thread.start()
    thread.join(20)
    assert signal.getsignal(signal.SIGTERM) == host.handle
