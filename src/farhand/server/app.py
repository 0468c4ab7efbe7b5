"""The ASGI app: one door, one router, one guard around every endpoint.

Serve it, or mount it in a host app. The host's `mount` does not run a sub-app's lifespan, so `.lifespan` is
there to be entered; a request that comes first starts the app and says so.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version

from msgspec.structs import replace
from starlette.routing import BaseRoute, Route, Router, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from farhand.agent.agent import Agent
from farhand.agent.farhand import Farhand, Spec
from farhand.clients.attendance import Attendance
from farhand.clients.keeper import Keeper
from farhand.clients.roster import ClientTools, Roster
from farhand.core.settings import Settings
from farhand.errors import BadSetting, FarhandError
from farhand.faces.base import Face
from farhand.faces.inspector.routes import Surroundings, inspector_face
from farhand.models.named import model_named
from farhand.server.app_settings import AppSettings, Arguments, resolve
from farhand.server.development import development_face
from farhand.server.door import Authenticate, Door
from farhand.server.faces import faces_of
from farhand.server.guard import Guarded, GuardedSocket
from farhand.server.host_signals import HostSignals
from farhand.server.pages import not_found, pages, unknown_paths
from farhand.server.paths import by_path
from farhand.server.recheck import Recheck
from farhand.server.settings import ServerSettings, load_settings
from farhand.server.traffic import Traffic
from farhand.server.ui import built_ui
from farhand.server.upkeep import upkeep_face
from farhand.server.wires import wires
from farhand.store.address import DEFAULT, check_address, open_store, shown
from farhand.store.base import Store
from farhand.wire.http import trimmed

log = logging.getLogger("farhand.server")

DRAIN_SEC = 6.0
"""What is running may finish in this time after a signal; the rest of ten seconds is for handing it over."""


class App:
    """What `create_app` returns."""

    def __init__(self, agent: Agent, door: Door, arguments: Arguments) -> None:
        self.agent = agent
        self.door = door
        self.inspector = arguments.inspector
        """Whether the Inspector is there; None: on where this machine alone is let in, else off."""
        self.logs_access = False
        """Whether the server process writes its access log."""
        self._arguments = arguments
        self._values: AppSettings | None = None
        self._spec: Spec | None = None
        self._traffic: Traffic | None = None
        self._recheck: Recheck | None = None
        self._farhand: Farhand | None = None
        self._attendance: Attendance | None = None
        self._keeper: Keeper | None = None
        self._router: ASGIApp | None = None
        self._starting = asyncio.Lock()
        self._host_signals = HostSignals(partial(self.drain, DRAIN_SEC))

    def configure(self, read: ServerSettings, *, default_store: str = DEFAULT) -> None:
        """Decides which values hold, given what options, variables and a file say.

        Only the first call counts: `start` makes one with variables and the file, `farhand run` one before.
        """
        if self._values is not None:
            return
        # `app.door.token`, `app.door.open` and `app.inspector` may have been set from Python
        given = replace(
            self._arguments,
            token=self.door.own_token,
            open=True if self.door.open else None,
            inspector=self.inspector,
        )
        own_steps = self.agent.settings.limits.max_steps
        values = resolve(read, given, max_steps=own_steps, default_store=default_store)
        if isinstance(values.store, str):
            check_address(values.store)
        if values.model is not None:
            self._spec = dataclasses.replace(self.agent.spec, model=model_named(values.model))
        self._set_door(values)
        self.inspector = values.inspector
        self._traffic = Traffic(values.settings)
        self._recheck = Recheck(self.door, self._traffic.streams, self._traffic.now)
        self._values = values

    def _set_door(self, values: AppSettings) -> None:
        door = self.door
        if door.has_hook and values.open:
            raise BadSetting(
                f"{values.origin('open')}: a server with an authenticate hook cannot be open.",
                hint="Leave one of them out.",
            )
        door.allow(origins=values.allow_origin, hosts=values.allow_host, headers=values.allow_header)
        door.limit_failed_sign_ins(values.settings.limits.failed_sign_ins_per_min)
        door.open = values.open
        if values.token is not None and not door.has_hook:
            door.token = values.token

    @property
    def values(self) -> AppSettings:
        """The values that hold, with their origins; there once the app is configured."""
        if self._values is None:
            raise _not_started()
        return self._values

    @property
    def settings(self) -> Settings:
        return self.values.settings

    @property
    def traffic(self) -> Traffic:
        if self._traffic is None:
            raise _not_started()
        return self._traffic

    @property
    def spec(self) -> Spec:
        """The agent as it is served here: the settings may name another model."""
        return self._spec or self.agent.spec

    @property
    def store_address(self) -> str:
        """Where everything is kept; a store that was handed over has no address."""
        store = self.values.store
        return store if isinstance(store, str) else "a store of the program's own"

    @property
    def shows_tool_errors(self) -> bool:
        """Whether people who chat are shown what a server tool raised: unless set, in development alone."""
        chosen = self.values.show_tool_errors
        return not self.door.has_hook if chosen is None else chosen

    @property
    def farhand(self) -> Farhand:
        """The agent at work; there once the app has started."""
        if self._farhand is None:
            raise _not_started()
        return self._farhand

    @property
    def faces(self) -> Sequence[Face]:
        return self._faces(self.farhand, self._clients)

    @property
    def shows_inspector(self) -> bool:
        """Never where nobody signs in."""
        wanted = not self.door.has_hook if self.inspector is None else self.inspector
        return wanted and not self.door.open

    @property
    def roster(self) -> Roster:
        """The registered clients and their tools; there once the app has started."""
        return self._clients.roster

    @property
    def _clients(self) -> Attendance:
        assert self.farhand is not None, "raises unless the app has started"
        assert self._attendance is not None, "both are there, or none"
        return self._attendance

    async def start(self) -> None:
        """Opens the store and begins to work. Once; later calls do nothing."""
        async with self._starting:
            if self._farhand is not None:
                return
            store = await self._open_store()
            roster = Roster(store, self.values.client_tools)
            farhand = Farhand(
                self.spec,
                store,
                settings=self.settings,
                sources=(roster,),
                shows_tool_errors=self.shows_tool_errors,
            )
            attendance = Attendance(roster, farhand.desk, store, self.spec.toolbox, self.settings)
            self._keeper = Keeper(attendance, farhand.desk, store)
            # first, since runs that go on are offered the tools of whoever was registered
            await self._keeper.open()
            await farhand.open()
            self._attendance = attendance
            faces = self._faces(farhand, attendance)
            known = [*self._sockets(faces), *self._routes(faces), *self._pages(farhand)]
            routes = [*known, *unknown_paths(self.door, faces)]
            router = Router(routes, default=not_found(self.door), redirect_slashes=False)
            self._router = _trimming(self.door.wrap(by_path(routes, router)))
            self._farhand = farhand
            self.door.reopen()
            assert self._recheck is not None, "made when the app was configured"
            self._recheck.open()

    async def _open_store(self) -> Store:
        if self._values is None:
            self.configure(load_settings({}))
            self._log_start()
        store = self.values.store
        return await open_store(store) if isinstance(store, str) else store

    def _log_start(self) -> None:
        log.info("settings: %s", "; ".join(f"{name} {value}" for name, value in self.describe()))
        if self.door.open:
            log.warning("open: every program on this machine may use this server without the token")
        elif not self.door.has_hook:
            log.info("no authenticate hook: only this machine is let in, with the token in `app.door.token`")

    def describe(self) -> list[tuple[str, str]]:
        """What a start says: model and store, then whatever is not a default, each with its origin."""
        model = (self.spec.model.name, self.values.origin("model", "Agent"))
        store = (shown(self.store_address), self.values.origin("store"))
        facts = [("model", model), ("store", store), *self.values.others()]
        return [(name, f"{value} ({origin})") for name, (value, origin) in facts]

    async def drain(self, seconds: float = 0.0) -> None:
        """Ends open streams so that they can be resumed, and parks what is held: before a shutdown."""
        self.door.close()
        if self._farhand is not None:
            await self._farhand.drain(seconds)

    async def stop(self) -> None:
        await self._host_signals.close()
        if self._farhand is not None:
            farhand, self._farhand, self._router = self._farhand, None, None
            if self._recheck is not None:
                await self._recheck.close()
            if self._keeper is not None:
                await self._keeper.close()
            await farhand.close()

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
        """What calling the app does, without a layer of its own: for servers that need not be told that an
        app is a coroutine function."""
        if self._router is None or scope["type"] == "lifespan":
            return self(scope, receive, send)
        return self._router(scope, receive, send)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._serve_lifespan(receive, send)
            return
        if self._router is None:
            self._say_unstarted()
            await self._start_in_host()
        assert self._router is not None, "a started app has its routes"
        await self._router(scope, receive, send)

    async def _start_in_host(self) -> None:
        """Served by a program that does not know when streams have to end: the app sees to it."""
        self.door.hint_at_arguments()
        await self.start()
        self._host_signals.open()

    def _say_unstarted(self) -> None:
        # requests that come while it starts are part of the same story
        if not self._starting.locked():
            log.warning(
                "farhand was not started by its host (enter app.lifespan); starting it with this request"
            )

    def _faces(self, farhand: Farhand, attendance: Attendance) -> tuple[Face, ...]:
        faces = faces_of(farhand, attendance)
        if self.shows_inspector:
            faces = (*faces, inspector_face(farhand, attendance, _surroundings(self.spec, farhand)))
        if self.door.has_hook:
            return faces
        whole = (*faces, upkeep_face(farhand))
        return (*whole, development_face(whole))

    def _pages(self, farhand: Farhand) -> list[BaseRoute]:
        return pages(farhand, self.door, built_ui(), shows_inspector=self.shows_inspector)

    def _sockets(self, faces: Sequence[Face]) -> list[WebSocketRoute]:
        return [
            WebSocketRoute(route.path, GuardedSocket(face, route, self.door, self.traffic))
            for face in faces
            for route in face.sockets
        ]

    def _routes(self, faces: Sequence[Face]) -> list[Route]:
        """One route per path: a method that a path does not take is refused in its face's own words."""
        paths: dict[str, Guarded] = {}
        for face in faces:
            for route in face.routes:
                guarded = paths.setdefault(route.path, Guarded(face, self.door, self.traffic))
                guarded.add(route)
        return [Route(path, guarded) for path, guarded in paths.items()]

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


