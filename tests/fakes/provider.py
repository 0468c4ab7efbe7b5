"""Shared by the fakes of all providers: a script, the requests they received, and faults on demand.

A fake is a real HTTP server that speaks a provider's API, keeps its rules and answers as its script says,
in the words of `ScriptedModel`. What an API looks like is the business of each fake.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from email.parser import BytesParser
from email.policy import HTTP
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from farhand.errors import ModelFault
from farhand.models.base import Prompt
from farhand.models.scripted import ScriptedModel
from farhand.models.scripted.model import Script, Step
from farhand.testing.running_app import serve_on_loopback
from tests.fakes.stream import Cut, Inserted, Trouble, Writer, begun, frames_of

# Any: what a client sends is JSON of any shape until a rule has looked at it
Json: TypeAlias = dict[str, Any]


class FakeRequest(Struct):
    """One request as it came. `status` is its answer's; `planned` if a test had asked for that."""

    method: str
    path: str
    body: Json
    headers: Mapping[str, str] = {}
    status: int = 200
    planned: bool = False


class Refusal(Exception):
    """An answer with an error, in the provider's own words."""

    # a broken rule or script is no passing trouble: asking again would only cost time
    headers: Mapping[str, str] = {"x-should-retry": "false"}

    def __init__(
        self, status: int, message: str, *, code: str | None = None, param: str | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.param = param


class Reply(Struct, frozen=True):
    """An answer in bytes that no script said."""

    body: bytes
    status: int
    media_type: str


class FakeProvider:
    """Use it as `async with FakeSomething(script) as fake:` and give its `url` to the model as `base_url`."""

    prefix = ""
    """Of every path, and so of the `url`."""

    def __init__(self, script: Script | Sequence[Step | Script], *, key: str | None = None) -> None:
        self.requests: list[FakeRequest] = []
        self.url = ""
        self._model = ScriptedModel(script)
        self._key = key
        self._planned: deque[Refusal | Reply] = deque()
        self._trouble = Trouble()
        self._open = AsyncExitStack()
        self._news = asyncio.Event()

    @property
    def prompts(self) -> list[Prompt]:
        """What the script was asked with: the requests, understood."""
        return self._model.prompts

    @property
    def refused(self) -> list[FakeRequest]:
        """The requests that broke a rule."""
        return [request for request in self.requests if request.status >= 400 and not request.planned]

    async def saw(self, path_end: str) -> FakeRequest:
        """The first request whose path ends so, once it has come."""
        while True:
            found = next((each for each in self.requests if each.path.endswith(path_end)), None)
            if found is not None:
                return found
            self._news.clear()
            await self._news.wait()

    def refuse(
        self,
        status: int,
        message: str = "on purpose",
        *,
        times: int = 1,
        retry_after: float = 0.01,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Answers the next requests with this error; the client is to come back after so many seconds.

        `headers` are told besides; `retry-after` among them counts.
        """
        for _ in range(times):
            refusal = Refusal(status, message)
            refusal.headers = {"retry-after": f"{retry_after:g}", **(headers or {})}
            self._planned.append(refusal)

    def reply(self, body: bytes, *, status: int = 200, media_type: str = "text/html", times: int = 1) -> None:
        """Answers the next requests with these bytes, as a proxy or the wrong server does."""
        self._planned.extend([Reply(body, status, media_type)] * times)

    def insert(self, raw: bytes, *, after: int) -> None:
        """Puts these bytes into the next answer, after so many events of it."""
        self._trouble = replace(self._trouble, inserted=Inserted(after, raw))

    def cut(self, *, after: int, how: Literal["drop", "end"] = "drop") -> None:
        """Lets the next answer break off after so many events of it.

        The connection is dropped, or the response ends as if all had been said.
        """
        self._trouble = replace(self._trouble, cut=Cut(after, how))

    async def __aenter__(self) -> Self:
        address = await self._open.enter_async_context(serve_on_loopback(Starlette(routes=self.routes())))
        self.url = f"{address}{self.prefix}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._open.aclose()

    def routes(self) -> list[Route]:
        raise NotImplementedError

    def error_body(self, refusal: Refusal) -> Json:
        raise NotImplementedError

    def key_of(self, headers: Mapping[str, str]) -> str | None:
        raise NotImplementedError

    def route(self, path: str, answer: Answer, method: str = "POST") -> Route:
        async def endpoint(request: Request) -> Response:
            seen = FakeRequest(request.method, request.url.path, await _body(request), dict(request.headers))
            self.requests.append(seen)
            self._news.set()
            try:
                replied = self._check_plan(seen)
                if replied is not None:
                    seen.status = replied.status
                    return Response(replied.body, replied.status, media_type=replied.media_type)
                self._check_key(seen)
                return await answer(seen, request)
            except Refusal as refusal:
                seen.status = refusal.status
                return _error(refusal, self.error_body(refusal))

        return Route(f"{self.prefix}{path}", endpoint, methods=[method])

    async def stream(self, prompt: Prompt, writer: Writer) -> StreamingResponse:
        """What the script says to this prompt. Trouble before its first word is an error of the server."""
        events = self._model.stream(prompt)
        try:
            first = await anext(events)
        except ModelFault as fault:
            raise Refusal(500, str(fault)) from fault
        trouble, self._trouble = self._trouble, Trouble()
        frames = frames_of(begun(first, events), writer, trouble)
        return StreamingResponse(frames, media_type="text/event-stream")

    async def collect(self, prompt: Prompt, writer: Writer) -> None:
        """The same without a stream: the writer has heard all of it."""
        try:
            async for event in self._model.stream(prompt):
                writer.write(event)
        except ModelFault as fault:
            writer.fail(fault)
            raise Refusal(500, str(fault)) from fault

    def _check_plan(self, seen: FakeRequest) -> Reply | None:
        if not self._planned:
            return None
        seen.planned = True
        planned = self._planned.popleft()
        if isinstance(planned, Refusal):
            raise planned
        return planned

    def _check_key(self, seen: FakeRequest) -> None:
        key = self.key_of(seen.headers)
        if not key or (self._key is not None and key != self._key):
            raise Refusal(401, "Incorrect API key provided.", code="invalid_api_key")


Answer: TypeAlias = Callable[[FakeRequest, Request], Awaitable[Response]]


async def _body(request: Request) -> Json:
    raw = await request.body()
    content_type = request.headers.get("content-type", "")
    if content_type.startswith("application/x-www-form-urlencoded"):
        return {name: str(value) for name, value in (await request.form()).items()}
    if content_type.startswith("multipart/form-data"):
        return _fields_of_form(content_type, raw)
    body = msgspec.json.decode(raw) if raw else {}
    return body if isinstance(body, dict) else {}


def _fields_of_form(content_type: str, raw: bytes) -> Json:
    """Fields by their names; of files, the names alone, as a list."""
    form = BytesParser(policy=HTTP).parsebytes(f"Content-Type: {content_type}\r\n\r\n".encode() + raw)
    fields: Json = {}
    for part in form.iter_parts():
        name = str(part.get_param("name", header="content-disposition"))
        if part.get_filename() is not None:
            fields.setdefault(name, []).append(part.get_filename())
        else:
            value = part.get_payload(decode=True)
            fields[name] = value.decode() if isinstance(value, bytes) else ""
    return fields


def _error(refusal: Refusal, body: Json) -> Response:
    told = dict(refusal.headers)
    return Response(msgspec.json.encode(body), refusal.status, told, media_type="application/json")
