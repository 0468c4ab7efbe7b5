"""A test agent on every store; invariants of every run are checked after each test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TypeAlias

import pytest

from farhand.core.settings import Settings
from farhand.models.scripted.model import Script, Step
from farhand.store.base import Store
from farhand.testing import FakeClock
from tests.unit.agent.stage import Stage

MakeStage: TypeAlias = Callable[..., Awaitable[Stage]]


@pytest.fixture
async def stage(store: Store, clock: FakeClock) -> AsyncIterator[MakeStage]:
    """`await stage(script, *tools)`: opened, and closed after the test."""
    opened: list[Stage] = []

    async def make(
        script: Script | Sequence[Step | Script], *tools: object, settings: Settings | None = None
    ) -> Stage:
        made = Stage(store, clock, script, *tools, settings=settings)
        await made.service.open()
        opened.append(made)
        return made

    yield make
    for made in opened:
        await made.check()
    for made in opened:
        await made.service.close()
