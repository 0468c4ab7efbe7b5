"""Endpoints around the stream: chats, inbox, tools."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from farhand.agent.service import AgentService
from farhand.agent.thread_search import search_threads
from farhand.core.call import Call, Phase
from farhand.core.position import Entry
from farhand.core.principal import name_in
from farhand.core.run import Run, RunState
from farhand.core.thread import Thread
from farhand.core.tool import Tool
from farhand.errors import NotFound
from farhand.faces.base import (
    PAGE_SIZE,
    THREAD,
    Face,
    Ok,
    Parameter,
    Request,
    Route,
    decode_thread,
    waiting_calls,
)
from farhand.faces.threads.decode import MOST_WORDS, decode_page, decode_resume, decode_title
from farhand.faces.threads.encode import (
    ThreadSnapshot,
    encode_about,
    encode_allowed,
    encode_inbox,
    encode_page,
    encode_thread,
    encode_tools,
)
from farhand.faces.threads.shapes import (
    AboutShape,
    AllowedShape,
    InboxShape,
    Rename,
    ThreadPage,
    ThreadShape,
    ToolsShape,
)
from farhand.wire.address import base_url, query, root_path
from farhand.wire.json_writer import encode

OK = encode(Ok(ok=True))
AFTER_THREAD = Parameter(
    "after", {"type": "string", "pattern": r"^[0-9]{1,12}(\.[0-9]{1,17})?:[A-Za-z0-9_.:-]{1,128}$"}
)

RESUME = Parameter("resume", {"enum": ["true", "false"]})
WORDS = Parameter("q", {"type": "string", "maxLength": MOST_WORDS})


def threads_face(service: AgentService, *, shows_inspector: bool = False) -> Face:
    endpoints = _Endpoints(service, shows_inspector=shows_inspector)
    chat = partial(Route, scope="chat")
    return Face(
        name="threads",
        routes=(
            chat(
                "GET",
                "/api/chat",
                endpoints.threads,
                gives=ThreadPage,
                parameters=(PAGE_SIZE, AFTER_THREAD, WORDS),
                name="list",
            ),
            chat("GET", "/api/chat/{thread_id}", endpoints.thread, gives=ThreadShape, parameters=(RESUME,)),
            chat("PATCH", "/api/chat/{thread_id}", endpoints.rename, limit=4096, takes=Rename, gives=Ok),
            chat("DELETE", "/api/chat/{thread_id}", endpoints.delete, gives=Ok),
            chat("GET", "/api/chat/{thread_id}/allowed", endpoints.allowed, gives=AllowedShape),
            Route(
                "DELETE",
                "/api/chat/{thread_id}/allowed/{tool}",
                endpoints.disallow,
                scope="approve",
                gives=Ok,
            ),
            Route(
                "GET",
                "/api/inbox",
                endpoints.inbox,
                scope="answer|approve",
                gives=InboxShape,
                parameters=(THREAD,),
            ),
            chat("GET", "/api/tools", endpoints.tools, gives=ToolsShape),
            chat("GET", "/api/about", endpoints.about, gives=AboutShape),
        ),
    )


class _Endpoints:
    def __init__(self, service: AgentService, *, shows_inspector: bool) -> None:
        self._service = service
        self._shows_inspector = shows_inspector

    async def threads(self, request: Request) -> None:
        """List your chats, newest first; with `q`, those with these words in their title or your messages."""
        page = decode_page(query(request.scope))
        if page.words:
            matches = await search_threads(
                self._service.log, request.owner, page.words, limit=page.limit, after=page.after
            )
            await request.reply(200, encode_page(matches.threads, matches.following))
            return
        found = await self._service.log.threads_of(request.owner, limit=page.limit + 1, after=page.after)
        shown = found[: page.limit]
        await request.reply(200, encode_page(shown, shown[-1].cursor if len(found) > len(shown) else None))

    async def thread(self, request: Request) -> None:
        """Read one chat."""
        to_resume = decode_resume(query(request.scope))
        thread = await self._load(request)
        # the run is read before the messages, so that its current step is in one of the two
        run = await self._service.log.last_run(request.owner, thread.thread_id)
        messages = await self._service.log.messages(request.owner, thread.thread_id)
        of_run = await self._service.calls(run) if run is not None else []
        alone = [
            call
            for call in await self._service.log.open_calls(request.owner, thread.thread_id)
            if call.run_id is None
        ]
        calls = [*of_run, *alone]
        unfinished = None
        if run is not None and not to_resume:
            unfinished = await self._service.unfinished_step(run, messages)
        last = () if run is None else await self._end_of(run)
        seen = ThreadSnapshot(thread, run, last, unfinished, await self._asked_tools(calls))
        root, reader = root_path(request.scope), name_in(request.principal.claims)
        shown = encode_thread(seen, messages, calls, root=root, to_resume=to_resume, reader=reader)
        await request.reply(200, shown)

    async def rename(self, request: Request) -> None:
        """Change the title of a chat."""
        title = decode_title(await request.json(), self._service.settings.limits)
        thread = await self._load(request)
        await self._service.rename(request.owner, thread.thread_id, title)
        await request.reply(200, OK)

    async def delete(self, request: Request) -> None:
        """Delete a chat and everything in it."""
        request.bodiless()
        # without loading it first: a chat that cannot be read can be deleted, too
        if not await self._service.delete(request.owner, request.parameter("thread_id")):
            raise NotFound("There is no such chat.")
        await request.reply(200, OK)

    async def allowed(self, request: Request) -> None:
        """List the tools that run in a chat without being asked about."""
        thread = await self._load(request)
        await request.reply(
            200, encode_allowed(await self._service.log.allowed_in(request.owner, thread.thread_id))
        )

    async def disallow(self, request: Request) -> None:
        """Ask about a tool again in this chat."""
        request.bodiless()
        thread = await self._load(request)
        if not await self._service.disallow(request.owner, thread.thread_id, request.parameter("tool")):
            raise NotFound("This tool is not always allowed in this chat.")
        await request.reply(200, OK)

    async def inbox(self, request: Request) -> None:
        """List the calls that wait for you."""
        thread_id = decode_thread(query(request.scope))
        calls = await waiting_calls(self._service, request.owner, thread_id)
        tools = await self._asked_tools([call for call, _ in calls])
        await request.reply(200, encode_inbox(calls, tools))

    async def tools(self, request: Request) -> None:
        """List the tools that your runs see."""
        await request.reply(200, encode_tools(await self._service.tools(request.principal)))

    async def about(self, request: Request) -> None:
        """Read what a page shows about its server."""
        on_visited = self._service.spec.branding.on_visited
        if on_visited is not None:
            on_visited(request.owner, base_url(request.scope))
        about = encode_about(
            self._service.spec,
            self._service.settings.files.size,
            root=root_path(request.scope),
            has_inspector=self._shows_inspector and "inspect" in request.principal.scopes,
            owner=request.principal.owner,
        )
        await request.reply(200, about)

    async def _asked_tools(self, calls: Sequence[Call]) -> dict[str, Tool | None]:
        """By version: the tools of calls that wait for an approval, as they were when each was opened."""
        asking = [call for call in calls if call.phase is Phase.ASKING]
        return {call.tool_version: await self._service.tool_of(call) for call in asking}

    async def _end_of(self, run: Run) -> Sequence[Entry]:
        """The last events of a failed run, which say why it failed; a note about delivery may follow."""
        if run.state is not RunState.FAILED:
            return ()
        return await self._service.log.entries(run)

    async def _load(self, request: Request) -> Thread:
        thread = await self._service.log.get_thread(request.owner, request.parameter("thread_id"))
        if thread is None:
            raise NotFound("There is no such chat.")
        return thread
