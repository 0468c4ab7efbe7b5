"""Hostile schemas, registered over HTTP: nothing is fetched, and the event loop is not blocked."""

from __future__ import annotations

import asyncio
import random
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from farhand import Agent, ScriptedModel
from tests.faces.client_tools.program import Json, Program, a_tool
from tests.faces.conftest import Serve

QUIET = ScriptedModel(lambda moment: "hm")

LONG = "".join(random.Random(1).choices("ab", k=200_000)) + "!"

PATTERNS = ["^(a+)+$", "(x+x+)+y", "^([ab]+)*$", "[ab]*a[ab]{100}c", "^(([ab])+.)+([ab])+$", "^(?=a)(a+)+$"]


@pytest.mark.parametrize("pattern", PATTERNS)
async def test_a_catastrophic_pattern_is_refused_or_harmless(serve: Serve, pattern: str) -> None:
    server = await serve(Agent(QUIET))
    notes = Program(server.http)
    schema = {"type": "object", "properties": {"text": {"type": "string", "pattern": pattern}}}
    async with _beating() as heart:
        registered = await notes.register(a_tool("read", parameters=schema))
        if registered.status_code == 200:
            for text in (LONG, LONG[-15_000:]):
                answer = await notes.execute("read", {"text": text})
                assert (answer.status_code, answer.json()["error"]["code"]) == (400, "INVALID_REQUEST")
        else:
            assert registered.json()["error"]["code"] == "INVALID_REQUEST"
    heart.assert_never_held_up()


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "ADDRESS"},
        {"properties": {"a": {"$ref": "ADDRESS#/x"}}},
        {"$defs": {"unused": {"allOf": [{"$ref": "ADDRESS"}]}}},
        {"$schema": "ADDRESS"},
        {"$id": "ADDRESS", "properties": {"a": {"$ref": "other"}}},
        {"$dynamicRef": "ADDRESS"},
    ],
)
async def test_a_remote_reference_is_refused_and_nobody_is_asked_for_it(serve: Serve, schema: Json) -> None:
    server = await serve(Agent(QUIET))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        address = f"http://127.0.0.1:{listener.getsockname()[1]}/schema.json"
        parameters = {"type": "object", **_placed(schema, address)}
        answer = await Program(server.http).register(a_tool("read", parameters=parameters))
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "INVALID_REQUEST")
        with pytest.raises(BlockingIOError):
            listener.accept()


async def test_thirty_levels_of_doubled_definitions_are_refused_at_once(serve: Serve) -> None:
    server = await serve(Agent(QUIET))
    definitions: Json = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(30)}
    definitions["d30"] = {"type": "object"}
    parameters = {"type": "object", "$ref": "#/$defs/d0", "$defs": definitions}
    async with _beating() as heart:
        answer = await Program(server.http).register(a_tool("read", parameters=parameters))
    assert answer.status_code == 400
    heart.assert_never_held_up()


class Heart:
    def __init__(self) -> None:
        self._work = [0.0]
        self._pauses = [0.0]

    def assert_never_held_up(self) -> None:
        """By its own work, which a busy machine does not make longer; by others, loosely."""
        assert max(self._work) < 0.1
        assert max(self._pauses) < 1.0

    async def beat(self, stop: asyncio.Event) -> None:
        now = asyncio.get_running_loop().time
        last, worked = now(), time.thread_time()
        while not stop.is_set():
            await asyncio.sleep(0.005)
            self._pauses.append(now() - last)
            self._work.append(time.thread_time() - worked)
            last, worked = now(), time.thread_time()


@asynccontextmanager
async def _beating() -> AsyncIterator[Heart]:
    """Notes how long the loop was held up while the body ran."""
    heart, stop = Heart(), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(heart.beat(stop))
        yield heart
        stop.set()


def _placed(value: Json, address: str) -> Json:
    if isinstance(value, dict):
        return {key: _placed(member, address) for key, member in value.items()}
    if isinstance(value, list):
        return [_placed(member, address) for member in value]
    return value.replace("ADDRESS", address) if isinstance(value, str) else value
