"""A page that speaks the awaiting wire: posts, reads whole responses, parses the tags."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree as ET

import httpx2

from farhand.wire.sse import Event, Parser

# Any: what comes over the wire is looked at by its fields, and a wrong one fails the test
Json = Any


@dataclass
class Turn:
    """One response, from its first frame to its end."""

    status: int
    frames: list[Event] = field(default_factory=list)
    body: Json = None
    content_type: str = ""

    @property
    def datas(self) -> list[str]:
        return [each.data for each in self.frames]

    @property
    def said(self) -> str:
        """All frames but the last marker, joined as a page joins them."""
        return "".join(data for data in self.datas if data != "[DONE]")

    def control(self, name: str) -> list[Json]:
        """The data of every control tag of this name."""
        return [attributes_of(data)["data"] for data in self.datas if data.startswith(f"<{name} ")]

    @property
    def errors(self) -> list[tuple[str, str]]:
        """Code and sentence of every error frame, as an XML parser reads them."""
        tags = [ET.fromstring(data) for data in self.datas if data.startswith("<content-block-error ")]
        return [(tag.get("code") or "", tag.text or "") for tag in tags]

    @property
    def meta(self) -> Json:
        [meta] = self.control("meta_init")
        return meta

    @property
    def agent_uuid(self) -> str:
        return str(self.meta["agent_uuid"])

    @property
    def pause(self) -> list[Json]:
        """The entries of the pause this response ended with."""
        [pause] = self.control("awaiting_frontend_tools")
        return list(pause)

    @property
    def last_id(self) -> str:
        return self.frames[-1].id

    @property
    def text(self) -> str:
        return between(self.said, "content-block-text")


class Page:
    """One conversation on a server."""

    def __init__(self, http: httpx2.AsyncClient, agent_uuid: str | None = None, *, query: str = "") -> None:
        self.http = http
        self.agent_uuid = agent_uuid
        self._query = query

    async def run(self, prompt: object) -> Turn:
        body: dict[str, object] = {"user_prompt": prompt}
        if self.agent_uuid is not None:
            body["agent_uuid"] = self.agent_uuid
        turn = await self._post("/agent/run", body)
        if turn.status == 200:
            self.agent_uuid = turn.agent_uuid
        return turn

    async def answer(self, *results: dict[str, object]) -> Turn:
        return await self._post(
            "/agent/tool_results", {"agent_uuid": self.agent_uuid, "tool_results": list(results)}
        )

    async def stream(self, last_event_id: str | None = None) -> Turn:
        headers = {} if last_event_id is None else {"last-event-id": last_event_id}
        address = f"/agent/{self.agent_uuid}/stream{self._query}"
        async with self.http.stream("GET", address, headers=headers) as response:
            return await read_turn(response)

    @asynccontextmanager
    async def live(self, prompt: object) -> AsyncIterator[Live]:
        """A response that is read as it comes, and dropped when the block is left."""
        body = {"user_prompt": prompt, "agent_uuid": self.agent_uuid}
        async with self.http.stream("POST", f"/agent/run{self._query}", json=body) as response:
            live = Live(response)
            await live.until("<meta_init ")
            self.agent_uuid = live.turn.agent_uuid
            yield live

    @asynccontextmanager
    async def live_stream(self, last_event_id: str | None = None) -> AsyncIterator[Live]:
        headers = {} if last_event_id is None else {"last-event-id": last_event_id}
        address = f"/agent/{self.agent_uuid}/stream{self._query}"
        async with self.http.stream("GET", address, headers=headers) as response:
            yield Live(response)

    async def abort(self) -> Json:
        return (await self.http.post(f"/agent/{self.agent_uuid}/abort")).json()

    async def _post(self, path: str, body: object) -> Turn:
        async with self.http.stream("POST", path + self._query, json=body) as response:
            return await read_turn(response)


class Live:
    """A response on its way."""

    def __init__(self, response: httpx2.Response) -> None:
        self.turn = Turn(response.status_code)
        self._parser = Parser()
        self._chunks = response.aiter_bytes()

    async def until(self, part: str) -> Turn:
        """Everything up to a frame that has this in it, and what came in the same piece."""
        while not any(part in data for data in self.turn.datas):
            self.turn.frames += self._parser.feed(await anext(self._chunks))
        return self.turn

    async def rest(self) -> Turn:
        async for chunk in self._chunks:
            self.turn.frames += self._parser.feed(chunk)
        return self.turn


async def read_turn(response: httpx2.Response) -> Turn:
    kind = response.headers["content-type"]
    if kind != "text/event-stream":
        return Turn(response.status_code, body=json.loads(await response.aread()), content_type=kind)
    parser = Parser()
    turn = Turn(response.status_code, content_type=kind)
    async for chunk in response.aiter_bytes():
        turn.frames += parser.feed(chunk)
    return turn


def result(entry: Json, content: str, **more: object) -> dict[str, object]:
    return {"tool_use_id": entry["tool_use_id"], "content": content, **more}


def attributes_of(tag: str) -> dict[str, Json]:
    """The attributes of the first tag, as an HTML parser reads them; those that are JSON are read as such."""
    reader = _Attributes()
    reader.feed(tag)
    return {name: _json(value) for name, value in reader.found.items()}


def between(said: str, tag: str) -> str:
    """What all blocks of this kind say, with the escapes of streamed text undone."""
    blocks = [part.split(f"</{tag}>")[0] for part in said.split(f"<{tag}>")[1:]]
    return "".join(unescape(block) for block in blocks)


def unescape(text: str) -> str:
    marks = {"n": "\n", "r": "\r", "\\": "\\"}
    pieces, rest = [], text
    while "\\" in rest:
        head, _, rest = rest.partition("\\")
        pieces += [head, marks[rest[0]]]
        rest = rest[1:]
    return "".join([*pieces, rest])


class _Attributes(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if not self.found:
            self.found = {name: value or "" for name, value in attrs}


def _json(value: str) -> Json:
    try:
        return json.loads(value)
    except ValueError:
        return value
