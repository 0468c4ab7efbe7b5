"""Records in look-up rows: JSON, so that they can be read without farhand.

A record that this version cannot read (another version wrote it, or a disk damaged it) is left out of lists
and logged once; a read of that record alone raises `Unreadable`. Knows no connection and no table.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Literal, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from farhand.core.call import Call
from farhand.core.client import Client
from farhand.core.file import StoredFile
from farhand.core.run import Run
from farhand.core.tool import Tool
from farhand.errors import Unreadable
from farhand.store.base import ThreadRow

log = logging.getLogger("farhand.store")

T = TypeVar("T")

MAX_NAMED = 1_000
_named: set[tuple[str, str]] = set()

encode = msgspec.json.Encoder().encode
decode_thread: Callable[[bytes], ThreadRow] = msgspec.json.Decoder(ThreadRow).decode
decode_call: Callable[[bytes], Call] = msgspec.json.Decoder(Call).decode
decode_run: Callable[[bytes], Run] = msgspec.json.Decoder(Run).decode
decode_tool: Callable[[bytes], Tool] = msgspec.json.Decoder(Tool).decode
decode_client: Callable[[bytes], Client] = msgspec.json.Decoder(Client).decode
decode_file: Callable[[bytes], StoredFile] = msgspec.json.Decoder(StoredFile).decode

Unknown: TypeAlias = dict[str, msgspec.Raw]
_decode_fields: Callable[[bytes], Unknown] = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_DECODERS: dict[str, Callable[[bytes], object]] = {
    "thread": decode_thread,
    "call": decode_call,
    "run": decode_run,
    "client": decode_client,
}


def decode_or_raise(decode: Callable[[bytes], T], body: bytes) -> T:
    """Raises `Unreadable`: for a read of this record alone."""
    try:
        return decode(body)
    # not JSON, of the wrong shape, or with a value that this version does not know
    except ValueError as error:
        raise Unreadable(f"A stored record cannot be read by this version of farhand: {error}.") from error


def decode_or_skip(decode: Callable[[bytes], T], body: bytes, *, kind: str, name: str) -> T | None:
    """None for a record that cannot be read: lists leave it out."""
    try:
        return decode(body)
    except ValueError:
        _log_once(kind, name)
        return None


def unknown_in(body: bytes, known: type[Struct]) -> Unknown:
    """The fields that a newer version of farhand has added to ours; empty for an unreadable record."""
    try:
        fields = _decode_fields(body)
    except ValueError:
        return {}
    for name in known.__struct_fields__:
        fields.pop(name, None)
    return fields


def encode_with(unknown: Unknown, record: Struct) -> bytes:
    body = encode(record)
    return encode(_decode_fields(body) | unknown) if unknown else body


def next_registration(
    client: Client, stored: tuple[int, bytes] | None, others: Iterable[bytes]
) -> bytes | Literal["moved", "name_taken"]:
    """The record to store for this client, with the fields that a newer version of farhand put into the
    previous one; or why it is refused. `others` are the records of the owner's other clients: an unreadable
    one may have a tool with the same name, so it raises `Unreadable`."""
    version, body = stored or (0, b"{}")
    if version != client.version - 1:
        return "moved"
    names = {tool.name for tool in client.tools}
    for other in others:
        if any(tool.name in names for tool in decode_or_raise(decode_client, other).tools):
            return "name_taken"
    return encode_with(unknown_in(body, Client), client)


def unreadable_in(rows: Iterable[tuple[str, str, bytes]]) -> tuple[str, ...]:
    """From rows of kind (`thread`, `call`, `run`, `client`), name and body: the unreadable ones, such as
    `thread t1`."""
    return tuple(f"{kind} {name}" for kind, name, body in rows if not _is_readable(_DECODERS[kind], body))


def _is_readable(decode: Callable[[bytes], object], body: bytes) -> bool:
    try:
        decode(body)
    except ValueError:
        return False
    return True


def _log_once(kind: str, name: str) -> None:
    """Not for every list that it is left out of."""
    if (kind, name) in _named:
        return
    if len(_named) >= MAX_NAMED:
        _named.clear()
    _named.add((kind, name))
    log.error("%s %s cannot be read by this version of farhand and is left out of lists", kind, name)
