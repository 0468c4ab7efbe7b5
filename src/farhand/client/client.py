"""The public Client: its handlers, and a run that registers them, listens, reconnects and leaves cleanly."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from typing import ParamSpec, TypedDict, TypeVar, Unpack, overload

import anyio
import msgspec

from farhand.client.link import Away, Link, check_address
from farhand.client.retry import until_reached
from farhand.client.work import Asked, Work
from farhand.clock import SystemClock
from farhand.core.client import tool_name
from farhand.core.file import media_type_of
from farhand.core.ids import is_client_id
from farhand.core.tool import Tool
from farhand.errors import BadSetting, BadTool, FarhandError, Rejected, Superseded
from farhand.tools.declared import DeclaredTool
from farhand.tools.toolbox import AnyTool, Toolbox
from farhand.wire.sse import Event

log = logging.getLogger("farhand.client")

P = ParamSpec("P")
R = TypeVar("R")

LEAVE_WITHIN_SEC = 5.0
BRIEF_SEC = 1.0
LONGEST_GRACE_SEC = 86_400


class Options(TypedDict, total=False):
    timeout_sec: float | None
    needs_approval: bool
    title: str | None


class NamedOptions(Options, total=False):
    name: str | None


class Client:
    """An outside party that runs tools.

    Args:
        url: Address of the farhand server.
        client_id: The name of this party, chosen by you: the same one after a restart.
        token: What lets it in.
        grace_sec: How long the server keeps the tools while the connection is lost; its default is 5 s.
        at_once: How many handlers run at a time.
        finish_within: Seconds that handlers get to finish when the client stops.
    """

    def __init__(
        self,
        url: str,
        client_id: str,
        *,
        token: str | None = None,
        grace_sec: float | None = None,
        at_once: int = 16,
        finish_within: float = 5.0,
    ) -> None:
        if not is_client_id(client_id):
            raise BadSetting(
                f"A client can't be called {client_id!r}.", hint="Choose 1 to 64 letters, digits, `_` or `-`."
            )
        if at_once < 1:
            raise BadSetting(f"at_once is a number from 1 on, not {at_once}.")
        if grace_sec is not None and not 0 <= grace_sec <= LONGEST_GRACE_SEC:
            raise BadSetting(f"grace_sec is a number from 0 to {LONGEST_GRACE_SEC}, not {grace_sec}.")
        check_address(url, token)
        self.url = url
        self.client_id = client_id
        self.connected = asyncio.Event()
        """Set while the server can reach this client."""
        self._token = token
        self._grace_sec = grace_sec
        self._at_once = at_once
        self._finish_within = finish_within
        self._toolbox = Toolbox()
        self._stopped = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._out_of_reach = False
        self._tidied = False

    @overload
    def tool(self, function: Callable[P, R], /) -> DeclaredTool[P, R]: ...
    @overload
    def tool(self, /, **options: Unpack[NamedOptions]) -> Callable[[Callable[P, R]], DeclaredTool[P, R]]: ...
    def tool(
        self, function: Callable[P, R] | None = None, /, **options: Unpack[NamedOptions]
    ) -> DeclaredTool[P, R] | Callable[[Callable[P, R]], DeclaredTool[P, R]]:
        """Offers this function; its schema comes from hints and docstring, as for any tool.

        An async function runs on the loop, any other in a thread. What it raises is told to the model.

        `timeout_sec` is how long a call of it may take (1 to 86 400; the server's default is 30), and counts
        again from each report of progress, up to ten times that in all. With `needs_approval=True` a person
        is asked first, whatever the server's policy says. `title` is what people are shown.

        Example:
            @client.tool(timeout_sec=300, needs_approval=True, title="Run the tests")
            async def run_tests(path: str) -> str: ...
        """
        if function is not None:
            return self._toolbox.tool(function)
        _check_options(options, options.get("name") or "")
        return self._toolbox.tool(**options)

    def add(
        self,
        name: str,
        description: str,
        parameters: Mapping[str, object],
        function: Callable[..., object],
        **options: Unpack[Options],
    ) -> AnyTool:
        """Offers a function with a schema of its own; it gets the members of the input as arguments."""
        _check_options(options, name)
        return self._toolbox.add(name, description, parameters, function, **options)

    async def upload(self, data: bytes, *, name: str, media_type: str) -> dict[str, object]:
        """Brings a file that is too big for a result: its `ref`, `name`, `type` and `size`.

        A handler that returns this, or has it in what it returns, refers to the file. Tried until the server
        is there; `Rejected` if it does not take the file.
        """
        if media_type_of(media_type) != media_type:
            raise BadSetting(f"'{media_type}' is no media type.", hint="Write image/png, or so.")
        holder = SystemClock().fresh(f"{self.client_id}.p")
        async with Link(self.url, self.client_id, holder, token=self._token) as link:
            return await until_reached(lambda: link.upload(data, name=name, media_type=media_type))

    async def run(self) -> None:
        """Until it is stopped or cancelled; then the tools are withdrawn.

        However often the connection is lost, it comes back. `Rejected` if the server says no, `Superseded` if
        another program took over as this client.
        """
        self._loop = asyncio.get_running_loop()
        holder = SystemClock().fresh(f"{self.client_id}.p")
        async with Link(self.url, self.client_id, holder, token=self._token) as link:
            fault = await self._work(link)
        if fault is not None:
            raise fault

    def stop(self) -> None:
        """Ends `run()`, cleanly: what is under way may finish. From any thread."""
        if self._loop is None or self._loop.is_closed():
            self._stopped.set()
        else:
            self._loop.call_soon_threadsafe(self._stopped.set)

    async def _work(self, link: Link) -> FarhandError | None:
        async with asyncio.TaskGroup() as group:
            work = Work(link, self._toolbox, at_once=self._at_once)
            serving = group.create_task(self._serve(link, work))
            others = [group.create_task(work.keep_alive()), group.create_task(self._stopped.wait())]
            try:
                await asyncio.wait([serving, others[1]], return_when=asyncio.FIRST_COMPLETED)
            finally:
                # with the stream still open: a server that lost it would give up what is under way
                await work.close(self._finish_within)
                for task in (serving, *others):
                    task.cancel()
                await asyncio.wait([serving])
                self._stopped.clear()
                fault = None if serving.cancelled() else serving.result()
                # a successor that it has not heard of keeps its tools: the server knows who is the client now
                if not isinstance(fault, Superseded):
                    await self._withdraw(link)
        return fault

    async def _serve(self, link: Link, work: Work) -> FarhandError:
        """For ever; returns why it can't go on."""
        try:
            while True:
                await until_reached(lambda: self._try(link, work))
        except (Rejected, Superseded) as fault:
            return fault

    async def _try(self, link: Link, work: Work) -> None:
        try:
            await self._attend(link, work)
        except Away as error:
            # said once, not at every try
            if not self._out_of_reach:
                log.warning("client %s waits for %s: %s", self.client_id, self.url, error)
            self._out_of_reach = True
            raise

    async def _attend(self, link: Link, work: Work) -> None:
        """One connection, from registration to its loss. `Away` if it brought nothing: then wait a little."""
        await self._register(link)
        async with link.requests() as events, aclosing(events):
            # a program that was this client before may have withdrawn the tools since they were registered
            await self._offer_what_is_missing(link)
            self.connected.set()
            self._out_of_reach = False
            log.info("client %s is connected to %s", self.client_id, self.url)
            begun = anyio.current_time()
            try:
                heard = await self._hear(link, events, work)
            finally:
                self.connected.clear()
        log.info("client %s lost its connection", self.client_id)
        if not heard and anyio.current_time() - begun < BRIEF_SEC:
            raise Away("The server ended the stream at once.")

    async def _register(self, link: Link) -> None:
        await link.register([_offer(tool) for tool in self._toolbox], self._grace_sec)
        if not self._tidied:
            await self._tidy(link)

    async def _tidy(self, link: Link) -> None:
        """A program that was this client before may have left tools that this one does not have."""
        own = self._own()
        left = [name for name in await link.registered() if name not in own]
        if left:
            await link.unregister(left)
        self._tidied = True

    async def _hear(self, link: Link, events: AsyncIterator[Event], work: Work) -> bool:
        """Until the stream ends, however it does; whether anything was heard on it."""
        heard = False
        try:
            async for event in events:
                heard = True
                _react(event, work)
                if event.event == "tool-unregistered":
                    await self._offer_what_is_missing(link)
        except Away as error:
            log.info("%s", error)
        return heard

    async def _offer_what_is_missing(self, link: Link) -> None:
        """A client offers its tools as long as it runs, whoever unregistered them."""
        missing = self._own().difference(await link.registered())
        if missing:
            log.warning("somebody unregistered %s: it is offered again", ", ".join(sorted(missing)))
            await self._register(link)

    def _own(self) -> set[str]:
        return {tool_name(self.client_id, tool.name) for tool in self._toolbox}

    async def _withdraw(self, link: Link) -> None:
        try:
            await until_reached(link.unregister, within=LEAVE_WITHIN_SEC)
        except (Away, Rejected) as error:
            # the server does it itself after the grace
            log.info("client %s could not unregister: %s", self.client_id, error)


def _check_options(options: Mapping[str, object], name: str) -> None:
    """What a server can't be told of: where a tool runs, and functions of ours."""
    for option, value in options.items():
        if option not in _OPTIONS:
            known = ", ".join(f"`{known}`" for known in _OPTIONS)
            raise BadTool(f"A client's tool has no option `{option}`.", hint=f"There are {known}.")
        if option == "needs_approval" and not isinstance(value, bool):
            raise BadTool(
                f"`needs_approval` of tool `{name}` must be True or False.",
                hint="The server asks: it cannot be given a function.",
            )


_OPTIONS = ("name", "timeout_sec", "needs_approval", "title")


def _offer(tool: Tool) -> dict[str, object]:
    offer: dict[str, object] = {
        "id": tool.name,
        "description": tool.description,
        "parameters": tool.input_schema,
    }
    more = {
        "output": tool.output_schema,
        "title": tool.title,
        "timeoutSec": tool.timeout_sec,
        "needsApproval": tool.may_ask or None,
    }
    return offer | {name: value for name, value in more.items() if value is not None}


def _react(event: Event, work: Work) -> None:
    try:
        _do(event, work)
    except (msgspec.DecodeError, KeyError) as error:
        log.warning("the server said something that is not understood: %s", error)


def _do(event: Event, work: Work) -> None:
    if event.event == "tool-request":
        work.take(msgspec.json.decode(event.data, type=Asked))
    elif event.event == "tool-settled":
        work.drop(msgspec.json.decode(event.data, type=dict[str, str])["requestID"])
    elif event.event == "superseded":
        raise Superseded(
            "Another program listens as this client now.", hint="Give each program an id of its own."
        )
