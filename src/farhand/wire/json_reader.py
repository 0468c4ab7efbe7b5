"""Parses all JSON from outside, with limits on depth, size, numbers and keys. Must not know what it means.

msgspec checks grammar, UTF-8, surrogates and overflow. But it keeps the last of duplicate keys, limits depth
only by the stack, and does not parse fields that a typed shape does not have. Walking the objects in Python
would cost more than parsing them, so they are encoded again and both texts are compared with fast byte
operations: a duplicate key is missing from the second, and counting brackets gives the depth.
"""

from __future__ import annotations

import json
import re
from typing import Any, Generic, TypeVar, Union

import msgspec

from farhand.errors import Malformed

MAX_DEPTH = 64
MAX_NODES = 100_000
MAX_DIGITS = 64
MAX_EXTREMES = 1_000
"""Numbers with an exponent beyond 200: some of them take the parser hundreds of times as long."""

T = TypeVar("T")


def read_json(body: bytes) -> object:
    """The value of a JSON body, or `Malformed` with the reason."""
    # a node takes at least two bytes, so a smaller body cannot have too many
    is_large = len(body) > 2 * MAX_NODES
    if is_large:
        _refuse_crowd(body)
    # before parsing, which takes quadratic time for long integers. A sample of every eighth byte shows
    # whether a long run of digits is possible, at an eighth of the cost
    if _LONG_RUN_SAMPLED in body[::_STRIDE].translate(_ONE_DIGIT):
        _refuse_long_integers(body)
    # such a number takes at least five bytes and a comma
    if len(body) > 6 * MAX_EXTREMES:
        _refuse_extremes(body)
    try:
        value = _decode(body)
        plain = _encode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as fault:
        raise _malformed(_explain(fault, body)) from None
    # the usual case: a text that is encoded as it was has no duplicate keys, and a short one or one with few
    # brackets is not too deep
    if body != plain or (len(plain) > 2 * MAX_DEPTH and plain.count(b"{") + plain.count(b"[") > MAX_DEPTH):
        _refuse_doubles_and_depth(body, plain)
    if is_large:
        _refuse_many_nodes(plain)
    return value


def json_or_text(text: str) -> object:
    """The value of a text that is JSON; any other text is returned unchanged."""
    try:
        return read_json(text.encode())
    except Malformed:
        return text


def read_as(body: bytes, shape: type[T]) -> T:
    """A JSON body as `shape`. Unknown fields are checked too, then ignored."""
    # parsed once, then converted
    value = read_json(body)
    try:
        return msgspec.convert(value, shape)
    except msgspec.ValidationError as fault:
        raise _misshapen(fault) from None


class OneOf(Generic[T]):
    """Reads a JSON body as one of several tagged shapes."""

    def __init__(self, *shapes: type[T]) -> None:
        # Any: a union made at run time, which only msgspec uses
        self._any: Any = Union[shapes]  # noqa: UP007
        # by name: the type of a shape does not say that it is a struct
        configs = [getattr(shape, "__struct_config__") for shape in shapes]  # noqa: B009
        self._field = configs[0].tag_field
        self._shapes = {config.tag: shape for config, shape in zip(configs, shapes, strict=True)}

    def read(self, body: bytes) -> T:
        value = read_json(body)
        tag = value.get(self._field) if isinstance(value, dict) else None
        # by its tag: msgspec would analyse a union with every call; the union is only for the error message
        shape = self._shapes.get(tag, self._any) if isinstance(tag, str) else self._any
        try:
            read: T = msgspec.convert(value, shape)
        except msgspec.ValidationError as fault:
            raise _misshapen(fault) from None
        return read


