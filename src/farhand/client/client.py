"""The public Client: registers its tools, listens for calls, reconnects, and unregisters at the end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from math import inf
from typing import ParamSpec, TypedDict, TypeVar, Unpack, overload

import anyio
import msgspec

from farhand.client.connection import ServerConnection, Unreachable, check_server_address, retry_until_reached
from farhand.client.executor import CallExecutor, CallRequest
from farhand.clock import SystemClock
from farhand.core.client import tool_name
from farhand.core.file import media_type_of
from farhand.core.ids import is_client_id
from farhand.core.tool import Tool
from farhand.errors import BadSetting, BadTool, FarhandError, Rejected, Superseded, suggest_name
from farhand.tools.declared import DeclaredTool
from farhand.tools.keyword_arguments import explain_arguments
from farhand.tools.toolbox import AnyTool, Toolbox
from farhand.wire.sse import Event

log = logging.getLogger("farhand.client")

P = ParamSpec("P")
R = TypeVar("R")

LEAVE_WITHIN_SEC = 5.0
BRIEF_SEC = 1.0
LONGEST_GRACE_SEC = 86_400


class ClientToolOptions(TypedDict, total=False):
    timeout_sec: float | None
    needs_approval: bool
    title: str | None


class NamedClientToolOptions(ClientToolOptions, total=False):
    name: str | None


class Client:
    """A program that offers tools to the assistants of one owner on a farhand server.

    Args:
        url: Address of the farhand server.
        client_id: A name for this program, chosen by you; use the same one after a restart.
        token: The credential that the server asks for.
        grace_sec: How long the server keeps the tools while the connection is lost (the server's default is
            5 s).
        at_once: How many handlers run at the same time.
        finish_within: Seconds that running handlers get to finish when the client stops.

    Example:
        client = Client("http://127.0.0.1:8787", "my-notes", token=os.environ["FARHAND_TOKEN"])

        @client.tool
        def read_note(name: str) -> str:
            '''Read a note.'''
            return Path("notes", name).read_text()

        asyncio.run(client.run())
    """

    @explain_arguments("Client()")
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
        _check_client_id(client_id)
        if not _is_count(at_once):
            raise BadSetting(f"at_once must be a whole number of at least 1, not {at_once!r}.")
        if grace_sec is not None and not _is_seconds(grace_sec, LONGEST_GRACE_SEC):
            raise BadSetting(f"grace_sec must be a number from 0 to {LONGEST_GRACE_SEC}, not {grace_sec!r}.")
        if not _is_seconds(finish_within, inf):
            raise BadSetting(f"finish_within must be a number of seconds, not {finish_within!r}.")
        check_server_address(url, token)
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
        self._is_cleaned_up = False

    @overload
    def tool(self, function: Callable[P, R], /) -> DeclaredTool[P, R]: ...
    @overload
    def tool(
        self, /, **options: Unpack[NamedClientToolOptions]
    ) -> Callable[[Callable[P, R]], DeclaredTool[P, R]]: ...
    def tool(
        self, function: Callable[P, R] | None = None, /, **options: Unpack[NamedClientToolOptions]
    ) -> DeclaredTool[P, R] | Callable[[Callable[P, R]], DeclaredTool[P, R]]:
        """Offer this function as a tool; its schemas come from type hints and docstring, as for any tool.

        An async function runs on the event loop, any other in a thread. An exception becomes a failure that
        the model reads. The return type becomes the tool's output schema: the server checks every result
        against it, and an output that does not match is a failure.

        `timeout_sec` is how long a call may take (1 to 86 400; the server's default is 30). Each progress
        report restarts it, up to ten times the timeout in total. With `needs_approval=True` a person is
        always asked first, whatever the server's policy. `title` is the name that people see.

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
        **options: Unpack[ClientToolOptions],
    ) -> AnyTool:
        """Offer a function with an explicit input schema; it gets the members of the input as arguments.

        Example:
            schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
            client.add("read_note", "Read a note.", schema, lambda name: Path(name).read_text())
        """
        _check_options(options, name)
        return self._toolbox.add(name, description, parameters, function, **options)

    async def upload(self, data: bytes, *, name: str, media_type: str) -> dict[str, object]:
        """Upload a file that is too large for a result. Returns its `ref`, `name`, `type` and `size`.

        A handler returns this, alone or inside its output, to refer to the file. Retries while the server is
        unreachable; raises `Rejected` if the server refuses the file.

        Example:
            photo = await client.upload(jpeg, name="lamp.jpg", media_type="image/jpeg")
        """
        if media_type_of(media_type) != media_type:
            raise BadSetting(f"'{media_type}' is not a media type.", hint="Use one such as image/png.")
        holder = SystemClock().fresh(f"{self.client_id}.p")
        async with ServerConnection(self.url, self.client_id, holder, token=self._token) as server:
            return await retry_until_reached(lambda: server.upload(data, name=name, media_type=media_type))

    async def run(self) -> None:
        """Serve calls until the client is stopped or cancelled, then unregister the tools.

        Reconnects as often as needed. Raises `Rejected` if the server refuses the client, and `Superseded` if
        another program connects as this client.
        """
        self._loop = asyncio.get_running_loop()
        holder = SystemClock().fresh(f"{self.client_id}.p")
        async with ServerConnection(self.url, self.client_id, holder, token=self._token) as server:
            fault = await self._run(server)
        if fault is not None:
            raise fault

    def stop(self) -> None:
        """End `run()`; running handlers may finish first. Safe to call from any thread."""
        if self._loop is None or self._loop.is_closed():
            self._stopped.set()
        else:
            self._loop.call_soon_threadsafe(self._stopped.set)

    async def _run(self, server: ServerConnection) -> FarhandError | None:
        async with asyncio.TaskGroup() as group:
            executor = CallExecutor(server, self._toolbox, at_once=self._at_once)
            serving = group.create_task(self._serve(server, executor))
            others = [group.create_task(executor.keep_alive()), group.create_task(self._stopped.wait())]
            try:
                await asyncio.wait([serving, others[1]], return_when=asyncio.FIRST_COMPLETED)
            finally:
                # while the stream is still open: without it, the server would fail the running calls
                await executor.close(self._finish_within)
                for task in (serving, *others):
                    task.cancel()
                await asyncio.wait([serving])
                self._stopped.clear()
                fault = None if serving.cancelled() else serving.result()
                # a program that replaced this one keeps its tools
                if not isinstance(fault, Superseded):
                    await self._unregister_all(server)
        return fault

    async def _serve(self, server: ServerConnection, executor: CallExecutor) -> FarhandError:
        """Runs until it cannot continue; returns why."""
        try:
            while True:
                await retry_until_reached(lambda: self._connect_or_log(server, executor))
        except (Rejected, Superseded) as fault:
            return fault

    async def _connect_or_log(self, server: ServerConnection, executor: CallExecutor) -> None:
        try:
            await self._connect(server, executor)
        except Unreachable as error:
            # logged once, not at every attempt
            if not self._out_of_reach:
                log.warning("client %s cannot reach %s, retrying: %s", self.client_id, self.url, error)
            self._out_of_reach = True
            raise

    async def _connect(self, server: ServerConnection, executor: CallExecutor) -> None:
        """One connection, from registration until it is lost. Raises `Unreachable` if nothing arrived."""
        await self._register(server)
        async with server.requests() as events, aclosing(events):
            # a program that was this client before may have unregistered the tools since
            await self._register_missing(server)
            self.connected.set()
            self._out_of_reach = False
            log.info("client %s is connected to %s", self.client_id, self.url)
            began = anyio.current_time()
            try:
                had_events = await self._listen(server, events, executor)
            finally:
                self.connected.clear()
        log.info("client %s lost its connection", self.client_id)
        if not had_events and anyio.current_time() - began < BRIEF_SEC:
            raise Unreachable("The server closed the stream immediately.")

    async def _register(self, server: ServerConnection) -> None:
        await server.register([_offer(tool) for tool in self._toolbox], self._grace_sec)
        if not self._is_cleaned_up:
            await self._clean_up(server)

    async def _clean_up(self, server: ServerConnection) -> None:
        """Unregisters tools that another program left behind as this client."""
        own = self._own_names()
        left = [name for name in await server.registered() if name not in own]
        if left:
            await server.unregister(left)
        self._is_cleaned_up = True

    async def _listen(
        self, server: ServerConnection, events: AsyncIterator[Event], executor: CallExecutor
    ) -> bool:
        """Handles events until the stream ends; returns whether there were any."""
        had_events = False
        try:
            async for event in events:
                had_events = True
                _dispatch(event, executor)
                if event.event == "tool-unregistered":
                    await self._register_missing(server)
        except Unreachable as error:
            log.info("%s", error)
        return had_events

    async def _register_missing(self, server: ServerConnection) -> None:
        """Registers tools again that were unregistered while the client is running."""
        missing = self._own_names().difference(await server.registered())
        if missing:
            log.warning("%s was unregistered; registering it again", ", ".join(sorted(missing)))
            await self._register(server)

    def _own_names(self) -> set[str]:
        return {tool_name(self.client_id, tool.name) for tool in self._toolbox}

    async def _unregister_all(self, server: ServerConnection) -> None:
        try:
            await retry_until_reached(server.unregister, within=LEAVE_WITHIN_SEC)
        except (Unreachable, Rejected) as error:
            # the server does it on its own after the grace period
            log.info("client %s could not unregister: %s", self.client_id, error)


