"""Encodes all JSON that is sent."""

from __future__ import annotations

import json

import msgspec


def encode(value: object) -> bytes:
    """Compact JSON in UTF-8, without line breaks except those inside a `Raw`."""
    try:
        return _encode(value)
    except UnicodeEncodeError:
        return _encode_surrogates(value)


_encode = msgspec.json.Encoder().encode


def _encode_surrogates(value: object) -> bytes:
    """A model may stream a surrogate pair in two halves: both are escaped, and the reader joins them."""
    plain = msgspec.to_builtins(value, str_keys=True, enc_hook=_open_raw)
    return json.dumps(plain, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()


def _open_raw(value: object) -> object:
    if isinstance(value, msgspec.Raw):
        return msgspec.json.decode(value)
    raise TypeError(f"{type(value).__name__} cannot be encoded as JSON.")
