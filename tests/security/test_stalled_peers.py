"""Peers that send requests and never read are disconnected, and what the server kept for them is freed."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.process import FarhandProcess, farhand_process
from tests.requirement import requirement

MIB = 1024 * 1024
GONE_WITHIN_SEC = 90


class Watched:
    """A server, its memory and its connections as the system counts them."""

    def __init__(self, server: FarhandProcess) -> None:
        self.server = server
        self.files = self._open_files()
        self.before = self.memory()

    def memory(self) -> int:
        status = Path(f"/proc/{self.server.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) * 1024

    def tell(self, what: str) -> int:
        """Memory beyond what it was before the attack; told to whoever runs the test with -s."""
        more = self.memory() - self.before
        sys.stdout.write(f"\n{what}: {self.before / MIB:.0f} MiB before, {more / MIB:+.1f} MiB after\n")
        return more

    async def all_gone(self) -> int:
        """Waits until no connection is left; the most memory it has seen meanwhile, beyond that before."""
        most = 0
        async with asyncio.timeout(GONE_WITHIN_SEC):
            # a few are the server's own: a database, a timer
            while self._open_files() > self.files + 10:
                most = max(most, self.memory() - self.before)
                await asyncio.sleep(0.05)
        return most

    def _open_files(self) -> int:
        return len(list(Path(f"/proc/{self.server.pid}/fd").iterdir()))


@pytest.fixture
async def watched() -> AsyncIterator[Watched]:
    stalled = {"FARHAND_LIMITS__STALLED_AFTER_SEC": "2"}
    # its memory is measured: nothing of it may be that of a parent
    async with (
        farhand_process("tests.chaos.agents:agent", env=stalled, fresh=True) as server,
        server.client() as client,
    ):
        assert (await client.get("/")).status_code == 200
        yield Watched(server)


@contextmanager
def silent(port: int, count: int, request: bytes) -> Iterator[list[socket.socket]]:
    """So many peers that ask and then do nothing."""
    peers: list[socket.socket] = []
    try:
        for _ in range(count):
            peer = socket.socket()
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            peer.connect(("127.0.0.1", port))
            peers.append(peer)
            # as much as the system takes, without waiting for the server
            peer.setblocking(False)
            peer.send(request)
        yield peers
    finally:
        for peer in peers:
            peer.close()


@requirement("serve:head-limits")
async def test_1500_requests_on_each_of_200_connections_leave_nothing_behind(watched: Watched) -> None:
    request = b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n" * 1_500
    with silent(watched.server.port, 200, request):
        most = await watched.all_gone()
        after = watched.tell("200 connections with 1,500 requests each")
    assert most < 120 * MIB
    assert after < 60 * MIB
    async with watched.server.client() as client:
        assert (await client.get("/")).status_code == 200


@requirement("serve:head-limits")
@pytest.mark.sweep
async def test_400_downloads_that_nobody_reads_leave_nothing_behind(watched: Watched) -> None:
    server = watched.server
    headers = {"x-farhand": "1", "content-type": "text/plain"}
    async with server.client() as client:
        uploaded = await client.post("/api/files", content=b"x" * 8 * MIB, headers=headers)
        ref = uploaded.json()["ref"]
    head = f"host: 127.0.0.1:{server.port}\r\nauthorization: Bearer {server.token}\r\n"
    request = f"GET /api/files/{ref} HTTP/1.1\r\n{head}\r\n".encode()
    after: list[int] = []
    for number in range(5):
        with silent(server.port, 400, request):
            # a piece or two of the file for each
            assert await watched.all_gone() < 400 * MIB
        after.append(watched.tell(f"400 unread downloads, time {number + 1}"))
        # the allocator may keep what was freed, but then one of the next attacks is served from it
        if number > 0 and after[-1] - after[-2] < 60 * MIB:
            break
    else:
        pytest.fail(f"memory grew with every attack: {after}")
    async with server.client() as client:
        assert (await client.get(f"/api/files/{ref}")).content == b"x" * 8 * MIB
