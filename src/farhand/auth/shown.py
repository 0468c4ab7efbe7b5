"""What a request shows of itself, and which scopes exist. Knows no kind of token."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeGuard

from starlette.requests import HTTPConnection

from farhand.core.principal import SCOPES
from farhand.errors import BadSetting

LONGEST_NAME = 256


def bearer(request: HTTPConnection) -> str | None:
    """The token behind `Authorization: Bearer`; None if there is none, or more than one header."""
    said = request.headers.getlist("authorization")
    if len(said) != 1:
        return None
    scheme, _, token = said[0].partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None


def is_name(said: object) -> TypeGuard[str]:
    """Whether somebody can be called that: some letters that can be seen, and be stored."""
    return isinstance(said, str) and 0 < len(said) <= LONGEST_NAME and said.isprintable()


def known_scopes(named: Iterable[str]) -> frozenset[str]:
    """`BadSetting` for a scope that does not exist: whoever wrote it believes that it protects something."""
    scopes = frozenset(named)
    unknown = sorted(scopes - SCOPES)
    if unknown:
        raise BadSetting(f"There is no scope '{unknown[0]}'.", hint=f"There are {', '.join(sorted(SCOPES))}.")
    return scopes
