"""The server that every attack is made on."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.faces.conftest import serve
from tests.security.siege import Siege, besieged, no_tracebacks

__all__ = ["serve"]


@pytest.fixture
async def siege(caplog: pytest.LogCaptureFixture) -> AsyncIterator[Siege]:
    async with no_tracebacks(caplog), besieged() as siege:
        yield siege
