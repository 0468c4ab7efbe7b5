"""Reads settings from options, `FARHAND_*` variables and the settings file, in this order of precedence.

Owns the precedence, and the error for an invalid value: where it was found and what is expected.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import asdict, fields
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from farhand.clients.registry import ClientTools
from farhand.core.file import FileRules
from farhand.core.settings import ChatRules, Limits, Settings, Timeouts
from farhand.errors import BadSetting
from farhand.server.settings_shape import PREFIX, SECTIONS, Shape, known_settings


class Origin(NamedTuple):
    """Where a value was found: a command line option, an argument of the program, a variable, or a file."""

    kind: Literal["option", "argument", "variable", "file"]
    place: str
    """For people: `--store`, `create_app`, `FARHAND_STORE`, or the path of the file."""


class ServerSettings(Struct, frozen=True, kw_only=True):
    """`store`, `model`, `token`, `inspector` and `show_tool_errors` are None if they are not set."""

    host: str
    port: int
    store: str | None
    model: str | None
    token: str | None
    open: bool
    allow_origin: tuple[str, ...]
    allow_host: tuple[str, ...]
    allow_header: tuple[str, ...]
    page: bool
    inspector: bool | None
    prices: Mapping[str, tuple[float, float]] | None
    show_tool_errors: bool | None
    log_level: str
    log_format: str
    access_log: bool
    settings: Settings
    client_tools: ClientTools
    origins: Mapping[str, Origin] = {}
    """By the name of the setting; a default has none."""

    def origin(self, name: str, default: str = "default") -> str:
        """For people: where the value was found."""
        return self.origins[name].place if name in self.origins else default

    def is_option(self, name: str) -> bool:
        origin = self.origins.get(name)
        return origin is not None and origin.kind == "option"


def load_settings(arguments: Mapping[str, object], *, config: str | None = None) -> ServerSettings:
    """The settings; `arguments` has the options that were given on the command line."""
    _refuse_unknown_variables()
    path = _find_file(config or os.environ.get(f"{PREFIX}CONFIG"))
    sources = [
        _Source("", _expand_aliases(arguments, "the command line")),
        _Source(PREFIX, _expand_aliases(_read_variables(), "the environment")),
        _Source(str(path), _expand_aliases(_read_file(path), str(path)) if path else {}),
    ]
    # unchecked until the shape validates it
    merged: dict[str, Any] = {}
    for source in reversed(sources):
        merged = _merge(merged, source.values)
    try:
        read = Shape(**merged)
    except ValidationError as error:
        raise _error_for(error.errors()[0], sources) from None
    return _settings_of(read.model_dump(), _origins(sources))


def check_values(settings: Settings) -> None:
    """Raises `BadSetting` for a value set in Python that the other sources could not have either."""
    sections = {field.name: asdict(getattr(settings, field.name)) for field in fields(Settings)}
    try:
        Shape.model_validate(sections, strict=True)
    except ValidationError as invalid:
        error = invalid.errors()[0]
        name = ".".join(str(part) for part in error["loc"][:2])
        raise BadSetting(f"settings.{name}: expected {_expected(error)}, got {error['input']!r}.") from None


class _Source(NamedTuple):
    """`place` is empty for arguments, the prefix for variables, else the path of the file."""

    place: str
    values: Mapping[str, object]


# set for other parts of farhand and for its build, or by Kubernetes for a service named farhand
_NOT_OURS = re.compile(r"DEMO_FOLDER|WITHOUT_PAGES|CONFIG|SERVICE_(HOST|PORT.*)|PORT_\d+_.*")
_SERVICE_ADDRESS = re.compile(r"(tcp|udp)://")
_EXPECTED = {
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "finite_number": "a number",
    "float_parsing": "a number",
    "float_type": "a number",
    "greater_than": "more than {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "less_than_equal": "at most {le:.0f}",
    "model_type": "a table of settings",
    "string_too_short": "some text",
    "string_type": "text",
    "tuple_type": "a list",
}


# Any: the shape has checked each value against the field it goes into
def _settings_of(read: dict[str, Any], origins: Mapping[str, Origin]) -> ServerSettings:
    timeouts, limits, files, client_tools, chat, _ = (read.pop(name) for name in (*SECTIONS, "hold_for"))
    settings = Settings(
        timeouts=Timeouts(**timeouts),
        limits=Limits(**limits),
        files=FileRules(**files),
        chat=ChatRules(**chat),
    )
    return ServerSettings(
        **read, settings=settings, client_tools=ClientTools(**client_tools), origins=origins
    )


def _origins(sources: list[_Source]) -> dict[str, Origin]:
    """Of every setting that one of the sources names."""
    named: dict[str, Origin] = {}
    for setting in known_settings():
        source = next((each for each in sources if _has(each.values, setting.name.split("."))), None)
        if source is not None:
            named[setting.name] = _origin(source.place, setting.name)
    return named


def _origin(place: str, name: str) -> Origin:
    if place in ("", PREFIX):
        return Origin("variable" if place else "option", _place_of(place, name))
    return Origin("file", place)


def _read_variables() -> dict[str, object]:
    """With the keys of a settings file; empty variables are ignored."""
    given = {name.upper(): value for name, value in os.environ.items() if value}
    if _SERVICE_ADDRESS.match(given.get(f"{PREFIX}PORT", "")):
        del given[f"{PREFIX}PORT"]
    read: dict[str, Any] = {section: _whole_section(section, given) for section in SECTIONS}
    for setting in known_settings():
        section, _, name = setting.name.rpartition(".")
        holder = read[section] if section else read
        if setting.variable in given and isinstance(holder, dict):
            holder[name] = given[setting.variable]
    return {name: value for name, value in read.items() if value != {}}


def _whole_section(section: str, given: Mapping[str, str]) -> object:
    """A whole section as JSON in one variable; empty if there is no such variable."""
    variable = f"{PREFIX}{section.upper()}"
    try:
        read: object = json.loads(given.get(variable, "{}"))
    except (ValueError, RecursionError):
        raise BadSetting(
            f"{variable}: expected JSON.", hint="Or set each value with a variable of its own."
        ) from None
    return read


def _refuse_unknown_variables() -> None:
    """A variable that is not read is most likely a typo."""
    sections = {f"{PREFIX}{section.upper()}" for section in SECTIONS}
    known = {setting.variable for setting in known_settings()} | sections
    for variable in sorted(name.upper() for name in os.environ if name.upper().startswith(PREFIX)):
        if variable not in known and not _NOT_OURS.fullmatch(variable.removeprefix(PREFIX)):
            raise BadSetting(f"{variable}: there is no such setting.", hint=_nearest(variable, known))


def _expand_aliases(values: Mapping[str, object], place: str) -> dict[str, object]:
    """`hold_for` is an alias of `timeouts.hold_for`."""
    spelled = {key: value for key, value in values.items() if key != "hold_for"}
    short = values.get("hold_for")
    if short is None:
        return spelled
    timeouts = spelled.get("timeouts", {})
    if not isinstance(timeouts, Mapping):
        return spelled
    if "hold_for" in timeouts:
        raise BadSetting(f"{place}: hold_for and timeouts.hold_for are the same setting.", hint="Keep one.")
    return {**spelled, "timeouts": {**timeouts, "hold_for": short}}


def _merge(below: Mapping[str, object], above: Mapping[str, object]) -> dict[str, object]:
    merged = dict(below)
    for key, value in above.items():
        under = merged.get(key)
        if isinstance(under, Mapping) and isinstance(value, Mapping):
            merged[key] = _merge(under, value)
        else:
            merged[key] = value
    return merged


def _error_for(error: ErrorDetails, sources: list[_Source]) -> BadSetting:
    path = [str(part) for part in error["loc"]]
    name = ".".join(path[:2] if path[0] in SECTIONS else path[:1])
    place = next((source.place for source in sources if _has(source.values, path)), "")
    if error["type"] == "extra_forbidden":
        known = [setting.name for setting in known_settings()]
        return BadSetting(f"{place}: there is no setting '{name}'.", hint=_nearest(name, known))
    # never print a token
    given = "" if name == "token" else f" {error['input']!r}"
    return BadSetting(
        f"{_place_of(place, name)}: expected {_expected(error)}, got{given or ' another value'}."
    )


def _place_of(place: str, name: str) -> str:
    if place == "":
        return "--" + name.removeprefix("timeouts.").replace("_", "-")
    if place != PREFIX:
        return f"{place}: {name}"
    section, _, inner = name.rpartition(".")
    long = f"{PREFIX}{name.replace('.', '__').upper()}"
    others = (f"{PREFIX}{inner.upper()}", f"{PREFIX}{section.upper()}")
    given = {variable.upper() for variable in os.environ}
    return next((each for each in (long, *others) if each in given), long)


def _has(values: Mapping[str, object], path: list[str]) -> bool:
    here: object = values
    for part in path:
        if not isinstance(here, Mapping):
            return True
        if part not in here:
            return False
        here = here[part]
    return True


def _expected(error: ErrorDetails) -> str:
    words = _EXPECTED.get(error["type"])
    if words is None:
        return error["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    return words.format(**error.get("ctx", {}))


def _nearest(name: str, known: list[str] | set[str]) -> str:
    # without the prefix, which would make all variables look similar
    tails = {each.removeprefix(PREFIX): each for each in sorted(known)}
    near = get_close_matches(name.removeprefix(PREFIX), tails, n=1, cutoff=0.75)
    return f"Did you mean {tails[near[0]]}?" if near else "docs/reference/settings.md lists them all."


def _find_file(named: str | None) -> Path | None:
    """The given file, else the user's own if there is one."""
    if named:
        path = _expand(named)
        if not _is_file(path):
            raise BadSetting(f"There is no settings file '{path}'.", hint="Check --config or FARHAND_CONFIG.")
        return path
    home = _expand(os.environ.get("XDG_CONFIG_HOME") or "~/.config") / "farhand"
    found = [path for path in (home / "config.toml", home / "config.json") if _is_file(path)]
    if len(found) > 1:
        raise BadSetting(
            f"There are two settings files in '{home}'.", hint="Keep config.toml or config.json."
        )
    return found[0] if found else None


