"""The settings of one app, and the origin of each value.

Owns the precedence: command line option, `create_app` argument, environment variable, settings file, default.
Must not know how variables and files are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import fields, replace

from farhand.agent.offered_tools import BroughtTools
from farhand.clients.registry import ClientTools
from farhand.core.settings import Limits, Settings
from farhand.server.settings import ServerSettings
from farhand.store.base import Store

T = TypeVar("T")

CREATE_APP = "create_app"
DEFAULT = "default"
_LISTS = frozenset({"allow_origin", "allow_host", "allow_header"})
_OWN_LINES = frozenset(
    {"model", "store", "host", "port", "token", "hold_for"} | {"log_level", "log_format", "access_log"}
)
"""Printed on lines of their own at start, aliases, or settings of the process rather than of the app."""


class Arguments(Struct, frozen=True, kw_only=True):
    """The arguments of `create_app`; None for one that was left out."""

    store: str | Store | None = None
    token: str | None = None
    open: bool | None = None
    allow_origin: tuple[str, ...] | None = None
    allow_host: tuple[str, ...] | None = None
    allow_header: tuple[str, ...] | None = None
    settings: Settings | None = None
    client_tools: ClientTools | None = None
    brought: BroughtTools | None = None
    page: bool | None = None
    inspector: bool | None = None
    prices: Mapping[str, tuple[float, float]] | None = None
    show_tool_errors: bool | None = None


class AppSettings(Struct, frozen=True, kw_only=True):
    """The resolved values, and the origin of each that is not a default."""

    store: str | Store
    model: str | None
    token: str | None
    open: bool
    allow_origin: tuple[str, ...]
    allow_host: tuple[str, ...]
    allow_header: tuple[str, ...]
    settings: Settings
    client_tools: ClientTools
    page: bool
    inspector: bool | None
    prices: Mapping[str, tuple[float, float]] | None
    show_tool_errors: bool | None
    origins: Mapping[str, str] = {}
    """By the name of the setting: `--store`, `FARHAND_STORE`, `create_app`, or the path of a file."""

    def origin(self, name: str, default: str = DEFAULT) -> str:
        return self.origins.get(name, default)

    def others(self) -> list[tuple[str, tuple[str, str]]]:
        """What was set besides model and store, each with its value as text and its origin."""
        names = [name for name in self.origins if name not in _OWN_LINES]
        return [(name, (self._as_text(name), self.origins[name])) for name in names]

    def _as_text(self, name: str) -> str:
        section, _, inner = name.rpartition(".")
        if section == "client_tools":
            approval = self.client_tools.approval
            return approval if isinstance(approval, str) else "a function"
        return _format(getattr(getattr(self.settings, section) if section else self, inner))


def resolve(read: ServerSettings, given: Arguments, *, max_steps: int, default_store: str) -> AppSettings:
    """`max_steps` is the agent's own, which applies unless it is set elsewhere."""
    origins = _origins(read, given)
    settings = _merged(read, given.settings or Settings())
    if "limits.max_steps" not in origins:
        settings = replace(settings, limits=replace(settings.limits, max_steps=max_steps))
        if max_steps != Limits().max_steps:
            origins["limits.max_steps"] = "Agent"
    default_or_read: str | Store = read.store or default_store
    return AppSettings(
        store=_first(read, "store", given.store, default_or_read),
        model=read.model,
        token=_first(read, "token", given.token, read.token),
        open=_first(read, "open", given.open, read.open),
        allow_origin=_joined(read, "allow_origin", given.allow_origin, read.allow_origin),
        allow_host=_joined(read, "allow_host", given.allow_host, read.allow_host),
        allow_header=_joined(read, "allow_header", given.allow_header, read.allow_header),
        settings=settings,
        client_tools=_first(read, "client_tools.approval", given.client_tools, read.client_tools),
        page=_first(read, "page", given.page, read.page),
        inspector=_first(read, "inspector", given.inspector, read.inspector),
        prices=_first(read, "prices", given.prices, read.prices),
        show_tool_errors=_first(read, "show_tool_errors", given.show_tool_errors, read.show_tool_errors),
        origins=origins,
    )


def _format(value: object) -> str:
    match value:
        case bool():
            return "on" if value else "off"
        case float():
            return f"{value:g}"
        case tuple():
            return ", ".join(value)
        case dict():
            return f"for {len(value)} models" if len(value) != 1 else "for 1 model"
        case _:
            return str(value)


def _first(read: ServerSettings, name: str, argument: T | None, below: T) -> T:
    return below if argument is None or read.is_option(name) else argument


def _joined(
    read: ServerSettings, name: str, argument: tuple[str, ...] | None, below: tuple[str, ...]
) -> tuple[str, ...]:
    """An option adds to the list of `create_app`; a variable or a file does not."""
    if argument is None:
        return below
    return (*argument, *below) if read.is_option(name) else argument


def _merged(read: ServerSettings, given: Settings) -> Settings:
    changed = {
        name: _section(read, name, getattr(read.settings, name), section)
        for name, section in _sections(given).items()
    }
    return replace(read.settings, **changed)


def _sections(settings: Settings) -> dict[str, Struct]:
    return {field.name: getattr(settings, field.name) for field in fields(settings)}


def _section(read: ServerSettings, section: str, below: Struct, given: Struct) -> Struct:
    changed = {
        name: value for name, value in _chosen(given).items() if not read.is_option(f"{section}.{name}")
    }
    return replace(below, **changed)


def _chosen(section: Struct) -> dict[str, object]:
    """What differs from the default: a struct cannot tell an explicit default from one that was left out."""
    values = {field.name: (getattr(section, field.name), field.default) for field in fields(section)}
    return {name: value for name, (value, default) in values.items() if value != default}


def _origins(read: ServerSettings, given: Arguments) -> dict[str, str]:
    origins = {name: origin.place for name, origin in read.origins.items()}
    for name in _argument_names(given):
        if read.is_option(name):
            if name in _LISTS:
                origins[name] = f"{CREATE_APP}, {origins[name]}"
            continue
        unused = f"; {origins[name]} is not used" if name in origins else ""
        origins[name] = f"{CREATE_APP}{unused}"
    return origins


def _argument_names(given: Arguments) -> list[str]:
    plain = {
        "store": given.store,
        "token": given.token,
        "open": given.open,
        "allow_origin": given.allow_origin,
        "allow_host": given.allow_host,
        "allow_header": given.allow_header,
        "client_tools.approval": given.client_tools,
        "page": given.page,
        "inspector": given.inspector,
        "prices": given.prices,
        "show_tool_errors": given.show_tool_errors,
    }
    sections = _sections(given.settings or Settings())
    inner = [f"{section}.{name}" for section, values in sections.items() for name in _chosen(values)]
    return [*(name for name, value in plain.items() if value is not None), *inner]
