"""Endpoints of AG-UI, and those of CopilotKit's runtime: info, run, connect, stop, and all of them in one."""

from __future__ import annotations

from msgspec import Struct

from farhand.agent.posts import Post, PostedTurn
from farhand.agent.service import AgentService
from farhand.errors import Busy, Malformed, NotFound, StoreDown, Unanswered, Unreadable
from farhand.eventlog.reader import LogReader
from farhand.faces.agui.decode import (
    AguiRequest,
    check_agent,
    check_thread_id,
    connect_of,
    decode_connect,
    decode_run,
    decode_runtime_request,
    decode_stop,
    run_of,
    stop_of,
)
from farhand.faces.agui.encode import (
    AguiEncoder,
    RunName,
    encode_error,
    encode_info,
    encode_refused_run,
    encode_stop,
)
from farhand.faces.agui.shapes import (
    AguiRefusal,
    RunAgentInput,
    RuntimeInfo,
    RuntimeRequest,
    StopReply,
    StopRequest,
)
from farhand.faces.agui.snapshot import snapshot
from farhand.faces.base import STREAM, Face, Request, Route
from farhand.wire.http import respond_body
from farhand.wire.streaming_response import StreamEnd

HEADERS = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
)


def agui_face(service: AgentService) -> Face:
    endpoints = _Endpoints(service)
    body = service.settings.limits.chat_body
    agent = "/copilotkit/agent/{agent_id}"
    return Face(
        name="agui",
        explain=encode_error,
        refusal=AguiRefusal,
        routes=(
            Route(
                "POST", "/ag-ui", endpoints.run, scope="chat", limit=body, streams=True, takes=RunAgentInput
            ),
            Route("GET", "/copilotkit/info", endpoints.info, scope="chat", gives=RuntimeInfo),
            Route(
                "POST",
                f"{agent}/run",
                endpoints.run_agent,
                scope="chat",
                limit=body,
                streams=True,
                takes=RunAgentInput,
            ),
            Route(
                "POST",
                f"{agent}/connect",
                endpoints.connect,
                scope="chat",
                limit=body,
                streams=True,
                takes=RunAgentInput,
            ),
            Route(
                "POST",
                f"{agent}/stop/{{thread_id}}",
                endpoints.stop,
                scope="chat",
                limit=body,
                takes=StopRequest,
                gives=StopReply,
                name="stop_agent",
            ),
            Route(
                "POST",
                "/copilotkit",
                endpoints.runtime,
                scope="chat",
                limit=body,
                streams=True,
                takes=RuntimeRequest,
                gives={200: STREAM},
            ),
        ),
    )


