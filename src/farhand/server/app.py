"""The ASGI app: one authenticator, one router, one error boundary around every endpoint.

Serve it, or mount it in a host app. A host's `mount` does not run a sub-app's lifespan, so the host enters
`.lifespan`; otherwise the first request starts the app and logs a warning.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from types import TracebackType
from typing import Self, TypeVar, overload

from msgspec.structs import replace
from starlette.types import Receive, Scope, Send

from farhand.agent.agent import Agent, Pending, pending_of
from farhand.agent.keyed_calls import OnSettled, Waiting
from farhand.agent.offered_tools import OfferedTools, RequestTools
from farhand.agent.service import AgentService, Spec, check_owner
from farhand.clients.registry import ClientTools
from farhand.clients.sessions import ClientSessions
from farhand.core.approval import Answer
from farhand.core.outcome import Outcome
from farhand.core.principal import LOCAL, Claims, Who, claims_of
from farhand.core.result import Accepted, Repeated
from farhand.core.settings import Settings
from farhand.core.tool import Tool
from farhand.errors import BadSetting, FarhandError, Misuse
from farhand.faces.base import Face
from farhand.models.base import NoModel
from farhand.models.registry import load_model
from farhand.server.app_settings import Arguments, as_texts, describe_settings, resolve
from farhand.server.app_state import AppState
from farhand.server.auth.authenticator import Authenticate, Authenticator
from farhand.server.endpoint import refuse_unstarted
from farhand.server.host_signals import HostSignals
from farhand.server.runtime import AppConfig, Runtime, open_runtime
from farhand.server.settings import ServerSettings, load_settings
from farhand.store.base import Store
from farhand.store.open import DEFAULT, check_address, redact_password
from farhand.tools.keyword_arguments import explain_arguments
from farhand.tools.toolbox import Toolbox

log = logging.getLogger("farhand.server")

T = TypeVar("T")

APPROVED = Answer(approved=True)
DRAIN_SEC = 6.0
"""Time for active runs to finish after a signal; the rest of ten seconds is for handing them over."""


class App:
    """What `create_app` returns: an ASGI app, and the methods that make, list, answer and cancel calls from
    Python.

    ```python
    from farhand import Toolbox, create_app

    app = create_app(Toolbox(), store="memory:")
    ```
    """

    def __init__(self, agent: Agent, auth: Authenticator, arguments: Arguments) -> None:
        self.agent = agent
        self.auth = auth
        self.inspector = arguments.inspector
        """Whether the Inspector is served; None: on without an `authenticate` hook, off with one."""
        self.logs_access = False
        """Whether the server process writes its access log."""
        self._arguments = arguments
        self._config: AppConfig | None = None
        self._runtime: Runtime | None = None
        self._starting = asyncio.Lock()
        self._failure: FarhandError | None = None
        """Why the last attempt to start failed."""
        self._listeners: list[tuple[str, OnSettled]] = []
        self._host_signals = HostSignals(partial(self.drain, DRAIN_SEC))

    def configure(self, read: ServerSettings, *, default_store: str = DEFAULT) -> None:
        """Resolves the settings from options, variables and the file.

        Only the first call has an effect: `farhand run` calls it with its options, else `start` calls it.
        """
        if self._config is not None:
            return
        # `app.auth.token`, `app.auth.open` and `app.inspector` may have been set from Python
        arguments = replace(
            self._arguments,
            token=self.auth.own_token,
            open=True if self.auth.open else None,
            inspector=self.inspector,
        )
        own_steps = self.agent.settings.limits.max_steps
        values = resolve(read, arguments, max_steps=own_steps, default_store=default_store)
        own_store = None if read.is_option("store") else self._arguments.store
        store = (values.store or default_store) if own_store is None else own_store
        if isinstance(store, str):
            check_address(store)
        spec = self.agent.spec
        if values.model is not None:
            spec = dataclasses.replace(spec, model=load_model(values.model))
        self._set_auth(values)
        self.inspector = values.inspector
        self._config = AppConfig(
            spec,
            store,
            values,
            AppState(values.settings),
            self.auth,
            request_tools=self._arguments.request_tools,
        )

    def _set_auth(self, values: ServerSettings) -> None:
        auth = self.auth
        if auth.has_hook and values.open:
            raise BadSetting(
                f"{values.origin('open')}: a server with an authenticate hook cannot be open.",
                hint="Leave one of them out.",
            )
        auth.allow(origins=values.allow_origin, hosts=values.allow_host, headers=values.allow_header)
        auth.limit_failed_sign_ins(values.settings.limits.failed_sign_ins_per_min)
        auth.open = values.open
        if values.token is not None and not auth.has_hook:
            auth.token = values.token

    @property
    def values(self) -> ServerSettings:
        """The resolved settings, with the origin of each; available once the app is configured."""
        return _started(self._config).values

    @property
    def settings(self) -> Settings:
        return self.values.settings

    @property
    def state(self) -> AppState:
        return _started(self._config).state

    @property
    def refusals(self) -> Mapping[tuple[str, str], int]:
        """How often requests were refused since the app was configured, by face and error code.

        >>> app.refusals["client-tools", "too_many"]
        """
        return self.state.refusals

    @property
    def spec(self) -> Spec:
        """The agent as it is served: the settings may select another model."""
        return self.agent.spec if self._config is None else self._config.spec

    @property
    def store_address(self) -> str:
        """The address of the store; a store object that was passed in has none."""
        store = _started(self._config).store
        return store if isinstance(store, str) else "a Store object"

    @property
    def service(self) -> AgentService:
        """The running agent service; available once the app has started."""
        return _started(self._runtime).service

    @property
    def faces(self) -> Sequence[Face]:
        return _started(self._runtime).faces

    @property
    def shows_inspector(self) -> bool:
        """Never with `--open`, where nobody signs in."""
        wanted = not self.auth.has_hook if self.inspector is None else self.inspector
        return wanted and not self.auth.open

    @property
    def sessions(self) -> ClientSessions:
        """The sessions of registered clients; available once the app has started."""
        return _started(self._runtime).sessions

    async def start(self) -> None:
        """Opens the store and starts the service. Only the first call has an effect."""
        seen = self._failure
        async with self._starting:
            if self._runtime is not None:
                return
            if self._failure is not None and self._failure is not seen:
                # it failed while this caller waited, and each attempt may take long
                raise self._failure
            try:
                await self._open()
            except FarhandError as error:
                self._failure = error
                raise

    async def _open(self) -> None:
        if self._config is None:
            self.configure(load_settings({}))
            self._log_start()
        self._runtime = await open_runtime(
            _started(self._config), self._listeners, shows_inspector=self.shows_inspector
        )
        self.auth.reopen()

    def _log_start(self) -> None:
        log.info("settings: %s", "; ".join(f"{name} {value}" for name, value in self.describe()))
        if self.auth.open:
            log.warning("open: every program on this machine may use this server without the token")
        elif not self.auth.has_hook:
            log.info("no authenticate hook: only this machine has access, with the token in `app.auth.token`")

    def describe(self) -> list[tuple[str, str]]:
        """What is printed at start: model, store and every setting that is not a default, with its origin."""
        model = (self.spec.model.name, self.values.origin("model", "Agent"))
        store = (redact_password(self.store_address), self.values.origin("store"))
        facts = [("model", model), ("store", store), *describe_settings(self.values)]
        return [(name, f"{value} ({origin})") for name, (value, origin) in facts]

    @overload
    async def call(
        self,
        tool: str,
        input: Mapping[str, object],
        *,
        thread: str,
        key: str | None = ...,
        owner: Who = ...,
        timeout_sec: float | None = ...,
        claims: Claims | None = ...,
    ) -> Outcome: ...
    @overload
    async def call(
        self,
        tool: str,
        input: Mapping[str, object],
        *,
        thread: str,
        key: str | None = ...,
        owner: Who = ...,
        timeout_sec: float | None = ...,
        within: float | None,
        claims: Claims | None = ...,
    ) -> Outcome | Waiting: ...
    @explain_arguments("call()")
    # the options of a call, each set by name by its caller
    async def call(  # noqa: PLR0913
        self,
        tool: str,
        input: Mapping[str, object],
        *,
        thread: str,
        key: str | None = None,
        owner: Who = LOCAL,
        timeout_sec: float | None = None,
        within: float | None = None,
        claims: Claims | None = None,
    ) -> Outcome | Waiting:
        """Make one call from a loop of your own: in a browser, in a registered program or on this server,
        with the approval that the tool requires. Returns the outcome once there is one.

        `key` names the call among those of its owner, for as long as its thread is kept. The same key with
        the same tool and input attaches to the call: if it is settled, its stored outcome is returned; if it
        is open, any number of callers in any process wait for it. A different tool or input under the key
        raises `NameTaken`.

        If the caller is cancelled, a call without a key is cancelled too; one with a key stays open. After
        `within` seconds a `Waiting` is returned, and the call stays open. `timeout_sec` is how long the tool
        may take, from 1 to 86 400. `owner` is an `Owner`, or a `Principal`, whose claims the tool finds in
        `current()`.

        >>> outcome = await app.call("ask_text", {"question": "Which size?"}, thread="t1", key="order-7")
        """
        return await self.service.call(
            tool,
            input,
            thread=thread,
            key=key,
            owner=owner,
            timeout_sec=timeout_sec,
            within=within,
            claims=claims,
        )

    def tools(self, owner: Who = LOCAL) -> Sequence[Tool]:
        """The tools that `call` can use now: the declared ones and, once the app has started, those of this
        owner's registered programs."""
        sources = () if self._runtime is None else self._runtime.service.context.sources
        return OfferedTools(check_owner(owner), self.spec.toolbox, sources).tools()

    async def open_calls(self, *, thread: str | None = None, owner: Who = LOCAL) -> list[Pending]:
        """The owner's calls that have no outcome yet, of one thread or of all, oldest first. One that waits
        for a person's approval has an `approval_id`.

        >>> for call in await app.open_calls(thread="invoices"):
        ...     print(call.tool, call.input, call.approval_id)
        """
        calls = await self.service.log.open_calls(check_owner(owner), thread)
        return [pending_of(call) for call in calls]

    async def approve(self, approval_id: str, answer: Answer = APPROVED, *, owner: Who = LOCAL) -> bool:
        """Answers a call that waits for approval, on behalf of a person. True if this is now its answer;
        False if no such call waits, or if another answer was first. `Answer(approved=False)` denies it, and
        `Answer(approved=True, input={…})` approves it with an edited input.

        >>> [call] = await app.open_calls(thread="invoices")
        >>> await app.approve(call.approval_id)
        """
        person = check_owner(owner)
        receipt = await self.service.desk.approve(person, approval_id, answer, by=claims_of(owner))
        return isinstance(receipt, Accepted | Repeated)

    async def cancel(self, *, key: str, owner: Who = LOCAL) -> bool:
        """Settles the call with this key as cancelled; False if there is none that is open."""
        return await self.service.cancel(key, owner=owner)

    def on_settled(self, key_prefix: str, function: OnSettled) -> None:
        """Calls `function` once for each settled call whose key has this prefix, and again after a crash in
        the middle, so that a program can continue its own run. Of several calls that end one after the other,
        the last one has `is_last`. Register it before the calls are made, in every process that makes them.

        >>> app.on_settled("order-", resume_order)
        """
        self._listeners.append((key_prefix, function))
        if self._runtime is not None:
            self._runtime.service.on_settled(key_prefix, function)

    async def __aenter__(self) -> Self:
        """For a script: `async with create_app(toolbox) as hands:`."""
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.drain()
        await self.stop()

    async def drain(self, seconds: float = 0.0) -> None:
        """Before a shutdown: ends open streams so that they can be resumed, and parks held runs."""
        self.auth.close()
        if self._runtime is not None:
            await self._runtime.service.drain(seconds)

    async def stop(self) -> None:
        await self._host_signals.close()
        runtime, self._runtime = self._runtime, None
        if runtime is not None:
            await runtime.close()

    @asynccontextmanager
    async def lifespan(self, app: object = None) -> AsyncIterator[None]:
        """For a host that mounts this app: `FastAPI(lifespan=app.lifespan)`."""
        await self._start_in_host()
        try:
            yield
        finally:
            await self.drain()
            await self.stop()

    def handle(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """The same as calling the app, with one coroutine less per request; for servers that accept a plain
        function that returns an awaitable."""
        if self._runtime is None or scope["type"] == "lifespan":
            return self(scope, receive, send)
        return self._runtime.router(scope, receive, send)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._serve_lifespan(receive, send)
            return
        if self._runtime is None:
            self._warn_unstarted()
            try:
                await self._start_in_host()
            except FarhandError as error:
                log.error("the app cannot be started: %s", error)
                await refuse_unstarted(scope, receive, send)
                return
        await _started(self._runtime).router(scope, receive, send)

    async def _start_in_host(self) -> None:
        """Started by a host that does not end our streams at a signal, so the app handles signals itself."""
        self.auth.hint_at_arguments()
        await self.start()
        self._host_signals.open()

    def _warn_unstarted(self) -> None:
        # one warning is enough for requests that arrive while it starts
        if not self._starting.locked():
            log.warning("the host did not start farhand (it must enter app.lifespan); starting it now")

    async def _serve_lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            await self._start_in_host()
        except FarhandError as error:
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.drain()
        await self.stop()
        await send({"type": "lifespan.shutdown.complete"})


@explain_arguments("create_app()")
# all of them are keyword arguments of the public interface
def create_app(  # noqa: PLR0913
    agent: Agent | Toolbox,
    *,
    store: str | Store | None = None,
    authenticate: Authenticate | None = None,
    allow_origins: Sequence[str] | None = None,
    allow_hosts: Sequence[str] | None = None,
    allow_headers: Sequence[str] | None = None,
    settings: Settings | None = None,
    client_tools: ClientTools | None = None,
    request_tools: RequestTools | None = None,
    page: bool | None = None,
    inspector: bool | None = None,
    prices: Mapping[str, tuple[float, float]] | None = None,
    show_tool_errors: bool | None = None,
) -> App:
    """An app that serves this agent on every face. Created from a `Toolbox`, it serves calls only: approvals,
    the inbox, results, registered programs, and `App.call` for a loop of your own; chat requests get the
    error `no_agent`.

    `allow_origins` lists the other origins whose pages may use it, `allow_headers` additional headers that
    those pages may send.

    Without an `authenticate` hook only this machine has access, with a token that is generated at start, and
    the Inspector is on. With a hook, `inspector=True` turns it on for principals with the scope `inspect`.
    `show_tool_errors` sets whether people who chat see what a server tool raised; by default they do only
    without a hook.
    `page=False` turns the chat page off. `prices` is for the Inspector: dollars for a million input and
    output tokens by model name, such as `{"claude-sonnet-5": (3, 15)}`.

    An argument that is omitted is looked up when the app starts: in the `FARHAND_*` variables, then in the
    settings file. In `settings`, a value that equals its default counts as omitted.
    """
    served = _to_agent(agent)
    origins = as_texts(allow_origins, "allow_origins", "https://app.example.org")
    hosts = as_texts(allow_hosts, "allow_hosts", "app.example.org")
    headers = as_texts(allow_headers, "allow_headers", "X-Tenant")
    arguments = Arguments(
        store=store,
        allow_origin=origins,
        allow_host=hosts,
        allow_header=headers,
        settings=settings,
        client_tools=client_tools,
        request_tools=request_tools,
        page=page,
        inspector=inspector,
        prices=prices,
        show_tool_errors=show_tool_errors,
    )
    auth = Authenticator(
        authenticate=authenticate,
        allow_origins=origins or (),
        allow_hosts=hosts or (),
        allow_headers=headers or (),
    )
    return App(served, auth, arguments)


# `object`: not every caller checks types
def _to_agent(agent: object) -> Agent:
    if isinstance(agent, Agent):
        return agent
    if isinstance(agent, Toolbox):
        return Agent(NoModel(), tools=agent)
    named = (
        f"the class {agent.__name__}"
        if isinstance(agent, type)
        else f"a value of type {type(agent).__name__}"
    )
    raise Misuse(
        f"create_app() needs an Agent or a Toolbox, not {named}.",
        hint="Write create_app(Agent(model, tools=[…])), or create_app(Toolbox(…)) to do without a model.",
    )


def _started(part: T | None) -> T:
    if part is None:
        raise BadSetting(
            "The app has not started yet.",
            hint="Write `async with app:` in a script, enter `app.lifespan` in a host, or send a request.",
        )
    return part
