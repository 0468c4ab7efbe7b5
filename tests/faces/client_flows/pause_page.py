"""A page that pauses and resumes: it reads tags and Anthropic events as the first page of this wire did.

Its parser knows a list of tags. In `raw`, what begins with `<` goes to that parser and all else is JSON, in
which it takes two backslashes for one, since its server doubled them. What it does not know is lost to it,
so that a test sees what such a page would show.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html import unescape
from typing import Any

import httpx2

from farhand.wire.sse import Parser

# Any: bodies of a wire
Json = Any
Node = tuple[str, Json]
"""What the page shows: a kind, and its text or its attributes."""

_TAG = re.compile(
    r"<(content-block-(?:text|thinking|tool_call|tool_result|error)|awaiting_frontend_tools|meta_init)"
    r"((?:\s+\w+=\"[^\"]*\")*)\s*>(.*?)</\1>",
    re.DOTALL,
)
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')
_ESCAPED = re.compile(r"\\([nr\\])")
_ESCAPES = {"n": "\n", "r": "\r", "\\": "\\"}
_SECTION = re.compile(r"<!\[CDATA\[(.*?)\]\]>", re.DOTALL)


class PausePage:
    """`nodes` is the transcript, `pending` what the last pause asks for, `status` the state of the page."""

    def __init__(self, http: httpx2.AsyncClient, handlers: dict[str, Callable[[Json], str]]) -> None:
        self.http = http
        self.handlers = handlers
        self.agent_uuid: str | None = None
        self.nodes: list[Node] = []
        self.pending: list[Json] = []
        self.status = "idle"

    async def run(self, prompt: Json, *, query: str = "") -> None:
        # it also names one of its server's agents, which is nothing to us
        body = {"user_prompt": prompt, "agent_uuid": self.agent_uuid, "agent_type": "agent_frontend_tools"}
        await self._stream(f"/agent/run{query}", body)

    async def answer(self, *, query: str = "") -> None:
        """One result for every pending tool; an unknown one is an error that says so."""
        results = [self._result(tool) for tool in self.pending]
        body = {"agent_uuid": self.agent_uuid, "tool_results": results}
        await self._stream(f"/agent/tool_results{query}", body)

    def of(self, kind: str) -> list[Json]:
        return [value for name, value in self.nodes if name == kind]

    @property
    def text(self) -> str:
        return "".join(self.of("text"))

    def _result(self, tool: Json) -> Json:
        handler = self.handlers.get(tool["name"])
        if handler is None:
            text = f"Unknown frontend tool: {tool['name']}"
            return {"tool_use_id": tool["tool_use_id"], "content": text, "is_error": True}
        return {"tool_use_id": tool["tool_use_id"], "content": handler(tool["input"]), "is_error": False}

    async def _stream(self, path: str, body: Json) -> None:
        self.status, self.pending = "streaming", []
        async with self.http.stream("POST", path, json=body) as response:
            if response.status_code != 200:
                self.status = f"HTTP {response.status_code}"
                return
            parser, datas = Parser(), []
            async for piece in response.aiter_bytes():
                datas += [event.data for event in parser.feed(piece)]
        assert datas[-1] == "[DONE]"
        self._read(datas[:-1])
        if self.status == "streaming":
            self.status = "complete"

    def _read(self, datas: list[str]) -> None:
        [meta] = _nodes_of(datas[0])
        self.agent_uuid = meta[1]["agent_uuid"]
        if meta[1]["format"] == "xml":
            self._show(_nodes_of("".join(datas[1:])))
            return
        events = [data for data in datas[1:] if not data.startswith("<")]
        tags = [data for data in datas[1:] if data.startswith("<")]
        self._show(_nodes_of_events(events) + _nodes_of("".join(tags)))

    def _show(self, nodes: list[Node]) -> None:
        self.nodes += [node for node in nodes if node[0] != "awaiting_frontend_tools"]
        for kind, value in nodes:
            if kind == "awaiting_frontend_tools":
                self.status, self.pending = "awaiting_tools", value


def nodes_of_messages(messages: list[Json]) -> list[Node]:
    """Stored messages as the page shows them after a reload: the same nodes as of a stream."""
    nodes: list[Node] = []
    for message in messages:
        for block in message["content"]:
            if block["type"] == "tool_result":
                nodes.append(("tool_result", block["content"]))
            elif message["role"] == "assistant":
                nodes.append(_node_of_block(block))
    return nodes


def _node_of_block(block: Json) -> Node:
    match block["type"]:
        case "text":
            return "text", block["text"]
        case "thinking":
            return "thinking", block["thinking"]
        case _:
            return "tool_call", {"id": block["id"], "name": block["name"], "input": block["input"]}


def _nodes_of(text: str) -> list[Node]:
    return [_node(name, attributes, body) for name, attributes, body in _TAG.findall(text)]


def _node(name: str, written: str, body: str) -> Node:
    attributes = {key: unescape(value) for key, value in _ATTRIBUTE.findall(written)}
    kind = name.removeprefix("content-block-")
    if kind in ("awaiting_frontend_tools", "meta_init"):
        return kind, json.loads(attributes["data"])
    if kind == "tool_call":
        return kind, {
            **{key: attributes[key] for key in ("id", "name")},
            "input": json.loads(attributes["arguments"]),
        }
    if kind in ("tool_result", "error"):
        return kind, "".join(_SECTION.findall(body))
    return kind, _ESCAPED.sub(lambda found: _ESCAPES[found[1]], body)


def _nodes_of_events(datas: list[str]) -> list[Node]:
    nodes: list[Node] = []
    blocks: dict[int, Json] = {}
    for data in datas:
        event = json.loads(data.replace("\\\\", "\\"))
        if event["type"] == "content_block_start":
            blocks[event["index"]] = {**event["content_block"], "json": ""}
        elif event["type"] == "content_block_delta":
            _add(blocks[event["index"]], event["delta"])
        elif event["type"] == "content_block_stop":
            block = blocks[event["index"]]
            nodes.append(_node_of_block({**block, "input": json.loads(block["json"] or "{}")}))
    return nodes


def _add(block: Json, delta: Json) -> None:
    if delta["type"] == "input_json_delta":
        block["json"] += delta["partial_json"]
        return
    name = delta["type"].removesuffix("_delta")
    block[name] += delta[name]
