"""The settings of one app: the arguments of `create_app` combined with what was read from elsewhere.

Owns the precedence: command line option, `create_app` argument, environment variable, settings file, default.
Must not know how variables and files are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from farhand.agent.offered_tools import RequestTools
from farhand.clients.registry import ClientTools
from farhand.core.settings import Settings
from farhand.errors import BadSetting
from farhand.server.settings import Origin, ServerSettings, check_values
from farhand.store.base import Store
from farhand.store.open import check_store

CREATE_APP = "create_app"
_LISTS = frozenset({"allow_origin", "allow_host", "allow_header"})
_NOT_SETTINGS = frozenset({"settings", "request_tools"})
_DEFAULTS = Settings()
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
    request_tools: RequestTools | None = None
    page: bool | None = None
    inspector: bool | None = None
    prices: Mapping[str, tuple[float, float]] | None = None
    show_tool_errors: bool | None = None

    def __post_init__(self) -> None:
        """Raises `BadSetting` for what a type checker would report, since not everybody runs one."""
        if self.store is not None:
            check_store(self.store)
        for name, (takes, fits) in _TAKES.items():
            value = getattr(self, name)
            if value is not None and not fits(value):
                raise BadSetting(f"{name} must be {takes}, not {_named(value)}.")
        if self.settings is not None:
            _check_sections(self.settings)
            check_values(self.settings)


# `object`: not every caller checks types
def as_texts(value: object, name: str, example: str) -> tuple[str, ...] | None:
    """A list of strings; `BadSetting` for anything else, a single string included."""
    if value is None:
        return None
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise BadSetting(f'{name} must be a list such as ["{example}"], not {value!r}.')
    entries = tuple(value)
    if not all(isinstance(each, str) for each in entries):
        raise BadSetting(f'{name} must be a list of strings such as ["{example}"], not {value!r}.')
    return entries


def _named(value: object) -> str:
    """A struct may have many fields."""
    return f"a {type(value).__name__}(…)" if isinstance(value, Struct) else repr(value)


def _check_sections(settings: Settings) -> None:
    for name in settings.__struct_fields__:
        value: object = getattr(settings, name)
        section = type(getattr(_DEFAULTS, name))
        if not isinstance(value, section):
            raise BadSetting(f"settings.{name} must be a {section.__name__}(…), not {_named(value)}.")


def _are_prices(value: object) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(each, Sequence) and len(each) == 2 and not isinstance(each, str) for each in value.values()
    )


def _is_bool(value: object) -> bool:
    return isinstance(value, bool)


_TAKES: dict[str, tuple[str, Callable[[object], bool]]] = {
    "settings": (
        "a Settings(timeouts=Timeouts(…), limits=Limits(…), …)",
        lambda value: isinstance(value, Settings),
    ),
    "client_tools": ("a ClientTools(…)", lambda value: isinstance(value, ClientTools)),
    "request_tools": ("a RequestTools(…)", lambda value: isinstance(value, RequestTools)),
    "page": ("True or False", _is_bool),
    "inspector": ("True or False", _is_bool),
    "prices": ("dollars for a million input and output tokens by model: {name: (3, 15)}", _are_prices),
    "show_tool_errors": ("True or False", _is_bool),
}


def resolve(
    read: ServerSettings, arguments: Arguments, *, max_steps: int, default_store: str
) -> ServerSettings:
    """The settings as the app uses them. `max_steps` is the agent's own, which applies unless it is set
    elsewhere."""
    given = _given(arguments)
    origins = _origins(read, given)
    values = _merged(read, given)
    if "limits.max_steps" not in origins:
        values = _replaced(values, "limits.max_steps", max_steps)
        if max_steps != _DEFAULTS.limits.max_steps:
            origins["limits.max_steps"] = Origin("argument", "Agent")
    return replace(values, store=values.store or default_store, origins=origins)


def describe_settings(values: ServerSettings) -> list[tuple[str, tuple[str, str]]]:
    """What was set besides model and store, each with its value as text and its origin."""
    names = [name for name in values.origins if name not in _OWN_LINES]
    return [(name, (_as_text(values, name), values.origin(name))) for name in names]


def _as_text(values: ServerSettings, name: str) -> str:
    section, _, inner = name.rpartition(".")
    if section == "client_tools":
        approval = values.client_tools.approval
        return approval if isinstance(approval, str) else "a function"
    return _format(getattr(getattr(values.settings, section) if section else values, inner))


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


def _merged(read: ServerSettings, given: Mapping[str, object]) -> ServerSettings:
    values = read
    for name, value in given.items():
        if name == "store" and not isinstance(value, str):
            # a store object has no address
            continue
        if not read.is_option(name):
            values = _replaced(values, name, value)
        elif isinstance(value, tuple):
            # an option adds to the list of `create_app`; a variable or a file does not
            values = _replaced(values, name, (*value, *getattr(read, name)))
    return values


def _replaced(values: ServerSettings, name: str, value: object) -> ServerSettings:
    section, _, inner = name.rpartition(".")
    if section == "client_tools":
        return replace(values, client_tools=replace(values.client_tools, **{inner: value}))
    if section:
        changed = replace(getattr(values.settings, section), **{inner: value})
        return replace(values, settings=replace(values.settings, **{section: changed}))
    return replace(values, **{name: value})


def _origins(read: ServerSettings, given: Mapping[str, object]) -> dict[str, Origin]:
    origins = dict(read.origins)
    for name in given:
        if not read.is_option(name):
            unused = f"; {origins[name].place} is not used" if name in origins else ""
            origins[name] = Origin("argument", f"{CREATE_APP}{unused}")
        elif name in _LISTS:
            origins[name] = Origin("option", f"{CREATE_APP}, {origins[name].place}")
    return origins


def _given(arguments: Arguments) -> dict[str, object]:
    """The settings among them, by name. Those of `settings` count if they differ from the default: a struct
    cannot tell an explicit default from one that was left out."""
    given: dict[str, object] = {}
    for name in arguments.__struct_fields__:
        value = getattr(arguments, name)
        if isinstance(value, ClientTools):
            given["client_tools.approval"] = value.approval
        elif value is not None and name not in _NOT_SETTINGS:
            given[name] = value
    for section in _DEFAULTS.__struct_fields__:
        own, default = getattr(arguments.settings or _DEFAULTS, section), getattr(_DEFAULTS, section)
        changed = [name for name in default.__struct_fields__ if getattr(own, name) != getattr(default, name)]
        given |= {f"{section}.{name}": getattr(own, name) for name in changed}
    return given
