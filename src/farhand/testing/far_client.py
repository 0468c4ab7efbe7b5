"""A test client: it chats with a running app over HTTP and answers calls and approvals.

It uses the ui-stream and ack protocols, as a page in a browser does. Every wait is bounded, and its error
says what was expected. It knows only the wire: the app may be in this process or on another machine.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self, TypeAlias, TypeVar

import msgspec

from farhand.errors import not_installed
from farhand.testing.answer_reader import AnswerReader, ApprovalRequest, PendingCall
from farhand.wire.sse import Parser

try:
    import httpx2
except ModuleNotFoundError as error:
    raise not_installed("Test clients", "testing") from error

if TYPE_CHECKING:
    from farhand.agent.agent import Agent
    from farhand.server.app import App

T = TypeVar("T")
CallHandler: TypeAlias = Callable[[dict[str, object]], object | Awaitable[object]]


class RequestRejected(AssertionError):
    """The server refused a request; `status` and `body` say why: `pytest.raises(RequestRejected)`."""

    def __init__(self, status: int, body: str) -> None:
        super().__init__(f"The server answered {status}: {body}")
        self.status = status
        self.body = body


class ServerReply(msgspec.Struct, frozen=True):
    """The server's response to a result, a take or an approval: `(await client.ack(call_id)).accepted`."""

    status: int
    body: dict[str, object]

    @property
    def accepted(self) -> bool:
        return self.status == 200 and not self.body.get("ignored")


