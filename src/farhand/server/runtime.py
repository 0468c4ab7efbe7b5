"""What exists of an app between its start and its stop: the service, the sessions of registered clients, and
the router with every face.

Owns the order in which these are opened and closed. Must not know where the settings came from, nor who hosts
the app.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from starlette.types import ASGIApp

from farhand.agent.keyed_calls import OnSettled
from farhand.agent.offered_tools import RequestTools
from farhand.agent.service import AgentService, Spec
from farhand.clients.reaper import ClientReaper
from farhand.clients.registry import ClientRegistry
from farhand.clients.sessions import ClientSessions
from farhand.eventlog.log import EventLog
from farhand.faces.ack.routes import ack_face
from farhand.faces.agui.routes import agui_face
from farhand.faces.awaiting.routes import awaiting_face
from farhand.faces.base import Face
from farhand.faces.client_tools.routes import client_tools_face
from farhand.faces.events import events_face
from farhand.faces.files import files_face
from farhand.faces.inspector.routes import inspector_face
from farhand.faces.threads.routes import threads_face
from farhand.faces.ui_stream.routes import ui_stream_face
from farhand.server.admin import admin_face
from farhand.server.app_state import AppState
from farhand.server.auth.authenticator import Authenticator
from farhand.server.inspector_encoders import server_details
from farhand.server.openapi import openapi_face
from farhand.server.pages import pages
from farhand.server.reauth import Reauthenticator
from farhand.server.router import build_router
from farhand.server.settings import ServerSettings
from farhand.server.static_files import load_pages
from farhand.store.base import Store
from farhand.store.open import open_store


@dataclass(frozen=True)
class AppConfig:
    """An app as it is configured, before anything of it runs."""

    spec: Spec
    store: str | Store
    values: ServerSettings
    state: AppState
    auth: Authenticator
    request_tools: RequestTools | None = None

    @property
    def shows_tool_errors(self) -> bool:
        """Whether people who chat see what a server tool raised; by default only without a hook."""
        chosen = self.values.show_tool_errors
        return not self.auth.has_hook if chosen is None else chosen


@dataclass(frozen=True)
class Runtime:
    """A started app."""

    service: AgentService
    sessions: ClientSessions
    faces: Sequence[Face]
    router: ASGIApp
    opened: AsyncExitStack

    async def close(self) -> None:
        """Closes everything in the reverse order of its opening."""
        await self.opened.aclose()


async def open_runtime(
    config: AppConfig, listeners: Sequence[tuple[str, OnSettled]], *, shows_inspector: bool
) -> Runtime:
    """Opens the store and starts the service. If that fails, whatever was opened is closed again."""
    async with AsyncExitStack() as opened:
        service, sessions = await _open_service(config, listeners, opened, shows_inspector=shows_inspector)
        prices = config.values.prices or {}
        faces = _faces(service, sessions, config.auth, prices if shows_inspector else None)
        shown = pages(
            service,
            config.auth,
            load_pages(),
            shows_chat=config.values.page,
            shows_inspector=shows_inspector,
        )
        router = build_router(faces, shown, config.auth, config.state)
        return Runtime(service, sessions, faces, router, opened.pop_all())


async def _open_service(
    config: AppConfig,
    listeners: Sequence[tuple[str, OnSettled]],
    opened: AsyncExitStack,
    *,
    shows_inspector: bool,
) -> tuple[AgentService, ClientSessions]:
    store = await open_store(config.store) if isinstance(config.store, str) else config.store
    eventlog = EventLog(store)
    values = config.values
    registry = ClientRegistry(eventlog, values.client_tools)
    service = AgentService(
        config.spec,
        eventlog,
        settings=values.settings,
        sources=(registry,),
        shows_tool_errors=config.shows_tool_errors,
        request_tools=config.request_tools,
    )
    opened.push_async_callback(service.close)
    if shows_inspector:
        service.observe()
    sessions = ClientSessions(registry, service.desk, eventlog, config.spec.toolbox, values.settings)
    reaper = ClientReaper(sessions, service.desk, eventlog)
    await eventlog.recover()
    # before the service: runs that continue are offered the tools of registered clients
    await reaper.open()
    opened.push_async_callback(reaper.close)
    for prefix, function in listeners:
        service.on_settled(prefix, function)
    await service.open()
    reauth = Reauthenticator(config.auth, config.state.streams, config.state.now)
    reauth.open()
    opened.push_async_callback(reauth.close)
    return service, sessions


def _faces(
    service: AgentService,
    sessions: ClientSessions,
    auth: Authenticator,
    inspector_prices: Mapping[str, tuple[float, float]] | None,
) -> tuple[Face, ...]:
    """`inspector_prices` is None if the Inspector is not served."""
    faces: tuple[Face, ...] = (
        ack_face(service),
        awaiting_face(service),
        ui_stream_face(service),
        threads_face(service, shows_inspector=inspector_prices is not None),
        agui_face(service),
        files_face(service),
        client_tools_face(service, sessions),
        events_face(service),
    )
    if inspector_prices is not None:
        faces = (*faces, inspector_face(service, sessions, server_details(service, inspector_prices)))
    if auth.has_hook:
        return faces
    whole = (*faces, admin_face(service))
    return (*whole, openapi_face(whole))
