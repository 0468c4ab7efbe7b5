"""What the Inspector is given of the other faces: how each of them would tell a call. Knows none of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from msgspec import Struct

from farhand.core.call import Call
from farhand.core.event import Entry
from farhand.core.run import Run
from farhand.wire.http import Header


class Told(Struct, frozen=True):
    """A call, its run (if it has one) and the run's journal. All of it masked."""

    call: Call
    run: Run | None
    entries: Sequence[Entry]


class Frame(Struct, frozen=True):
    """`seq` is the entry of the journal that it tells; None where there is no journal."""

    seq: int | None
    text: bytes


EncodeCall: TypeAlias = Callable[[Told], list[Frame]]


class Wire(Struct, frozen=True):
    """`request` is what the frames answer; `headers` come before them."""

    name: str
    request: str
    headers: tuple[Header, ...]
    encode: EncodeCall
