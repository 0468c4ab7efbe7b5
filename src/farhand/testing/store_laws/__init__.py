"""The laws every store obeys, as tests: a backend that passes them can stand in for any other.

Derive a test class and say how your store is opened; pytest collects the laws with it. They are coroutines,
so they need a plugin that runs those, for instance the one of anyio::

    import pytest
    from farhand.store.memory import MemoryStore
    from farhand.testing.store_laws import StoreLaws

    pytestmark = pytest.mark.anyio


    class TestMyStore(StoreLaws):
        async def open_store(self, clock):
            return MemoryStore(clock)

A store that outlives its process derives from `DurableStoreLaws` and adds `reopen`. Every law makes a store
of its own; the store must judge time by the clock it is given.
"""

from __future__ import annotations

from farhand.testing.store_laws.appends import AppendLaws
from farhand.testing.store_laws.calls import CallLaws
from farhand.testing.store_laws.clients import ClientLaws
from farhand.testing.store_laws.durable import DurabilityLaws
from farhand.testing.store_laws.feeds import FeedLaws
from farhand.testing.store_laws.files import FileLaws
from farhand.testing.store_laws.leases import LeaseLaws
from farhand.testing.store_laws.rebuilds import RebuildLaws
from farhand.testing.store_laws.retention import RemovalLaws, RetentionLaws
from farhand.testing.store_laws.threads import OwnerLaws, ThreadLaws

__all__ = ["DurableStoreLaws", "StoreLaws"]


class StoreLaws(
    AppendLaws,
    CallLaws,
    ThreadLaws,
    LeaseLaws,
    FeedLaws,
    RemovalLaws,
    RetentionLaws,
    RebuildLaws,
    OwnerLaws,
    ClientLaws,
    FileLaws,
):
    """What every store does."""


class DurableStoreLaws(StoreLaws, DurabilityLaws):
    """What a store does, besides, that outlives its process."""
