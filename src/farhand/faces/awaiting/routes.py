"""Endpoints of pause and resume: run, tool_results, stream, abort, and the history of threads."""

from __future__ import annotations

from functools import partial
from uuid import UUID

from farhand.agent.service import AgentService
from farhand.agent.start_run import ABORTED
from farhand.agent.turns import NewMessage, Turn
from farhand.core.position import START, Position, parse_bookmark
from farhand.errors import NotFound, TooLarge
from farhand.faces.awaiting.decode import (
    decode_conversation_page,
    decode_format,
    decode_message,
    decode_results,
    decode_session_page,
)
from farhand.faces.awaiting.encode import (
    AwaitingEncoder,
    StreamStart,
    encode_error,
    encode_refusal,
    start_stream,
)
from farhand.faces.awaiting.history import conversations, sessions
from farhand.faces.awaiting.shapes import (
    ConversationList,
    Format,
    Refusal,
    RunRequest,
    SessionList,
    ToolResultsRequest,
)
from farhand.faces.base import (
    LAST_EVENT_ID,
    PAGE_SIZE,
    Face,
    Ok,
    Parameter,
    Request,
    Route,
    check_id,
    follow,
)
from farhand.wire.address import query
from farhand.wire.json_writer import encode

EVERYTHING = Position(0, 1)
"""Before the first event, but not START: a replay from START leaves out steps that a crash cut short, and a
reader that comes back may have seen them."""

_GAP_CHARS = 64

UPLOAD_IT = "Upload large files with POST /api/files and send their ref as file_id. Nothing was started."

FORMAT = Parameter("format", {"enum": ["xml", "raw"]})


def awaiting_face(service: AgentService) -> Face:
    endpoints = _Endpoints(service)
    limits = service.settings.limits
    chat = partial(Route, scope="chat")
    return Face(
        name="awaiting",
        explain=encode_error,
        refusal=Refusal,
        routes=(
            chat(
                "GET",
                "/agent/sessions",
                endpoints.sessions,
                gives=SessionList,
                parameters=(PAGE_SIZE, _count("offset", 0, 10_000)),
            ),
            chat(
                "GET",
                "/agent/{agent_uuid}/conversations",
                endpoints.conversations,
                gives=ConversationList,
                parameters=(PAGE_SIZE, _count("before", 1, 2**31)),
            ),
            chat(
                "POST",
                "/agent/run",
                endpoints.run,
                limit=limits.chat_body,
                streams=True,
                takes=RunRequest,
                parameters=(FORMAT,),
            ),
            Route(
                "POST",
                "/agent/tool_results",
                endpoints.tool_results,
                scope="answer",
                limit=limits.result_body,
                rate="results",
                streams=True,
                takes=ToolResultsRequest,
                parameters=(FORMAT,),
            ),
            chat(
                "GET",
                "/agent/{agent_uuid}/stream",
                endpoints.stream,
                streams=True,
                parameters=(FORMAT, LAST_EVENT_ID),
            ),
            chat("POST", "/agent/{agent_uuid}/abort", endpoints.abort, gives=Ok),
        ),
    )


def _count(name: str, least: int, most: int) -> Parameter:
    return Parameter(name, {"type": "integer", "minimum": least, "maximum": most})


class _Endpoints:
    def __init__(self, service: AgentService) -> None:
        self._service = service

    async def run(self, request: Request) -> None:
        """Start or continue a thread."""
        formatter = self._format(request)
        try:
            body = await request.json()
        except TooLarge as fault:
            raise TooLarge(fault.message, hint=UPLOAD_IT) from None
        prompt = decode_message(body)
        fresh, thread_id = self._service.clock.fresh, prompt.thread_id
        if thread_id is None:
            thread_id = str(UUID(hex=fresh("thr")[-32:], version=4))
        elif await self._service.log.get_thread(request.owner, thread_id) is None:
            raise NotFound("There is no such agent_uuid.", hint="Leave it out to begin a new conversation.")
        message = NewMessage(fresh("msg"), prompt.parts)
        turn = await self._service.turns.begin(request.principal, thread_id, message, wait="turn")
        await self._show(request, turn, start_stream(turn, formatter, self._model))

    async def sessions(self, request: Request) -> None:
        """List the caller's threads."""
        page = decode_session_page(query(request.scope))
        await request.reply(200, encode(await sessions(self._service, request.owner, page)))

    async def conversations(self, request: Request) -> None:
        """Read the messages of a thread."""
        page = decode_conversation_page(query(request.scope))
        thread_id = self._thread_id(request)
        await request.reply(200, encode(await conversations(self._service, request.owner, thread_id, page)))

    async def tool_results(self, request: Request) -> None:
        """Submit the results of a pause."""
        formatter = self._format(request)
        most = self._service.settings.limits.open_calls_per_run
        results = decode_results(await request.json(), most=most)
        answered = await self._service.turns.answer_pause(
            request.principal, results.thread_id, results.results
        )
        if answered.is_refused:
            await request.reply(*encode_refusal(answered.receipts))
            return
        turn = answered.turn
        start = start_stream(turn, formatter, self._model, ignored=answered.ignored)
        await self._show(request, turn, start, after=EVERYTHING)

    async def stream(self, request: Request) -> None:
        """Resume a stream."""
        formatter = self._format(request)
        last = request.header(b"last-event-id")
        last_event_id = None if last is None else last.decode("latin-1")
        after = None if last_event_id is None else parse_bookmark(last_event_id)
        turn = await self._service.turns.find(request.owner, self._thread_id(request), after)
        is_known = last_event_id is None or (after is not None and turn.seen is not None)
        gap = None if is_known or last_event_id is None else last_event_id[:_GAP_CHARS]
        start = start_stream(turn, formatter, self._model, gap=gap)
        await self._show(request, turn, start, after=START if turn.after == START else EVERYTHING)

    async def abort(self, request: Request) -> None:
        """Stop the run."""
        request.bodiless()
        stopped = await self._service.stop(request.owner, self._thread_id(request), ABORTED)
        await request.reply(200, encode(Ok(ok=True, ignored=not stopped)))

    async def _show(
        self, request: Request, turn: Turn, start: StreamStart, *, after: Position = START
    ) -> None:
        """`after` is where the journal is read from; `start` says which part of it the reader has."""
        with self._service.read(turn.run, after) as reader:
            await follow(request, reader, AwaitingEncoder(start))

    @property
    def _model(self) -> str:
        return self._service.spec.model.name

    def _format(self, request: Request) -> Format:
        return decode_format(query(request.scope), self._service.spec.formatter)

    def _thread_id(self, request: Request) -> str:
        return check_id(request.parameter("agent_uuid"), "agent_uuid")
