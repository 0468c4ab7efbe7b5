"""Reads bearer tokens and checks names and scopes, for all hooks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeGuard

from starlette.requests import HTTPConnection

from farhand.core.principal import SCOPES
from farhand.errors import BadSetting

LONGEST_NAME = 256


def bearer(request: HTTPConnection) -> str | None:
    """The token in `Authorization: Bearer`; None if there is none, or more than one header."""
    values = request.headers.getlist("authorization")
    if len(values) != 1:
        return None
    scheme, _, token = values[0].partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None


def is_name(value: object) -> TypeGuard[str]:
    """Whether this can be the name of a tenant or subject: printable, and not too long to store."""
    return isinstance(value, str) and 0 < len(value) <= LONGEST_NAME and value.isprintable()


def check_scopes(named: Iterable[str]) -> frozenset[str]:
    """Raises `BadSetting` for a scope that does not exist, since it would protect nothing."""
    scopes = frozenset(named)
    unknown = sorted(scopes - SCOPES)
    if unknown:
        raise BadSetting(f"There is no scope '{unknown[0]}'.", hint=f"Use {', '.join(sorted(SCOPES))}.")
    return scopes
