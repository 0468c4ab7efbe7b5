"""Writes down what is sent over the wire, one line each, with ids that are the same every time.

A request is a line `{"send": …}`, then `{"status": …}`, then a `{"body": …}` or its frames, `{"frame": …}`.
"""

from __future__ import annotations

import json
import re

import httpx2

from tests.faces.awaiting.client import Json, Turn, read_turn

Line = dict[str, Json]

_IDS = re.compile(
    r"(?P<kind>call|run|apr|msg)_[0-9a-f]{32}|[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}"
)
_MARKS = re.compile(r"~[0-9a-f]{8}\b")


class Recorder:
    """One conversation. The requests use the true ids, what is written down does not."""

    def __init__(self, http: httpx2.AsyncClient) -> None:
        self.lines: list[Line] = []
        self._http = http
        self._names: dict[str, str] = {}

    async def post(self, path: str, body: object = None) -> Turn:
        return await self._send("POST", path, body, {})

    async def get(self, path: str, last_event_id: str | None = None) -> Turn:
        return await self._send("GET", path, None, {"last-event-id": last_event_id} if last_event_id else {})

    async def _send(self, method: str, path: str, body: object, headers: dict[str, str]) -> Turn:
        told = {"method": method, "path": path, "headers": headers, "body": body}
        self._write(send={name: value for name, value in told.items() if value})
        async with self._http.stream(method, path, headers=headers, json=body) as response:
            turn = await read_turn(response)
        self._write(status=turn.status)
        if turn.status != 200 or turn.body is not None:
            self._write(body=turn.body)
        for frame in turn.frames:
            self._write(frame={"id": frame.id, "data": frame.data})
        return turn

    def _write(self, **line: object) -> None:
        self.lines.append(json.loads(_MARKS.sub("~00000000", _IDS.sub(self._name, json.dumps(line)))))

    def _name(self, found: re.Match[str]) -> str:
        kind = found["kind"]
        number = len(self._names) + 1
        plain = f"{kind}_{number:032x}" if kind else f"00000000-0000-4000-8000-{number:012x}"
        return self._names.setdefault(found[0], plain)


def as_text(lines: list[Line]) -> str:
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def essence(lines: list[Line]) -> list[Line]:
    """What must be the same every time: how words are cut into pieces, and numbered, need not be."""
    told: list[Line] = []
    for line in lines:
        piece = line.get("frame", {}).get("data", "")
        words = _words(piece)
        last = told[-1].get("words") if told else None
        if words is not None and last is not None and last[0] == words[0]:
            told[-1] = {"words": (words[0], last[1] + words[1])}
        elif words is not None:
            told.append({"words": words})
        else:
            told.append({"data": piece} if piece else _unnumbered(line))
    return told


def _words(data: str) -> tuple[str, str] | None:
    if data and data[0] not in "<{[":
        return "text", data
    if not data.startswith('{"type":"content_block_delta"'):
        return None
    event = json.loads(data)
    kind, said = event["delta"].values()
    return f"{kind} {event['index']}", said


def _unnumbered(line: Line) -> Line:
    sent = line.get("send")
    return line if sent is None else {"send": {**sent, "headers": list(sent.get("headers", ()))}}
