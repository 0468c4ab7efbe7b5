"""Endpoints of the chat stream: post, stop."""

from __future__ import annotations

from farhand.agent.endings import STOPPED_BY_USER
from farhand.agent.farhand import Farhand
from farhand.core.event import START, Position
from farhand.core.run import Run
from farhand.errors import NotFound
from farhand.faces.base import Face, Request, Route, follow
from farhand.faces.ui_stream.decode import Chat, decode_chat
from farhand.faces.ui_stream.encode import Encoder, encode_error
from farhand.wire.json_out import encode

HEADERS = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache"),
    (b"x-vercel-ai-ui-message-stream", b"v1"),
    (b"x-accel-buffering", b"no"),
)


def ui_stream_face(farhand: Farhand) -> Face:
    endpoints = _Endpoints(farhand)
    chat_body = farhand.settings.limits.chat_body
    return Face(
        name="ui_stream",
        explain=encode_error,
        routes=(
            Route("POST", "/api/chat", endpoints.chat, scope="chat", limit=chat_body),
            Route("POST", "/api/chat/{thread_id}/stop", endpoints.stop, scope="chat"),
        ),
    )


class _Endpoints:
    def __init__(self, farhand: Farhand) -> None:
        self._farhand = farhand

    async def chat(self, request: Request) -> None:
        chat = decode_chat(await request.json())
        if chat.message is not None:
            await self._begin(request, chat)
        else:
            await self._go_on(request, chat)

    async def stop(self, request: Request) -> None:
        stopped = await self._farhand.stop(request.owner, request.parameter("thread_id"), STOPPED_BY_USER)
        await request.reply(200, encode({"ok": True} if stopped else {"ok": True, "ignored": True}))

    async def _begin(self, request: Request, chat: Chat) -> None:
        """A user's message: its run, or, if it was posted before, the replay of the answer."""
        assert chat.message is not None, "a post begins with a message or goes on with answers"
        hold_for = self._farhand.settings.patience.hold_for if chat.held else 0.0
        started = await self._farhand.start(request.owner, chat.thread_id, chat.message, hold_for=hold_for)
        await self._follow(request, started.run, START, Encoder(started.run.run_id))

    async def _go_on(self, request: Request, chat: Chat) -> None:
        """Answers for open calls. What is settled already is shown as it is stored."""
        farhand = self._farhand
        run = await farhand.find_run(request.owner, chat.thread_id)
        if run is None:
            raise NotFound("There is no such chat.")
        after = await farhand.end_of_step(run, chat.call_ids)
        hold_for = farhand.settings.patience.hold_for if chat.held else 0.0
        await farhand.accept(run, chat.brought, hold_for=hold_for)
        now = await farhand.last_run(request.owner, chat.thread_id)
        encoder = Encoder(run.run_id, past=run.last_seq)
        # some calls are still open: this turn has nothing more to show
        ends = now.parked and now.blockers > 0 and not chat.held
        await self._follow(request, run, after, encoder, until=now.last_seq if ends else None)

    async def _follow(
        self, request: Request, run: Run, after: Position, encoder: Encoder, *, until: int | None = None
    ) -> None:
        with self._farhand.read(run, after) as reader:
            await follow(request, reader, encoder, headers=HEADERS, until=until)
