"""The server under attack."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from farhand.core.settings import Limits
from tests.faces.conftest import serve
from tests.security.target import Target, serve_target

__all__ = ["serve"]


MANY_GUESSES = Limits(failed_sign_ins_per_min=10_000)
"""Every route is tried with every wrong credential; that there is a limit is an attack of its own."""


@pytest.fixture
async def target() -> AsyncIterator[Target]:
    async with serve_target(MANY_GUESSES) as target:
        yield target
