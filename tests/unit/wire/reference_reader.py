"""The rules of the guarded reader written a second time: slow, with the standard library alone."""

from __future__ import annotations

import json
import math


class RefusedError(Exception):
    """The reference does not take this body."""


def read(body: bytes, *, depth: int = 64, nodes: int = 100_000) -> object:
    try:
        value: object = json.loads(
            body.decode("utf-8"),
            parse_constant=_refuse,
            parse_int=_integer,
            parse_float=_finite,
            object_pairs_hook=_unique,
        )
    except (ValueError, RecursionError) as fault:
        raise RefusedError(str(fault)) from fault
    if _depth(value) > depth or _nodes(value) > nodes or _has_half(value):
        raise RefusedError("shape")
    return value


def _refuse(token: str) -> object:
    raise RefusedError(token)


def _integer(digits: str) -> int:
    if len(digits.lstrip("-")) > 64:
        raise RefusedError("long integer")
    return int(digits)


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise RefusedError("overflow")
    return number


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    if len({key for key, _ in pairs}) != len(pairs):
        raise RefusedError("double")
    return dict(pairs)


def _children(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _depth(value: object) -> int:
    inner = max((_depth(child) for child in _children(value)), default=0)
    return inner + isinstance(value, dict | list)


def _nodes(value: object) -> int:
    return 1 + sum(_nodes(child) for child in _children(value))


def _has_half(value: object) -> bool:
    if isinstance(value, str):
        return any("\ud800" <= character <= "\udfff" for character in value)
    keys = list(value) if isinstance(value, dict) else []
    return any(_has_half(part) for part in [*keys, *_children(value)])