class FarClient:
    """A client for tests that chats and answers calls, as a page in a browser does.

    ```python
    from farhand import Agent
    from farhand.testing import FarClient


    async def test_the_page_is_opened(agent: Agent) -> None:
        async with FarClient(agent) as client:
            await client.chat("Open example.com.")
            call = await client.called("open_url")
            assert call.input == {"url": "https://example.com"}
            await client.ack(call.call_id, {"opened": True})
            assert await client.text() == "It is open."
    ```

    Args:
        target: The address of a running app; or an app or an agent, which is then served inside the block.
        token: The token that the server requires; not needed for an app or an agent.
        thread: The thread to use until `chat` names another.
        timeout_sec: The number of seconds after which a wait fails.
    """

    def __init__(
        self, target: str | App | Agent, *, token: str = "", thread: str = "", timeout_sec: float = 10.0
    ) -> None:
        self.thread = thread or f"thread-{_random_hex(8)}"
        self.client_id = f"far-{_random_hex(4)}"
        self._target = target
        self._token = token
        self._timeout_sec = timeout_sec
        self._handlers: dict[str, CallHandler] = {}
        self._reader = AnswerReader()
        self._stack = AsyncExitStack()
        self._tasks: set[asyncio.Task[None]] = set()

    def on(self, tool: str, handler: CallHandler) -> None:
        """Answers every call of this tool with the result of the handler, or with a failure if it raises."""
        self._handlers[tool] = handler

    async def chat(self, text: str, *, thread: str = "", wait: Literal["hold", "turn"] = "hold") -> None:
        """Sends a message. Returns once the server has accepted it; the answer arrives in the background."""
        self.thread = thread or self.thread
        self._reader = AnswerReader()
        message = {"id": f"msg-{_random_hex(8)}", "role": "user"}
        body: dict[str, object] = {
            "id": self.thread,
            "wait": wait,
            "messages": [{**message, "parts": [{"type": "text", "text": text}]}],
        }
        response = await self._stream("POST", "/api/chat", body)
        self._begin(self._follow(response, self._reader))

    async def join(self, thread: str = "") -> None:
        """Reads the answer in progress, as a second tab or a reload does."""
        self.thread = thread or self.thread
        self._reader = AnswerReader()
        response = await self._stream("GET", f"/api/chat/{self.thread}/stream")
        self._begin(self._follow(response, self._reader))

    async def called(self, tool: str) -> PendingCall:
        """Waits for the next call of this tool."""
        return await self._next(self._reader.next_call(tool), f"call of '{tool}'")

    async def asked(self, tool: str) -> ApprovalRequest:
        """Waits for the next approval request for a call of this tool."""
        return await self._next(self._reader.next_question(tool), f"approval request for '{tool}'")

    async def text(self) -> str:
        """The whole answer, once it is complete."""
        return await self._next(self._reader.whole_text(), "end of the answer")

    @property
    def chunks(self) -> list[dict[str, object]]:
        """The chunks that the server has streamed since the last message."""
        return list(self._reader.chunks)

    async def ack(self, call_id: str, output: object = None) -> ServerReply:
        return await self._answer("ack", {"toolCallId": call_id, "status": "success", "output": output})

    async def fail(self, call_id: str, error: str) -> ServerReply:
        return await self._answer("ack", {"toolCallId": call_id, "status": "failed", "errorText": error})

    async def take(self, call_id: str) -> ServerReply:
        """Claims the call, so that no other tab executes it."""
        return await self._post("/api/tools/take", {"toolCallId": call_id, "clientId": self.client_id})

    async def approve(
        self,
        approval_id: str,
        *,
        input: dict[str, object] | None = None,
        scope: Literal["once", "thread"] = "once",
    ) -> ServerReply:
        """Approves the call; with `input`, approves that input instead."""
        edit = {} if input is None else {"input": input}
        return await self._answer(
            "approve", {"approvalId": approval_id, "approved": True, "scope": scope, **edit}
        )

    async def deny(self, approval_id: str, reason: str = "") -> ServerReply:
        return await self._answer("approve", {"approvalId": approval_id, "approved": False, "reason": reason})

    async def stop(self) -> ServerReply:
        """Stops the answer in progress."""
        return await self._post(f"/api/chat/{self.thread}/stop", {})

    async def __aenter__(self) -> Self:
        url, token = await self._address()
        headers = {"authorization": f"Bearer {token}"} if token else {}
        # no timeout: a held stream may be silent for a long time, and every wait here is bounded
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
        # the error is not passed on: it is raised as it is, not in an exception group
        await self._stack.aclose()

    async def _address(self) -> tuple[str, str]:
        if isinstance(self._target, str):
            return self._target, self._token
        # a client for a server elsewhere needs no server
        from farhand.testing.running_app import serve_app  # noqa: PLC0415

        served = await self._stack.enter_async_context(serve_app(self._target))
        return served.url, self._token or served.token or ""

    async def _follow(self, response: httpx2.Response, reader: AnswerReader) -> None:
        """Reads until the answer has ended; a paused answer is resumed when its calls were answered."""
        stream = f"/api/chat/{self.thread}/stream"
        try:
            await self._read(response, reader)
            while reader.paused:
                await reader.wait_until_answered()
                await self._read(await self._stream("GET", stream), reader)
        except (httpx2.HTTPError, RequestRejected) as error:
            reader.end(f"the stream failed: {error!r}")
        else:
            reader.end()

    async def _read(self, response: httpx2.Response, reader: AnswerReader) -> None:
        reader.begin()
        parser = Parser()
        async for piece in response.aiter_bytes():
            for event in parser.feed(piece):
                self._read_chunk(event.data, reader)
        await response.aclose()

    def _read_chunk(self, data: str, reader: AnswerReader) -> None:
        if data == "[DONE]":
            return
        call = reader.read(msgspec.json.decode(data, type=dict[str, object]))
        if call is not None and call.tool in self._handlers:
            self._begin(self._handle(call))

    async def _handle(self, call: PendingCall) -> None:
        if not (await self.take(call.call_id)).accepted:
            return
        try:
            output = self._handlers[call.tool](call.input)
            output = await output if isinstance(output, Awaitable) else output
        # a handler may raise anything, which is reported as a failure
        except Exception as error:  # noqa: BLE001
            await self.fail(call.call_id, f"{type(error).__name__}: {error}")
            return
        await self.ack(call.call_id, output)

    async def _answer(self, route: str, body: dict[str, object]) -> ServerReply:
        reply = await self._post(f"/api/tools/{route}", body)
        if reply.accepted:
            self._reader.note_answer()
        return reply

    async def _post(self, path: str, body: dict[str, object]) -> ServerReply:
        response = await self._http.post(path, json=body)
        return ServerReply(
            response.status_code, msgspec.json.decode(response.content, type=dict[str, object])
        )

    async def _stream(self, method: str, path: str, body: dict[str, object] | None = None) -> httpx2.Response:
        request = self._http.build_request(method, path, json=body)
        response = await self._http.send(request, stream=True)
        if response.status_code >= 400:
            await response.aread()
            raise RequestRejected(response.status_code, response.text)
        return response

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = self._group.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _next(self, coming: Coroutine[None, None, T], what: str) -> T:
        try:
            async with asyncio.timeout(self._timeout_sec):
                return await coming
        except TimeoutError:
            reader = self._reader.summary()
            raise AssertionError(f"No {what} within {self._timeout_sec:g} s. Received: {reader}.") from None


def _random_hex(size: int) -> str:
    # names that this client chooses itself; the server makes its own ids
    return os.urandom(size).hex()
