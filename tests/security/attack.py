"""What counts as an attack: one sentence about one face. However many variants a test tries, it counts
once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest

HTTP = ("ack", "awaiting", "ui_stream", "agui", "threads", "files", "client_tools", "events", "inspector")
SOCKETS = ("ws", "live")
ALL = (*HTTP, *SOCKETS)
BODIES = ("ack", "awaiting", "ui_stream", "agui", "threads", "client_tools", "inspector")
"""The faces whose typical request has a JSON body."""

PAIRS: set[tuple[str, str, str]] = set()
"""Group, face, attack."""

Test = TypeVar("Test", bound=Callable[..., object])


def attack(*faces: str) -> Callable[[Test], Test]:
    """The test is run once for each of these faces, and is given its name as `face`."""

    def mark(test: Test) -> Test:
        group = test.__module__.rpartition(".test_")[2]
        sentence = test.__name__.removeprefix("test_").replace("_", " ")
        PAIRS.update((group, face, sentence) for face in faces)
        marked: Test = pytest.mark.parametrize("face", faces)(test)
        return marked

    return mark