def _expand(path: str) -> Path:
    # `Path.expanduser` raises for a user without a home, which a service or a container may have
    return Path(os.path.expanduser(path))  # noqa: PTH111


def _is_file(path: Path) -> bool:
    # `Path.is_file` raises for a folder that this user may not read, such as a home that was inherited
    return os.path.isfile(path)  # noqa: PTH113


def _read_file(path: Path) -> dict[str, object]:
    """The contents of the file, with our names for settings."""
    try:
        text = path.read_text(encoding="utf-8")
        read: object = _READERS[path.suffix](text)
    except KeyError:
        raise BadSetting(
            f"The settings file '{path}' has an unknown format.", hint="Use .toml or .json."
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        what = error.strerror if isinstance(error, OSError) else str(error)
        raise BadSetting(f"The settings file '{path}' cannot be read: {what}.") from None
    if not isinstance(read, dict):
        raise BadSetting(f"The settings file '{path}' must contain one object.", hint='Write {"port": 8787}.')
    return _translate(read, path)


_READERS = {".toml": tomllib.loads, ".json": json.loads}

# milliseconds there, seconds here
_CLIENT_TOOLS: Mapping[str, str] = {"defaultTimeout": "client_call", "keepaliveInterval": "client_ping"}


def _translate(read: dict[str, object], path: Path) -> dict[str, object]:
    """Accepts `clientTools` as other servers of client tools write it, in milliseconds."""
    foreign = read.pop("clientTools", None)
    if foreign is None:
        return read
    if not isinstance(foreign, dict):
        raise BadSetting(f"{path}: clientTools must be an object.")
    timeouts = read.setdefault("timeouts", {})
    for key, value in foreign.items():
        ours = _CLIENT_TOOLS.get(key)
        if ours is None:
            known = " and ".join(_CLIENT_TOOLS)
            raise BadSetting(f"{path}: there is no setting 'clientTools.{key}'.", hint=f"There are {known}.")
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise BadSetting(f"{path}: clientTools.{key} must be a number of milliseconds.")
        if isinstance(timeouts, dict) and timeouts.setdefault(ours, value / 1000) != value / 1000:
            raise BadSetting(f"{path}: clientTools.{key} and timeouts.{ours} have different values.")
    return read
