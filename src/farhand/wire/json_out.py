"""The one writer of JSON that leaves. Owns the encoder; must not know what it writes."""

from __future__ import annotations

import json

import msgspec


def encode(value: object) -> bytes:
    """JSON for the wire: UTF-8, no blanks, no line breaks but those inside a `Raw` that came with them."""
    try:
        return _encode(value)
    except UnicodeEncodeError:
        return _encode_halves(value)


_encode = msgspec.json.Encoder().encode


def _encode_halves(value: object) -> bytes:
    """A model may stream a character in two halves. As escapes both pass, and the reader joins them."""
    plain = msgspec.to_builtins(value, str_keys=True, enc_hook=_open_raw)
    return json.dumps(plain, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()


def _open_raw(value: object) -> object:
    if isinstance(value, msgspec.Raw):
        return msgspec.json.decode(value)
    raise TypeError(f"JSON has no form for {type(value).__name__}.")
