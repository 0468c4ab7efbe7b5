"""The laws of every store, as tests: a backend that passes them can replace any other.

Derive a test class that opens your store; pytest collects the laws with it. They are coroutines, so they need
a plugin that runs them, such as anyio's::

    import pytest
    from farhand.store.memory import MemoryStore
    from farhand.testing.store_laws import StoreLaws

    pytestmark = pytest.mark.anyio


    class TestMyStore(StoreLaws):
        async def open_store(self, clock):
            return MemoryStore(clock)

For a store that outlives its process, derive from `DurableStoreLaws` and add `reopen`. Every law opens a
store of its own; the store must take the time from the clock it gets.
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
    """Laws of every store."""


class DurableStoreLaws(StoreLaws, DurabilityLaws):
    """Laws of a store that outlives its process."""
