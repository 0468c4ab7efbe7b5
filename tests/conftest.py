"""Fixtures every suite shares. Async tests run on asyncio alone: it is the only loop farhand serves on."""

from __future__ import annotations

import pytest


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
