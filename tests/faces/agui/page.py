"""An AG-UI client in a few lines: keeps its history as clients do, and checks every response.

What it refuses, the published clients refuse too; the TypeScript tests use those.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2

from farhand.wire.sse import Event, Parser

# Any: what comes over the wire is looked at by its fields, and a wrong one fails the test
Json = Any

ENDS = ("RUN_FINISHED", "RUN_ERROR")


@dataclass
class Run:
    """One response, from its first event to its end."""

    status: int
    events: list[Json] = field(default_factory=list)
    body: Json = None

    @property
    def types(self) -> list[str]:
        """Without the pieces of a text."""
        found = [str(each["type"]) for each in self.events]
        return [each for each, before in zip(found, [None, *found], strict=False) if each != before]

    def all(self, kind: str) -> list[Json]:
        return [each for each in self.events if each["type"] == kind]

    @property
    def last(self) -> Json:
        return self.events[-1]

    @property
    def text(self) -> str:
        return "".join(each["delta"] for each in self.all("TEXT_MESSAGE_CONTENT"))

    @property
    def calls(self) -> dict[str, tuple[str, Json]]:
        """The calls that this response shows: name and input by their ids."""
        args = {each["toolCallId"]: json.loads(each["delta"]) for each in self.all("TOOL_CALL_ARGS")}
        started = self.all("TOOL_CALL_START")
        return {each["toolCallId"]: (each["toolCallName"], args[each["toolCallId"]]) for each in started}

    @property
    def results(self) -> dict[str, str]:
        return {each["toolCallId"]: each["content"] for each in self.all("TOOL_CALL_RESULT")}

    @property
    def outcome(self) -> Json:
        assert self.last["type"] == "RUN_FINISHED", self.last
        return self.last.get("outcome")

    @property
    def interrupts(self) -> list[Json]:
        assert self.outcome["type"] == "interrupt", self.outcome
        return list(self.outcome["interrupts"])

    @property
    def code(self) -> str:
        assert self.last["type"] == "RUN_ERROR", self.last
        return str(self.last["code"])

    def check(self) -> None:
        """The rules of the wire."""
        assert self.events[0]["type"] == "RUN_STARTED"
        assert [each["type"] in ENDS for each in self.events].index(True) == len(self.events) - 1
        open_ids: set[str] = set()
        for event in self.events:
            assert None not in event.values(), event
            family, _, part = str(event["type"]).rpartition("_")
            name = event.get("messageId") or event.get("toolCallId")
            if part == "START":
                assert f"{family} {name}" not in open_ids
                open_ids.add(f"{family} {name}")
            elif part == "END":
                open_ids.remove(f"{family} {name}")
        assert open_ids == set()


class Page:
    """One thread on a server, by way of `/ag-ui` or of the path of CopilotKit's runtime."""

    def __init__(
        self,
        http: httpx2.AsyncClient,
        thread_id: str = "t1",
        *,
        path: str = "/ag-ui",
        version: str | None = "1.0",
        tools: Sequence[Json] = (),
    ) -> None:
        self.http = http
        self.thread_id = thread_id
        self.messages: list[Json] = []
        self.tools = list(tools)
        self.more: dict[str, Json] = {}
        """Further members of the input."""
        self.run_id = ""
        self._path = path
        self._version = version
        self._numbers = itertools.count(1)

    def says(self, text: Json, message_id: str | None = None) -> None:
        number = sum(each["role"] == "user" for each in self.messages) + 1
        self.messages.append({"id": message_id or f"m{number}", "role": "user", "content": text})

    def finds(self, call_id: str, content: str, **more: Json) -> None:
        """A result of its own, right behind the message of the call, as CopilotKit puts it."""
        place = next(
            place
            for place, each in enumerate(self.messages)
            if any(call["id"] == call_id for call in each.get("toolCalls", ()))
        )
        while place + 1 < len(self.messages) and self.messages[place + 1]["role"] == "tool":
            place += 1
        message = {"id": f"own-{call_id}", "role": "tool", "toolCallId": call_id, "content": content, **more}
        self.messages.insert(place + 1, message)

    def input(self, **more: Json) -> Json:
        self.run_id = f"{self.thread_id}-run-{next(self._numbers)}"
        version = {} if self._version is None else {"protocolVersion": self._version}
        return {
            "threadId": self.thread_id,
            "runId": self.run_id,
            "messages": self.messages,
            "tools": self.tools,
            "context": [],
            "state": {},
            "forwardedProps": {},
            **version,
            **self.more,
            **more,
        }

    async def send(self, text: Json, **more: Json) -> Run:
        self.says(text)
        return await self.run(**more)

    async def run(self, **more: Json) -> Run:
        run = await self.post(self._path, self.input(**more))
        self.apply(run)
        return run

    async def resume(self, *answers: Json, **more: Json) -> Run:
        return await self.run(resume=list(answers), **more)

    async def connect(self, **more: Json) -> Run:
        """As after a reload: it has nothing."""
        self.messages = []
        run = await self.post("/copilotkit/agent/default/connect", self.input(**more))
        self.apply(run)
        return run

    async def stop(self, run_id: str | None = None) -> Json:
        body = None if run_id is None else {"runId": run_id}
        path = f"/copilotkit/agent/default/stop/{self.thread_id}"
        headers = {"content-type": "application/json"}
        return (await self.http.post(path, json=body, headers=headers)).json()

    async def post(self, path: str, body: Json) -> Run:
        async with self.http.stream("POST", path, json=body) as response:
            run = await read_run(response)
        if run.events:
            run.check()
        return run

    @asynccontextmanager
    async def live(self, **more: Json) -> AsyncIterator[Live]:
        """A response that is read as it comes, and dropped when the block is left."""
        async with self.http.stream("POST", self._path, json=self.input(**more)) as response:
            yield Live(response)

    def apply(self, run: Run) -> None:
        for event in run.events:
            self._apply(event)

    def _apply(self, event: Json) -> None:
        match event["type"]:
            case "MESSAGES_SNAPSHOT":
                told = {each["id"]: each for each in event["messages"]}
                kept = [told.pop(each["id"]) for each in self.messages if each["id"] in told]
                self.messages = [*kept, *told.values()]
            case "TEXT_MESSAGE_START":
                self._message(event["messageId"])
            case "TEXT_MESSAGE_CONTENT":
                message = self._message(event["messageId"])
                message["content"] = message.get("content", "") + event["delta"]
            case "TOOL_CALL_START":
                call = {"id": event["toolCallId"], "type": "function"}
                call["function"] = {"name": event["toolCallName"], "arguments": ""}
                assert event["toolCallId"] not in self.shown, "a call is shown once"
                self._message(event["parentMessageId"]).setdefault("toolCalls", []).append(call)
            case "TOOL_CALL_ARGS":
                self.shown[event["toolCallId"]]["function"]["arguments"] += event["delta"]
            case "TOOL_CALL_RESULT":
                ids = [each["id"] for each in self.messages]
                assert event["messageId"] not in ids, "a result is shown once"
                names = ("toolCallId", "content", "role")
                self.messages.append({"id": event["messageId"], **{name: event[name] for name in names}})
            case _:
                """Nothing that stays."""

    @property
    def shown(self) -> dict[str, Json]:
        """The calls in its history."""
        return {call["id"]: call for each in self.messages for call in each.get("toolCalls", ())}

    def _message(self, message_id: str) -> Json:
        for each in self.messages:
            if each["id"] == message_id:
                return each
        self.messages.append({"id": message_id, "role": "assistant"})
        return self.messages[-1]