_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_ONE_BRACKET = bytes.maketrans(b"{}", b"[]")
_ALL_BUT_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")
_ALL_BUT_MARKS = _ALL_BUT_BRACKETS.replace(b'"', b"")
_ONE_DIGIT = bytes(0x30 if byte in b"0123456789" else 0 for byte in range(256))
_STRIDE = 8
_LONG_RUN = b"0" * (MAX_DIGITS + 1)
_LONG_RUN_SAMPLED = b"0" * ((MAX_DIGITS + 1) // _STRIDE)
_DIGITS_AND_E = bytes(
    0x30 if byte in b"0123456789" else 0x65 if byte in b"eE" else byte for byte in range(256)
)
_LARGE_EXPONENT = b"0e000"
_EXTREME = re.compile(rb"[eE][-+]?0*(?:[2-9]\d\d|\d{4,})")
_NUMBER = re.compile(rb"[-+.0-9eE]+")
_SURROGATE_PAIR = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_AT_BYTE = re.compile(r"\(byte (\d+)\)")


def _misshapen(fault: msgspec.ValidationError) -> Malformed:
    """Valid JSON of the wrong shape: msgspec explains it."""
    return Malformed(f"{fault}.", hint="Nothing was applied.")


def _refuse_doubles_and_depth(body: bytes, plain: bytes) -> None:
    bare = _unescaped(plain)
    marks = bare.translate(_ONE_BRACKET, _ALL_BUT_MARKS)
    if body != plain and marks.count(b'"') != _unescaped(body).count(b'"'):
        raise _malformed(_name_double(body))
    brackets = marks.replace(b'""', b"")
    if len(brackets) <= 2 * MAX_DEPTH:
        return
    # an odd number of quotes remains between two brackets only if a string contains a bracket
    if b'"' in brackets:
        brackets = _without_strings(bare).translate(_ONE_BRACKET, _ALL_BUT_BRACKETS)
    _refuse_depth(brackets)


def _refuse_depth(brackets: bytes) -> None:
    for _ in range(MAX_DEPTH):
        if not brackets:
            return
        # removes the innermost level
        brackets = brackets.replace(b"[]", b"")
    if brackets:
        raise _too_deep()


def _refuse_many_nodes(plain: bytes) -> None:
    bare = _without_strings(_unescaped(plain))
    opened = bare.count(b"[") + bare.count(b"{")
    empty = bare.count(b"[]") + bare.count(b"{}")
    # every node but the root follows a comma or is the first in its container
    if 1 + bare.count(b",") + opened - empty > MAX_NODES:
        raise _too_many_nodes()


def _refuse_crowd(body: bytes) -> None:
    """Refuses far too many nodes before they become objects many times the size of the body."""
    if body.count(b",") + body.count(b"[") + body.count(b"{") < MAX_NODES:
        return
    # a node has at most two strings, its key and its value
    if _unescaped(body).count(b'"') > 4 * MAX_NODES:
        raise _too_many_nodes()
    bare = _without_strings(_unescaped(body))
    if max(bare.count(b","), bare.count(b"[") + bare.count(b"{")) > MAX_NODES:
        raise _too_many_nodes()


def _refuse_long_integers(body: bytes) -> None:
    if _LONG_RUN not in body.translate(_ONE_DIGIT):
        return
    for number in _NUMBER.findall(_without_strings(_unescaped(body))):
        digits = number.lstrip(b"-")
        if len(digits) > MAX_DIGITS and digits.isdigit():
            raise _malformed(f"An integer has {len(digits)} digits; the maximum is {MAX_DIGITS}.")


def _refuse_extremes(body: bytes) -> None:
    # fast, and enough for most bodies; only what is outside of strings is a number
    if body.translate(_DIGITS_AND_E, b"+-").count(_LARGE_EXPONENT) <= MAX_EXTREMES:
        return
    if len(_EXTREME.findall(_without_strings(_unescaped(body)))) > MAX_EXTREMES:
        raise _malformed(f"More than {MAX_EXTREMES} numbers have an exponent beyond 200.")


def _unescaped(text: bytes) -> bytes:
    """JSON text without escaped quotes, so that every remaining quote starts or ends a string."""
    if b"\\" not in text:
        return text
    # escaped backslashes first: one that remains before a quote escapes it
    return text.replace(b"\\\\", b"").replace(b'\\"', b"")


def _without_strings(bare: bytes) -> bytes:
    return b'""'.join(bare.split(b'"')[::2])


def _name_double(body: bytes) -> str:
    doubles: list[str] = []

    def collect(pairs: list[tuple[str, object]]) -> None:
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                doubles.append(key)
            seen.add(key)

    try:
        json.loads(body, object_pairs_hook=collect)
    except RecursionError:
        return "An object has a duplicate key."
    return f"The key {json.dumps(doubles[0][:100])} is duplicated in an object."


def _explain(fault: Exception, body: bytes) -> str:
    if isinstance(fault, RecursionError):
        return _too_deep().message
    bad = _first_bad_byte(body)
    if bad is not None:
        return f"The body is not valid UTF-8 (byte {bad})."
    if body.startswith(_BYTE_ORDER_MARK):
        return "The body starts with a byte order mark; plain UTF-8 was expected."
    if not body.strip(b" \t\r\n"):
        return "The body is empty."
    if _SURROGATE.search(_SURROGATE_PAIR.sub(b"", body.replace(b"\\\\", b""))):
        return "A string contains half of a surrogate pair."
    return _explain_grammar(str(fault), body)


def _explain_grammar(text: str, body: bytes) -> str:
    if "out of range" in text:
        return "A number is too large."
    at = _AT_BYTE.search(text)
    if at is None:
        return "The JSON is incomplete."
    if body[int(at[1]) :].startswith((b"NaN", b"Infinity")):
        return f"NaN and Infinity are not JSON (byte {at[1]})."
    return f"The body is not JSON: {text.removeprefix('JSON is malformed: ')}."


def _first_bad_byte(body: bytes) -> int | None:
    try:
        body.decode()
    except UnicodeDecodeError as fault:
        return fault.start
    return None


def _too_deep() -> Malformed:
    return _malformed(f"The JSON is nested deeper than {MAX_DEPTH} levels.")


def _too_many_nodes() -> Malformed:
    return _malformed(f"The JSON has more than {MAX_NODES} values.")


def _malformed(reason: str) -> Malformed:
    return Malformed(reason, hint="Send one JSON value in UTF-8; nothing was applied.")
