"""A scripted far hand: it chats with a running app over HTTP and answers the calls that come back.

Speaks ui-stream and ack, as a page in a browser does. Every wait is bounded and says what it waited for. It
knows the wire, not what is behind it: the app may be in this process or on another machine.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self, TypeAlias, TypeVar

import httpx2
import msgspec

from farhand.testing.heard import Asked, Called, Heard
from farhand.wire.sse import Parser

if TYPE_CHECKING:
    from farhand.agent.agent import Agent
    from farhand.server.app import App

T = TypeVar("T")
Handler: TypeAlias = Callable[[dict[str, object]], object | Awaitable[object]]


class TurnedAway(AssertionError):
    """The server did not take a message."""

    def __init__(self, status: int, body: str) -> None:
        super().__init__(f"The server answered {status}: {body}")
        self.status = status
        self.body = body


class Reply(msgspec.Struct, frozen=True):
    """What the server said to a result, a take or an answer."""

    status: int
    body: dict[str, object]

    @property
    def accepted(self) -> bool:
        return self.status == 200 and not self.body.get("ignored")


class FarClient:
    """Use it as `async with FarClient(…) as far`.

    Args:
        target: The address of a running app; or an app or an agent, which is then served for as long.
        token: What the server asks of programs; an app that is served here tells its own.
        thread: The chat to speak in, until `chat` names another.
        patience: After how many seconds a wait fails.
    """

    def __init__(
        self, target: str | App | Agent, *, token: str = "", thread: str = "", patience: float = 10.0
    ) -> None:
        self.thread = thread or f"thread-{_chance(8)}"
        self.client_id = f"far-{_chance(4)}"
        self._target = target
        self._token = token
        self._patience = patience
        self._handlers: dict[str, Handler] = {}
        self._heard = Heard()
        self._stack = AsyncExitStack()
        self._tasks: set[asyncio.Task[None]] = set()

    def on(self, tool: str, handler: Handler) -> None:
        """Answers every call of this tool: with what the handler returns, or with the failure it raises."""
        self._handlers[tool] = handler

    async def chat(self, text: str, *, thread: str = "", wait: Literal["hold", "turn"] = "hold") -> None:
        """Says something. Returns when the server has taken it; the answer comes in meanwhile."""
        self.thread = thread or self.thread
        self._heard = Heard()
        message = {"id": f"msg-{_chance(8)}", "role": "user"}
        body: dict[str, object] = {
            "id": self.thread,
            "wait": wait,
            "messages": [{**message, "parts": [_text(text)]}],
        }
        response = await self._stream("POST", "/api/chat", body)
        self._begin(self._follow(response, self._heard))

    async def join(self, thread: str = "") -> None:
        """Listens to the answer that is coming in for somebody else, as a second tab or a reload does."""
        self.thread = thread or self.thread
        self._heard = Heard()
        response = await self._stream("GET", f"/api/chat/{self.thread}/stream")
        self._begin(self._follow(response, self._heard))

    async def called(self, tool: str) -> Called:
        """The next call of this tool that was not asked for before."""
        return await self._next(self._heard.next_call(tool), f"a call of '{tool}'")

    async def asked(self, tool: str) -> Asked:
        """The next question whether a call of this tool may run."""
        return await self._next(self._heard.next_question(tool), f"a question about '{tool}'")

    async def text(self) -> str:
        """The whole answer, once it has come to its end."""
        return await self._next(self._heard.whole_text(), "the end of the answer")

    @property
    def chunks(self) -> list[dict[str, object]]:
        """What the server has streamed since the last message."""
        return list(self._heard.chunks)

    async def ack(self, call_id: str, output: object = None) -> Reply:
        return await self._answer("ack", {"toolCallId": call_id, "status": "success", "output": output})

    async def fail(self, call_id: str, error: str) -> Reply:
        return await self._answer("ack", {"toolCallId": call_id, "status": "failed", "errorText": error})

    async def take(self, call_id: str) -> Reply:
        """Claims the call, so that no other tab executes it."""
        return await self._post("/api/tools/take", {"toolCallId": call_id, "clientId": self.client_id})

    async def approve(
        self,
        approval_id: str,
        *,
        input: dict[str, object] | None = None,
        scope: Literal["once", "thread"] = "once",
    ) -> Reply:
        """Yes; with `input`, yes to that instead."""
        edit = {} if input is None else {"input": input}
        return await self._answer(
            "approve", {"approvalId": approval_id, "approved": True, "scope": scope, **edit}
        )

    async def deny(self, approval_id: str, reason: str = "") -> Reply:
        return await self._answer("approve", {"approvalId": approval_id, "approved": False, "reason": reason})

    async def stop(self) -> Reply:
        """Stops the answer that is coming in."""
        return await self._post(f"/api/chat/{self.thread}/stop", {})

    async def __aenter__(self) -> Self:
        url, token = await self._address()
        headers = {"authorization": f"Bearer {token}"} if token else {}
        # no limit of its own: a held stream may be silent for long, and every wait here is bounded
        self._http = await self._stack.enter_async_context(
            httpx2.AsyncClient(base_url=url, headers=headers, timeout=None)
        )
        self._group = await self._stack.enter_async_context(asyncio.TaskGroup())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        # not handed on: what went wrong in the test is told as it is, not as one of a group
        await self._stack.aclose()

    async def _address(self) -> tuple[str, str]:
        if isinstance(self._target, str):
            return self._target, self._token
        # a far hand for a server elsewhere loads no server
        from farhand.testing.served_app import serve_app  # noqa: PLC0415

        served = await self._stack.enter_async_context(serve_app(self._target))
        return served.url, self._token or served.token or ""

    async def _follow(self, response: httpx2.Response, heard: Heard) -> None:
        """Reads until the answer has ended; one that pauses is taken up again when it was answered."""
        stream = f"/api/chat/{self.thread}/stream"
        try:
            await self._read(response, heard)
            while heard.paused:
                await heard.moved_on()
                await self._read(await self._stream("GET", stream), heard)
        except (httpx2.HTTPError, TurnedAway) as error:
            heard.end(f"the stream broke: {error!r}")
        else:
            heard.end()

    async def _read(self, response: httpx2.Response, heard: Heard) -> None:
        heard.begin()
        parser = Parser()
        async for piece in response.aiter_bytes():
            for event in parser.feed(piece):
                self._hear(event.data, heard)
        await response.aclose()

    def _hear(self, data: str, heard: Heard) -> None:
        if data == "[DONE]":
            return
        call = heard.hear(msgspec.json.decode(data, type=dict[str, object]))
        if call is not None and call.tool in self._handlers:
            self._begin(self._handle(call))

    async def _handle(self, call: Called) -> None:
        if not (await self.take(call.call_id)).accepted:
            return
        try:
            output = self._handlers[call.tool](call.input)
            output = await output if isinstance(output, Awaitable) else output
        # whatever a handler raises is what a far hand reports
        except Exception as error:  # noqa: BLE001
            await self.fail(call.call_id, f"{type(error).__name__}: {error}")
            return
        await self.ack(call.call_id, output)

    async def _answer(self, route: str, body: dict[str, object]) -> Reply:
        reply = await self._post(f"/api/tools/{route}", body)
        if reply.accepted:
            self._heard.answered()
        return reply

    async def _post(self, path: str, body: dict[str, object]) -> Reply:
        response = await self._http.post(path, json=body)
        return Reply(response.status_code, msgspec.json.decode(response.content, type=dict[str, object]))

    async def _stream(self, method: str, path: str, body: dict[str, object] | None = None) -> httpx2.Response:
        request = self._http.build_request(method, path, json=body)
        response = await self._http.send(request, stream=True)
        if response.status_code >= 400:
            await response.aread()
            raise TurnedAway(response.status_code, response.text)
        return response

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = self._group.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _next(self, coming: Coroutine[None, None, T], what: str) -> T:
        try:
            async with asyncio.timeout(self._patience):
                return await coming
        except TimeoutError:
            heard = self._heard.story()
            raise AssertionError(f"Waited {self._patience:g} s in vain for {what}. Heard: {heard}.") from None


def _chance(size: int) -> str:
    # names that this client chooses itself, in its own space; the ids of the server are the server's
    return os.urandom(size).hex()


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}