class Live:
    """A response on its way."""

    def __init__(self, response: httpx2.Response) -> None:
        self.run = Run(response.status_code)
        self._parser = Parser()
        self._chunks = response.aiter_bytes()

    async def until(self, kind: str) -> Run:
        """Everything up to an event of this type, and what came in the same piece."""
        while not self.run.all(kind):
            self.run.events += map(_read, self._parser.feed(await anext(self._chunks)))
        return self.run

    async def rest(self) -> Run:
        async for chunk in self._chunks:
            self.run.events += map(_read, self._parser.feed(chunk))
        return self.run


async def read_run(response: httpx2.Response) -> Run:
    if response.headers["content-type"] != "text/event-stream":
        return Run(response.status_code, body=json.loads(await response.aread()))
    parser = Parser()
    run = Run(response.status_code)
    async for chunk in response.aiter_bytes():
        assert b"event:" not in chunk
        run.events += map(_read, parser.feed(chunk))
    return run


def _read(event: Event) -> Json:
    return json.loads(event.data)


def yes(interrupt: Json, **more: Json) -> Json:
    return {"interruptId": interrupt["id"], "status": "resolved", "payload": {"approved": True, **more}}


def no(interrupt: Json, reason: str = "") -> Json:
    payload = {"approved": False, "reason": reason}
    return {"interruptId": interrupt["id"], "status": "resolved", "payload": payload}
