"""`FakeBackboard`: give its `url` to `Backboard(..., base_url=fake.url)` or to Backboard's own library."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from farhand.core.thread import Part
from farhand.core.tool import Tool
from farhand.models.base import Prompt
from farhand.models.scripted.model import Script, Step
from tests.fakes.backboard.state import CREATED, Ids, Run, Thread
from tests.fakes.backboard.write import RoundWriter
from tests.fakes.provider import FakeProvider, FakeRequest, Json, Refusal

_REFUSED_AT_TOP = frozenset({"oneOf", "anyOf", "allOf", "enum", "not"})
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


class FakeBackboard(FakeProvider):
    """Answers as its script says, and keeps the conversation itself.

    Args:
        script: As for `ScriptedModel`.
        key: The only key that is good; without it any is.
        cumulative: Send all of the text so far in each event, as some servers do.
    """

    def __init__(
        self, script: Script | Sequence[Step | Script], *, key: str | None = None, cumulative: bool = False
    ) -> None:
        super().__init__(script, key=key)
        self.assistants: dict[str, Json] = {}
        self.threads: dict[str, Thread] = {}
        self._ids = Ids()
        self._cumulative = cumulative

    def routes(self) -> list[Route]:
        return [
            self.route("/assistants", self._list_assistants, "GET"),
            self.route("/assistants", self._create_assistant),
            self.route("/assistants/{assistant}", self._update_assistant, "PUT"),
            self.route("/assistants/{assistant}/threads", self._create_thread),
            self.route("/threads/messages", self._hear),
            # as Backboard's library for JavaScript asks
            self.route("/threads/{thread}/messages", self._hear),
            self.route("/threads/{thread}", self._get_thread, "GET"),
            self.route("/threads/{thread}/runs/{run}/submit-tool-outputs", self._take),
            self.route("/threads/{thread}/runs/{run}/cancel", self._cancel),
        ]

    def key_of(self, headers: Mapping[str, str]) -> str | None:
        return headers.get("x-api-key")

    def error_body(self, refusal: Refusal) -> Json:
        return {"detail": refusal.message}

    async def _list_assistants(self, seen: FakeRequest, request: Request) -> Response:
        name = request.query_params.get("name")
        return _json([each for each in self.assistants.values() if name in (None, each["name"])])

    async def _create_assistant(self, seen: FakeRequest, request: Request) -> Response:
        _check_tools(seen.body)
        made = {"assistant_id": self._ids.fresh(), "created_at": CREATED, **seen.body}
        self.assistants[made["assistant_id"]] = made
        return _json(made)

    async def _update_assistant(self, seen: FakeRequest, request: Request) -> Response:
        known = self._assistant(request)
        _check_tools(seen.body)
        known.update(seen.body)
        return _json(known)

    async def _create_thread(self, seen: FakeRequest, request: Request) -> Response:
        thread = Thread(self._ids.fresh(), self._assistant(request)["assistant_id"])
        self.threads[thread.id] = thread
        return _json(thread.shown())

    async def _get_thread(self, seen: FakeRequest, request: Request) -> Response:
        return _json(self._thread(request.path_params["thread"]).shown())

    async def _hear(self, seen: FakeRequest, request: Request) -> Response:
        thread = self._thread(request.path_params.get("thread", seen.body.get("thread_id")))
        run = thread.hear(str(seen.body.get("content") or ""), seen.body.get("metadata"), self._ids)
        return await self._answer(thread, run, streams=_wants_stream(seen.body.get("stream")))

    async def _take(self, seen: FakeRequest, request: Request) -> Response:
        thread = self._thread(request.path_params["thread"])
        outputs = seen.body.get("tool_outputs") or []
        run = thread.take(request.path_params["run"], outputs, self._ids)
        return await self._answer(thread, run, streams=_wants_stream(request.query_params.get("stream")))

    async def _cancel(self, seen: FakeRequest, request: Request) -> Response:
        thread, run = self._thread(request.path_params["thread"]), request.path_params["run"]
        return _json({"thread_id": thread.id, "run_id": run, "cancelled": thread.cancel(run)})

    async def _answer(self, thread: Thread, run: Run, *, streams: bool) -> Response:
        assistant = self.assistants[thread.assistant]
        tools = [_tool(tool["function"]) for tool in assistant.get("tools") or []]
        prompt = Prompt(list(thread.messages), tools, assistant.get("system_prompt") or "", thread.id)
        ended = partial(self._ended, thread, run)
        writer = RoundWriter(run, ended, cumulative=self._cumulative)
        if streams:
            return await self.stream(prompt, writer)
        await self.collect(prompt, writer)
        return _json({**thread.records[-1], "thread_id": thread.id, **writer.answer(), "timestamp": CREATED})

    def _ended(self, thread: Thread, run: Run, parts: list[Part]) -> None:
        thread.said(run, parts, self._ids)

    def _assistant(self, request: Request) -> Json:
        known = self.assistants.get(request.path_params["assistant"])
        if known is None:
            raise Refusal(404, "Assistant not found")
        return known

    def _thread(self, thread_id: object) -> Thread:
        thread = self.threads.get(str(thread_id))
        if thread is None:
            raise Refusal(404, "Thread not found")
        return thread


def _wants_stream(said: object) -> bool:
    """Backboard's libraries send a word in a form, a truth value in JSON, or nothing for no."""
    return said is True or str(said).lower() == "true"


def _check_tools(body: Json) -> None:
    for number, tool in enumerate(body.get("tools") or []):
        function = tool.get("function") or {}
        if tool.get("type") != "function" or _NAME.fullmatch(str(function.get("name"))) is None:
            raise Refusal(422, f"tools.{number}.function.name: String should match '^[a-zA-Z0-9_-]{{1,64}}$'")
        schema = function.get("parameters") or {}
        if schema.get("type") != "object":
            raise Refusal(422, f"tools.{number}.function.parameters.type: Input should be 'object'")
        if not _REFUSED_AT_TOP.isdisjoint(schema):
            # it would only fail later, at the provider that Backboard routes to
            raise Refusal(422, f"tools.{number}.function.parameters: no combination at the top level")


def _tool(function: Json) -> Tool:
    schema = function.get("parameters") or {}
    return Tool(name=function["name"], description=function.get("description") or "", input_schema=schema)


def _json(body: object) -> Response:
    return Response(msgspec.json.encode(body), media_type="application/json")
