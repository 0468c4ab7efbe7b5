"""Endpoints around the stream: chats, inbox, tools."""

from __future__ import annotations

from collections.abc import Sequence

from farhand.agent.farhand import Farhand
from farhand.core.event import Entry
from farhand.core.run import Run, RunState
from farhand.core.thread import Thread
from farhand.errors import NotFound
from farhand.faces.base import Face, Request, Route, if_readable
from farhand.faces.threads.decode import decode_page, decode_resume, decode_title
from farhand.faces.threads.encode import (
    Seen,
    encode_about,
    encode_error,
    encode_inbox,
    encode_page,
    encode_thread,
    encode_tools,
)
from farhand.wire.address import query
from farhand.wire.json_out import encode

OK = encode({"ok": True})


def threads_face(farhand: Farhand) -> Face:
    endpoints = _Endpoints(farhand)
    return Face(
        name="threads",
        explain=encode_error,
        routes=(
            Route("GET", "/api/chat", endpoints.threads, scope="chat"),
            Route("GET", "/api/chat/{thread_id}", endpoints.thread, scope="chat"),
            Route("PATCH", "/api/chat/{thread_id}", endpoints.rename, scope="chat", limit=4096),
            Route("DELETE", "/api/chat/{thread_id}", endpoints.delete, scope="chat"),
            Route("GET", "/api/inbox", endpoints.inbox, scope="answer"),
            Route("GET", "/api/tools", endpoints.tools, scope="chat"),
            Route("GET", "/api/about", endpoints.about, scope="chat"),
        ),
    )


class _Endpoints:
    def __init__(self, farhand: Farhand) -> None:
        self._farhand = farhand

    async def threads(self, request: Request) -> None:
        page = decode_page(query(request.scope))
        found = await self._farhand.threads(request.owner, limit=page.limit + 1, after=page.after)
        shown = found[: page.limit]
        rows = [
            (
                thread,
                await if_readable(self._farhand.find_run(request.owner, thread.thread_id), thread.thread_id),
                len(await self._farhand.open_calls(request.owner, thread.thread_id)),
            )
            for thread in shown
        ]
        await request.reply(200, encode_page(rows, shown[-1].used if len(found) > len(shown) else None))

    async def thread(self, request: Request) -> None:
        to_resume = decode_resume(query(request.scope))
        thread = await self._load(request)
        # the run before the messages: what it had written by then is in one of the two
        run = await self._farhand.find_run(request.owner, thread.thread_id)
        messages = await self._farhand.messages(request.owner, thread.thread_id)
        of_run = await self._farhand.calls(run) if run is not None else []
        alone = [
            call
            for call in await self._farhand.open_calls(request.owner, thread.thread_id)
            if call.run_id is None
        ]
        root = str(request.scope.get("root_path", ""))
        seen = Seen(thread, run)
        if run is not None:
            unfinished = None if to_resume else await self._farhand.unfinished_step(run, messages)
            seen = Seen(thread, run, await self._end_of(run), unfinished)
        calls = [*of_run, *alone]
        await request.reply(200, encode_thread(seen, messages, calls, root=root, to_resume=to_resume))

    async def rename(self, request: Request) -> None:
        title = decode_title(await request.json(), self._farhand.settings.limits)
        thread = await self._load(request)
        await self._farhand.rename(request.owner, thread.thread_id, title)
        await request.reply(200, OK)

    async def delete(self, request: Request) -> None:
        request.bodiless()
        thread = await self._load(request)
        await self._farhand.delete(request.owner, thread.thread_id)
        await request.reply(200, OK)

    async def inbox(self, request: Request) -> None:
        calls = [call for call in await self._farhand.open_calls(request.owner) if call.blocks]
        titles = {
            thread_id: thread.title if thread is not None else ""
            for thread_id in {call.thread_id for call in calls}
            for thread in [await if_readable(self._farhand.thread(request.owner, thread_id), thread_id)]
        }
        await request.reply(200, encode_inbox((call, titles[call.thread_id]) for call in calls))

    async def tools(self, request: Request) -> None:
        await request.reply(200, encode_tools(self._farhand.kit.tools(request.owner)))

    async def about(self, request: Request) -> None:
        model, files = self._farhand.spec.model.name, self._farhand.settings.files
        await request.reply(200, encode_about(model, files.size))

    async def _end_of(self, run: Run) -> Sequence[Entry]:
        """The end of a journal says why a run failed; that somebody has heard of it may stand behind."""
        if run.state is not RunState.FAILED:
            return ()
        return await self._farhand.kit.store.events(run.owner, run.run_id, after=max(0, run.last_seq - 2))

    async def _load(self, request: Request) -> Thread:
        thread = await self._farhand.thread(request.owner, request.parameter("thread_id"))
        if thread is None:
            raise NotFound("There is no such chat.")
        return thread
