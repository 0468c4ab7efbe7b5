"""What only the memory store has to keep; everything else it keeps by the laws of all stores."""

from __future__ import annotations

from typing import get_args

from farhand.store.base import Write
from farhand.store.memory import MemoryStore
from tests.requirement import requirement


@requirement("store:every-write")
def test_every_write_there_is_has_a_meaning() -> None:
    assert set(MemoryStore()._meaning) == set(get_args(Write))