# the options of an app, each of them a word that its user writes
def create_app(  # noqa: PLR0913
    agent: Agent,
    *,
    store: str | Store | None = None,
    authenticate: Authenticate | None = None,
    allow_origins: Sequence[str] | None = None,
    allow_hosts: Sequence[str] | None = None,
    allow_headers: Sequence[str] | None = None,
    settings: Settings | None = None,
    client_tools: ClientTools | None = None,
    inspector: bool | None = None,
    show_tool_errors: bool | None = None,
) -> App:
    """An app that serves this agent on every face.

    `allow_origins` lists the pages of other origins that may use it, `allow_headers` the headers of their own
    that such a page may send.

    Without an `authenticate` hook only this machine is let in, with a token that is made at start. The
    Inspector is there for this machine; with a hook, for principals with the scope `inspect` if `inspector`
    is true. Likewise `show_tool_errors`: whether people who chat are shown what a server tool raised.

    An argument that is left out is looked up when the app starts: in the `FARHAND_*` variables, then in the
    settings file. In `settings`, a value that equals its default counts as left out.
    """
    door = Door(
        authenticate=authenticate,
        allow_origins=allow_origins or (),
        allow_hosts=allow_hosts or (),
        allow_headers=allow_headers or (),
    )
    arguments = Arguments(
        store=store,
        allow_origin=None if allow_origins is None else tuple(allow_origins),
        allow_host=None if allow_hosts is None else tuple(allow_hosts),
        allow_header=None if allow_headers is None else tuple(allow_headers),
        settings=settings,
        client_tools=client_tools,
        inspector=inspector,
        show_tool_errors=show_tool_errors,
    )
    return App(agent, door, arguments)


def _trimming(app: ASGIApp) -> ASGIApp:
    """Outermost, so that nothing reads a header before."""

    def call(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        return app({**scope, "headers": trimmed(scope["headers"])}, receive, send)

    return call


def _not_started() -> BadSetting:
    return BadSetting(
        "The app has not started yet.", hint="Enter `app.lifespan` first, or send it a request."
    )


def _surroundings(spec: Spec, farhand: Farhand) -> Surroundings:
    store = type(farhand.kit.store).__name__.removesuffix("Store").lower()
    return Surroundings(wires(spec.model.name), store, version("farhand"))
