"""Endpoints of pause and resume: run, tool_results, stream, abort, and the history of threads."""

from __future__ import annotations

from farhand.agent.endings import ABORTED
from farhand.agent.farhand import Farhand
from farhand.errors import TooLarge
from farhand.faces.awaiting.decode import (
    check_thread_id,
    decode_conversation_page,
    decode_format,
    decode_message,
    decode_results,
    decode_session_page,
)
from farhand.faces.awaiting.encode import Encoder
from farhand.faces.awaiting.exchange import Exchange, Refusing, answer, begin, resume
from farhand.faces.awaiting.history import conversations, sessions
from farhand.faces.awaiting.refusal import encode_error, encode_refusal
from farhand.faces.awaiting.shapes import Format
from farhand.faces.base import Face, Request, Route, follow
from farhand.wire.address import query
from farhand.wire.json_out import encode

HEADERS = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
)

UPLOAD_IT = "Upload large files with POST /api/files and send their ref as file_id. Nothing was started."


def awaiting_face(farhand: Farhand) -> Face:
    endpoints = _Endpoints(farhand)
    limits = farhand.settings.limits
    return Face(
        name="awaiting",
        explain=encode_error,
        routes=(
            Route("GET", "/agent/sessions", endpoints.sessions, scope="chat"),
            Route("GET", "/agent/{agent_uuid}/conversations", endpoints.conversations, scope="chat"),
            Route("POST", "/agent/run", endpoints.run, scope="chat", limit=limits.chat_body, streams=True),
            Route(
                "POST",
                "/agent/tool_results",
                endpoints.results,
                scope="answer",
                limit=limits.result_body,
                rate="results",
                streams=True,
            ),
            Route("GET", "/agent/{agent_uuid}/stream", endpoints.stream, scope="chat", streams=True),
            Route("POST", "/agent/{agent_uuid}/abort", endpoints.abort, scope="chat"),
        ),
    )


class _Endpoints:
    def __init__(self, farhand: Farhand) -> None:
        self._farhand = farhand

    async def run(self, request: Request) -> None:
        formatter = self._format(request)
        try:
            body = await request.json()
        except TooLarge as fault:
            raise TooLarge(fault.message, hint=UPLOAD_IT) from None
        prompt = decode_message(body)
        await self._show(request, await begin(self._farhand, request.owner, prompt, formatter))

    async def sessions(self, request: Request) -> None:
        page = decode_session_page(query(request.scope))
        await request.reply(200, encode(await sessions(self._farhand, request.owner, page)))

    async def conversations(self, request: Request) -> None:
        page = decode_conversation_page(query(request.scope))
        thread_id = self._thread_id(request)
        await request.reply(200, encode(await conversations(self._farhand, request.owner, thread_id, page)))

    async def results(self, request: Request) -> None:
        formatter = self._format(request)
        most = self._farhand.settings.limits.open_calls_per_run
        results = decode_results(await request.json(), most=most)
        answered = await answer(self._farhand, request.principal, results, formatter)
        if isinstance(answered, Refusing):
            await request.reply(*encode_refusal(answered.call_ids, answered.receipts))
            return
        await self._show(request, answered)

    async def stream(self, request: Request) -> None:
        formatter = self._format(request)
        last = request.header(b"last-event-id")
        last_event_id = None if last is None else last.decode("latin-1")
        thread_id = self._thread_id(request)
        await self._show(
            request, await resume(self._farhand, request.owner, thread_id, formatter, last_event_id)
        )

    async def abort(self, request: Request) -> None:
        request.bodiless()
        stopped = await self._farhand.stop(request.owner, self._thread_id(request), ABORTED)
        await request.reply(200, encode({"ok": True} if stopped else {"ok": True, "ignored": True}))

    async def _show(self, request: Request, exchange: Exchange) -> None:
        encoder = Encoder(exchange.opening)
        with self._farhand.read(exchange.run, exchange.start) as reader:
            await follow(request, reader, encoder, headers=HEADERS)

    def _format(self, request: Request) -> Format:
        return decode_format(query(request.scope), self._farhand.spec.formatter)

    def _thread_id(self, request: Request) -> str:
        thread_id = request.parameter("agent_uuid")
        check_thread_id(thread_id)
        return thread_id
