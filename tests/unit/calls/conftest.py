"""A desk on every store."""

from __future__ import annotations

import pytest

from farhand.store.base import Store
from farhand.testing import FakeClock
from tests.unit.calls.desk_harness import Bench


@pytest.fixture
def bench(store: Store, clock: FakeClock) -> Bench:
    return Bench(store, clock)