def _check_options(options: Mapping[str, object], name: str) -> None:
    """Raises `BadTool` for options that cannot be sent to a server: where a tool runs, and functions."""
    for option, value in options.items():
        if option not in _OPTIONS:
            known = ", ".join(f"`{known}`" for known in _OPTIONS)
            raise BadTool(
                f"A client's tool has no option `{option}`{suggest_name(option, _OPTIONS)}",
                hint=f"Its options are {known}.",
            )
        if option == "needs_approval" and not isinstance(value, bool):
            raise BadTool(
                f"`needs_approval` of tool `{name}` must be True or False.",
                hint="The server decides, and it cannot call a function of this program.",
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


def _dispatch(event: Event, executor: CallExecutor) -> None:
    try:
        _act_on(event, executor)
    except (msgspec.DecodeError, KeyError) as error:
        log.warning("ignoring an event of the server that cannot be read: %s", error)


def _act_on(event: Event, executor: CallExecutor) -> None:
    if event.event == "tool-request":
        executor.take(msgspec.json.decode(event.data, type=CallRequest))
    elif event.event == "tool-settled":
        executor.drop(msgspec.json.decode(event.data, type=dict[str, str])["requestID"])
    elif event.event == "superseded":
        raise Superseded(
            "Another program has connected with this client id.", hint="Give each program its own client id."
        )


# `object`: not every caller checks types
def _check_client_id(client_id: object) -> None:
    if not isinstance(client_id, str) or not is_client_id(client_id):
        raise BadSetting(
            f"{client_id!r} is not a valid client id.", hint="Choose 1 to 64 letters, digits, `_` or `-`."
        )


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _is_seconds(value: object, longest: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= longest
