"""Endpoints of AG-UI, and those of CopilotKit's runtime: info, run, connect, stop, and all of them in one."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial

from msgspec.structs import replace

from farhand.agent.post_content import PostedTurn
from farhand.agent.service import AgentService
from farhand.errors import Busy, Malformed, NotFound, StoreDown, Unanswered, Unreadable
from farhand.faces.agui.decode import (
    AguiRequest,
    check_agent,
    decode_connect,
    decode_run,
    decode_runtime_request,
    decode_stop,
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
    ShownMessage,
    StopReply,
    StopRequest,
)
from farhand.faces.agui.snapshot import snapshot
from farhand.faces.base import STREAM, STREAM_HEADERS, Face, Request, Route, check_id
from farhand.wire.address import root_path
from farhand.wire.http import respond_body
from farhand.wire.json_reader import read_json
from farhand.wire.streaming_response import StreamEnd


def agui_face(service: AgentService) -> Face:
    endpoints = _Endpoints(service)
    post = partial(Route, "POST", scope="chat", limit=service.settings.limits.chat_body)
    stream = partial(post, streams=True, takes=RunAgentInput)
    agent = "/copilotkit/agent/{agent_id}"
    return Face(
        name="agui",
        explain=encode_error,
        refusal=AguiRefusal,
        routes=(
            stream("/ag-ui", endpoints.run),
            Route("GET", "/copilotkit/info", endpoints.info, scope="chat", gives=RuntimeInfo),
            stream(f"{agent}/run", endpoints.run_agent),
            stream(f"{agent}/connect", endpoints.connect),
            post(
                f"{agent}/stop/{{thread_id}}",
                endpoints.stop,
                takes=StopRequest,
                gives=StopReply,
                name="stop_agent",
            ),
            post(
                "/copilotkit",
                endpoints.runtime,
                streams=True,
                takes=RuntimeRequest,
                gives={200: [STREAM, dict[str, object]]},
            ),
        ),
    )


class _Endpoints:
    def __init__(self, service: AgentService) -> None:
        self._service = service

    async def run(self, request: Request) -> None:
        """Send a message, results of calls, or answers to interrupts."""
        await self._run(request, decode_run(read_json(await request.json())))

    async def info(self, request: Request) -> None:
        """What CopilotKit asks for first: the agent and what it can do."""
        await request.reply(200, encode_info())

    async def run_agent(self, request: Request) -> None:
        """The same as /ag-ui, for CopilotKit."""
        body = await request.json()
        check_agent(request.parameter("agent_id"))
        await self._run(request, decode_run(read_json(body)))

    async def connect(self, request: Request) -> None:
        """The thread as it is, then live."""
        body = await request.json()
        check_agent(request.parameter("agent_id"))
        await self._connect(request, decode_connect(read_json(body)))

    async def stop(self, request: Request) -> None:
        """Stop the run."""
        # a program may send no body at all
        request.bodiless()
        body = b"" if request.header(b"content-type") is None else await request.json()
        check_agent(request.parameter("agent_id"))
        thread_id = check_id(request.parameter("thread_id"), "threadId")
        await self._stop(request, thread_id, decode_stop(read_json(body) if body.strip() else None))

    async def runtime(self, request: Request) -> None:
        """All of them at one address."""
        wanted = decode_runtime_request(await request.json())
        check_agent(wanted.params.agent_id)
        match wanted.method:
            case "info":
                await self.info(request)
            case "agent/run":
                await self._run(request, decode_run(wanted.body))
            case "agent/connect":
                await self._connect(request, decode_connect(wanted.body))
            case "agent/stop":
                thread_id = check_id(wanted.params.thread_id or "", "threadId")
                await self._stop(request, thread_id, decode_stop(wanted.body))

    async def _run(self, request: Request, posted: AguiRequest) -> None:
        posts, post = self._service.posts, posted.post
        name = RunName(post.thread_id, post.alias, posted.is_versioned)
        post = replace(post, tools=await posts.admit(request.principal, posted.tools))
        try:
            turn = await posts.take(request.principal, post)
        except (Busy, Malformed, NotFound, Unanswered) as error:
            # the request is valid, but the thread is not in the state that its client expects
            await self._refuse(request, encode_refused_run(name, error))
            return
        await self._show(request, turn, name)

    async def _connect(self, request: Request, posted: AguiRequest) -> None:
        tools = await self._service.posts.admit(request.principal, posted.tools)
        turn = await self._service.posts.connect(request.principal, posted.post.thread_id, tools)
        if turn is None:
            await self._refuse(request, b"")
            return
        run_id = turn.run.alias or turn.run.run_id
        await self._show(request, turn, RunName(posted.post.thread_id, run_id, posted.is_versioned))

    async def _stop(self, request: Request, thread_id: str, alias: str | None) -> None:
        is_stopped = await self._service.posts.stop(request.owner, thread_id, alias)
        await request.reply(200, encode_stop(is_stopped=is_stopped))

    async def _refuse(self, request: Request, body: bytes) -> None:
        await respond_body(request.exchange.send, 200, b"text/event-stream", body, STREAM_HEADERS[1:])

    async def _show(self, request: Request, turn: PostedTurn, name: RunName) -> None:
        with ExitStack() as stack:
            source = _Following(self._service, stack, name, turn, root=root_path(request.scope))
            source.begin()
            end = await request.stream(source)
        run = source.turn.run
        is_undelivered = run.active or not run.is_delivered
        if end is StreamEnd.FINISHED and is_undelivered and source.encoder.ended_unread:
            await self._service.mark_delivered(run)


def _history(turn: PostedTurn, root: str) -> list[ShownMessage] | None:
    if turn.history is None:
        return None
    return snapshot(turn.history, turn.settled, root=root, hidden=turn.hidden)


class _Following:
    """A run's journal as the source of a response that ends at the first pause, or continues with the
    run that follows."""

    def __init__(
        self, service: AgentService, stack: ExitStack, name: RunName, turn: PostedTurn, *, root: str
    ) -> None:
        self._root = root
        self._service = service
        self._stack = stack
        self._name = name
        self._first = b""
        self._read(turn)

    @property
    def ended(self) -> bool:
        return self.encoder.ended and not self.encoder.is_followed

    def begin(self) -> None:
        # the client learns at once that its run began
        self._first = self.encoder.begin(_history(self.turn, self._root))

    async def next(self, seconds: float) -> bytes | None:
        if self._first:
            first, self._first = self._first, b""
            return first
        try:
            return await self._frames(seconds)
        except (StoreDown, Unreadable):
            # the response still ends properly, and the rest can be read by connecting
            return self.encoder.close(cut=True)

    def leave(self) -> None:
        self._reader.leave()

    def _read(self, turn: PostedTurn) -> None:
        self.turn = turn
        self.encoder = AguiEncoder(
            turn.run,
            self._name,
            past=turn.past,
            shown_calls=turn.shown_calls,
            shown_results=turn.shown_results,
        )
        self.encoder.is_followed = turn.following is not None
        self.encoder.skip(turn.seen)
        self._until = turn.past if turn.is_at_rest else None
        self._reader = self._stack.enter_context(self._service.read(turn.run, turn.after))

    async def _frames(self, seconds: float) -> bytes:
        while self._until is None or self._reader.at.seq < self._until:
            entries = await self._reader.next(seconds)
            if entries is None:
                break
            frames = self.encoder.encode_events(entries)
            if self.encoder.is_paused or self.encoder.ended:
                return frames + await self._turn_over()
            # the entries may have no frames on this wire: read on instead of waiting
            if frames or not entries:
                return frames
        if self._reader.cut:
            return self.encoder.close(cut=True)
        return await self._turn_over()

    async def _turn_over(self) -> bytes:
        """The run that is read waits or has ended."""
        if self.turn.following is not None:
            next_turn = await self._service.posts.follow(self.turn.run.owner, self.turn.following)
            self.encoder.is_followed = False
            if next_turn is not None:
                self._read(next_turn)
                return self.encoder.correct(_history(next_turn, self._root) or [])
        return self.encoder.end() if self.encoder.ended else await self._pause()

    async def _pause(self) -> bytes:
        asked = self.encoder.questions
        tools = {call.tool_version: await self._service.tool_of(call) for call in asked}
        return self.encoder.pause(tools)
