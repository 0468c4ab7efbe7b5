"""All settings and their types. Must not know where a value comes from.

Every field of `core.settings` becomes a setting automatically, so none can be forgotten.
"""

import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import fields
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, create_model

from farhand.core.file import FileRules, is_pattern
from farhand.core.settings import Limits, Timeouts, Wait

PREFIX = "FARHAND_"


class KnownSetting(NamedTuple):
    """One setting: its name in a file, its variable and its default."""

    name: str
    variable: str
    default: object


def known_settings() -> Iterator[KnownSetting]:
    """All settings, in the order of the reference."""
    for name, field in Shape.model_fields.items():
        section = SECTIONS.get(name)
        if section is None:
            yield KnownSetting(name, f"{PREFIX}{name.upper()}", field.default)
            continue
        for inner, each in section.model_fields.items():
            yield KnownSetting(f"{name}.{inner}", f"{PREFIX}{name.upper()}__{inner.upper()}", each.default)


_TEN_YEARS = 10 * 366 * 24 * 3600
# 0 means at once; no other duration may be 0
_MAY_BE_ZERO = frozenset({"hold_for", "unread_for", "client_grace"})


def _no_bool(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("a number, not true or false")
    return value


def _split(value: object) -> object:
    """In a variable, the entries of a list are separated by commas."""
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def _media_type(value: str) -> str:
    if not is_pattern(value):
        raise ValueError("a media type such as image/png or image/*")
    return value.lower()


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


def _price_list(value: object) -> object:
    """In a variable: `claude-sonnet-5=3/15, gpt-5=1.25/10`."""
    if not isinstance(value, str):
        return value
    found = [_PRICE.fullmatch(part.strip()) for part in value.split(",") if part.strip()]
    if None in found:
        raise ValueError("prices such as claude-sonnet-5=3/15, for a million tokens in and out")
    return {price[1].strip(): (price[2], price[3]) for price in found if price is not None}


_PRICE = re.compile(r"([^=]+)=\s*([0-9.]+)\s*/\s*([0-9.]+)")

_Number = BeforeValidator(_no_bool)
_Level = Annotated[Literal["debug", "info", "warning", "error", "critical"], BeforeValidator(_lower)]
_Port = Annotated[int, _Number, Field(ge=0, le=65535)]
_Amount = Annotated[int, _Number, Field(ge=1, le=2**40)]
_Seconds = Annotated[float, _Number, Field(gt=0, le=_TEN_YEARS, allow_inf_nan=False)]
_SecondsOrNone = Annotated[float, _Number, Field(ge=0, le=_TEN_YEARS, allow_inf_nan=False)]
_MediaType = Annotated[str, AfterValidator(_media_type)]
_Words = Annotated[tuple[str, ...], BeforeValidator(_split)]
_MediaTypes = Annotated[tuple[_MediaType, ...], BeforeValidator(_split), Field(min_length=1)]


_Dollars = Annotated[float, _Number, Field(ge=0, le=1e6, allow_inf_nan=False)]
_Prices = Annotated[dict[str, tuple[_Dollars, _Dollars]], BeforeValidator(_price_list)]


class _Plain(BaseModel):
    model_config = ConfigDict(extra="forbid")

    host: str = Field("127.0.0.1", min_length=1)
    port: _Port = 8787
    store: str | None = Field(None, min_length=1)
    model: str | None = None
    token: str | None = None
    open: bool = False
    allow_origin: _Words = ()
    allow_host: _Words = ()
    allow_header: _Words = ()
    page: bool = True
    inspector: bool | None = None
    prices: _Prices | None = None
    show_tool_errors: bool | None = None
    log_level: _Level = "warning"
    log_format: Literal["text", "json"] = "text"
    access_log: bool = False
    hold_for: _SecondsOrNone | None = None


def _section(struct: type[Struct]) -> type[BaseModel]:
    """A model with the fields of the struct, validated."""
    # pydantic takes the type of a field as a value here, which has no type of its own
    checked: dict[str, Any] = {}
    for field in fields(struct):
        duration = _SecondsOrNone if field.name in _MAY_BE_ZERO else _Seconds
        kinds = {int: _Amount, float: duration}
        checked[field.name] = (kinds.get(field.type, _MediaTypes), field.default)
    return create_model(struct.__name__, __config__=ConfigDict(extra="forbid"), **checked)


class _ClientTools(BaseModel):
    model_config = ConfigDict(extra="forbid")

    approval: Literal["never", "always"] = "never"


class _Chat(BaseModel):
    model_config = ConfigDict(extra="forbid")

    wait: Wait = "turn"


SECTIONS: dict[str, type[BaseModel]] = {
    "timeouts": _section(Timeouts),
    "limits": _section(Limits),
    "files": _section(FileRules),
    "client_tools": _ClientTools,
    "chat": _Chat,
}

# see `_section`
_fields: dict[str, Any] = {
    name: (section, Field(default_factory=section)) for name, section in SECTIONS.items()
}
Shape: type[BaseModel] = create_model("Shape", __base__=_Plain, **_fields)
