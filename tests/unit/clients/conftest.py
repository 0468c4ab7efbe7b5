"""Desk and client sessions on every store, without HTTP."""

from __future__ import annotations

import pytest

from farhand.store.base import Store
from farhand.testing import FakeClock
from tests.unit.clients.client_harness import Office


@pytest.fixture
def office(store: Store, clock: FakeClock) -> Office:
    return Office(store, clock)