class _Endpoints:
    def __init__(self, service: AgentService) -> None:
        self._service = service

    async def run(self, request: Request) -> None:
        """Send a message, results of calls, or answers to interrupts."""
        await self._run(request, decode_run(await request.json()))

    async def info(self, request: Request) -> None:
        """What CopilotKit asks for first: the agent and what it can do."""
        await request.reply(200, encode_info())

    async def run_agent(self, request: Request) -> None:
        """The same as /ag-ui, for CopilotKit."""
        check_agent(request.parameter("agent_id"))
        await self.run(request)

    async def connect(self, request: Request) -> None:
        """The thread as it is, then live."""
        check_agent(request.parameter("agent_id"))
        await self._connect(request, decode_connect(await request.json()))

    async def stop(self, request: Request) -> None:
        """Stop the run."""
        check_agent(request.parameter("agent_id"))
        thread_id = check_thread_id(request.parameter("thread_id"))
        # a program may send no body at all
        request.bodiless()
        alias = decode_stop(await request.json()) if request.header(b"content-type") is not None else None
        await self._stop(request, thread_id, alias)

    async def runtime(self, request: Request) -> None:
        """All of them at one address."""
        wanted = decode_runtime_request(await request.json())
        check_agent(wanted.params.agent_id)
        match wanted.method:
            case "info":
                await self.info(request)
            case "agent/run":
                await self._run(request, run_of(wanted.body))
            case "agent/connect":
                await self._connect(request, connect_of(wanted.body))
            case "agent/stop":
                thread_id = check_thread_id(wanted.params.thread_id)
                await self._stop(request, thread_id, stop_of(wanted.body))

    async def _run(self, request: Request, posted: AguiRequest) -> None:
        posts, name = self._service.posts, RunName(posted.thread_id, posted.run_id, posted.is_versioned)
        tools = await posts.admit(request.principal, posted.tools)
        post = Post(
            thread_id=posted.thread_id,
            alias=posted.run_id,
            tools=tools,
            messages=posted.messages,
            results=posted.results,
            answers=posted.answers,
            shown_calls=posted.shown_calls,
            shown_results=posted.shown_results,
        )
        try:
            turn = await posts.take(request.principal, post)
        except (Busy, Malformed, NotFound, Unanswered) as error:
            # the request is sound, and the thread is not as its client believes
            await self._refuse(request, encode_refused_run(name, error))
            return
        await self._show(request, turn, name)

    async def _connect(self, request: Request, posted: AguiRequest) -> None:
        tools = await self._service.posts.admit(request.principal, posted.tools)
        turn = await self._service.posts.connect(request.principal, posted.thread_id, tools)
        if turn is None:
            await self._refuse(request, b"")
            return
        run_id = turn.run.alias or turn.run.run_id
        await self._show(request, turn, RunName(posted.thread_id, run_id, posted.is_versioned))

    async def _stop(self, request: Request, thread_id: str, alias: str | None) -> None:
        is_stopped = await self._service.posts.stop(request.owner, thread_id, alias)
        await request.reply(200, encode_stop(is_stopped=is_stopped))

    async def _refuse(self, request: Request, body: bytes) -> None:
        await respond_body(request.exchange.send, 200, b"text/event-stream", body, HEADERS[1:])

    async def _show(self, request: Request, turn: PostedTurn, name: RunName) -> None:
        encoder = AguiEncoder(
            turn.run,
            name,
            past=turn.past,
            shown_calls=turn.shown_calls,
            shown_results=turn.shown_results,
        )
        encoder.skip(turn.seen)
        history = None
        if turn.history is not None:
            root = str(request.scope.get("root_path", ""))
            history = snapshot(turn.history, turn.settled, root=root, hidden=turn.hidden)
        until = turn.past if turn.is_at_rest else None
        with self._service.read(turn.run, turn.after) as reader:
            source = _Following(self._service, reader, encoder, encoder.begin(history), until)
            end = await request.stream(source, headers=HEADERS)
        if end is StreamEnd.FINISHED and encoder.ended_unread and not turn.run.is_delivered:
            await self._service.mark_delivered(turn.run)


class _Following(Struct, eq=False):
    """A run's journal as the source of a response that ends at the first pause."""

    _service: AgentService
    _reader: LogReader
    _encoder: AguiEncoder
    _first: bytes
    _until: int | None

    @property
    def ended(self) -> bool:
        return self._encoder.ended

    async def next(self, seconds: float) -> bytes | None:
        if self._first:
            # a client is told at once that its run began
            first, self._first = self._first, b""
            return first
        try:
            while self._until is None or self._reader.at.seq < self._until:
                entries = await self._reader.next(seconds)
                if entries is None:
                    break
                frames = self._encoder.encode_events(entries)
                if self._encoder.is_paused:
                    return frames + await self._pause()
                # the entries may have no frames on this wire: read on instead of waiting
                if frames or not entries:
                    return frames
            return self._encoder.close(cut=True) if self._reader.cut else await self._pause()
        except (StoreDown, Unreadable):
            # the response still ends properly, and the rest can be had by connecting
            return self._encoder.close(cut=True)

    async def _pause(self) -> bytes:
        asked = self._encoder.questions
        tools = {call.tool_version: await self._service.tool_of(call) for call in asked}
        return self._encoder.pause(tools)

    def leave(self) -> None:
        self._reader.leave()
