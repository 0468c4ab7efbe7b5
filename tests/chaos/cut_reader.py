"""Reads an active run over connections that are cut again and again; resumes from its position."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import cycle

import httpx2

from tests.chaos.fault_proxy import FaultProxy
from tests.stream_checker import SseFrame, read_sse

WITHIN_SEC = 50.0


@dataclass
class Cuts:
    """Where they happened; one may count in several places."""

    all: int = 0
    in_frame: int = 0
    in_letter: int = 0
    in_wait: int = 0

    def add(self, received: bytes) -> None:
        self.all += 1
        self.in_frame += not received.endswith(b"\n\n")
        self.in_letter += _ends_in_a_letter(received)


@dataclass
class CutReader:
    """Each connection brings its head and at most so many bytes; if those are not one whole event, the next
    may bring more."""

    lines: Sequence[tuple[FaultProxy, str]]
    """With the token that its server wants."""
    chat: str
    head: int
    size: int
    frames: list[SseFrame] = field(default_factory=list)
    cuts: Cuts = field(default_factory=Cuts)
    grown: asyncio.Event = field(default_factory=asyncio.Event)
    received: bytes = b""
    """Over the connection of now."""

    async def read(self) -> list[SseFrame]:
        """Until the response is at its end."""
        size = self.size
        async with asyncio.timeout(WITHIN_SEC):
            for line, token in cycle(self.lines):
                line.drop_each_after(self.head + size)
                await self._until_cut(line, token)
                size = self.size if self._take() else size + self.size
                if self.frames and self.frames[-1].data == "[DONE]":
                    return self.frames
                self.cuts.add(self.received)
        raise AssertionError("the lines have no end")

    async def until(self, word: str) -> str:
        """The first event with this in it, also on a connection that was not cut yet."""
        async with asyncio.timeout(WITHIN_SEC):
            while not (found := [each.data for each in self._heard() if word in each.data]):
                self.grown.clear()
                await self.grown.wait()
        return found[0]

    @property
    def position(self) -> str:
        return next((str(each.id) for each in reversed(self.frames) if each.id is not None), "0.0")

    def _take(self) -> bool:
        """Whether there was something with a position; what came without one comes again."""
        before = len(self.frames)
        self.frames = self._heard()
        while len(self.frames) > before and self.frames[-1].id is None:
            self.frames.pop()
        return len(self.frames) > before

    def _heard(self) -> list[SseFrame]:
        whole = self.received[: self.received.rfind(b"\n\n") + 2] if b"\n\n" in self.received else b""
        return [*self.frames, *read_sse(whole)]

    async def _until_cut(self, line: FaultProxy, token: str) -> None:
        self.received = b""
        headers = {"authorization": f"Bearer {token}"}
        # there is no TLS here, and to make it ready takes longer than all the rest
        client = httpx2.AsyncClient(headers=headers, trust_env=False, timeout=WITHIN_SEC, verify=False)
        with suppress(httpx2.HTTPError):
            async with client, client.stream("GET", self._address(line)) as response:
                assert response.status_code == 200, f"{response.status_code}"
                async for piece in response.aiter_bytes():
                    self.received += piece
                    self.grown.set()

    def _address(self, line: FaultProxy) -> str:
        return f"http://127.0.0.1:{line.port}/api/chat/{self.chat}/stream?after={self.position}"


def _ends_in_a_letter(received: bytes) -> bool:
    try:
        received.decode()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"
    return False
