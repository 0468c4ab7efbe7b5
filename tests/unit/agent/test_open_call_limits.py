"""Limits of open calls: a call beyond a limit is refused and not opened."""

from __future__ import annotations

import asyncio

import pytest

from farhand.core.outcome import Failure, Success
from farhand.core.principal import LOCAL
from farhand.core.settings import Limits, Settings
from farhand.errors import TooMany
from farhand.models.scripted import Ask
from tests.unit.agent.conftest import MakeStage
from tests.unit.agent.hands import add, open_url
from tests.unit.agent.stage import PATIENCE_SEC, THREAD, comes_true

pytestmark = pytest.mark.timeout(PATIENCE_SEC)
URL: dict[str, object] = {"url": "https://example.org"}
LIMITS = [
    (Limits(open_calls_per_thread=2), "A thread may have 2 open calls at most."),
    (Limits(open_calls_per_tenant=2), "A tenant may have 2 open calls at most."),
]


@pytest.mark.parametrize(("limits", "why"), LIMITS)
async def test_what_a_run_asks_for_beyond_a_limit_is_rejected_with_the_limit(
    stage: MakeStage, limits: Limits, why: str
) -> None:
    asks = [Ask("open_url", URL), Ask("add", {"a": 1, "b": 2}), Ask("open_url", URL), Ask("open_url", URL)]
    on = await stage([asks, "Done."], add, open_url, settings=Settings(limits=limits))
    run = await on.say("go")
    await on.told(run)
    assert await on.outcomes(run) == [None, Success(3), None, Failure(f"Not executed: {why}")]


@pytest.mark.parametrize(("limits", "why"), LIMITS)
async def test_of_many_calls_of_a_program_at_once_only_so_many_are_opened(
    stage: MakeStage, limits: Limits, why: str
) -> None:
    on = await stage([], add, open_url, settings=Settings(limits=limits))

    async def call() -> object:
        try:
            return await on.service.call("open_url", URL, thread=THREAD)
        except TooMany as error:
            return error.message

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(call()) for _ in range(5)]

        async def three_are_told() -> bool:
            return sum(task.done() for task in tasks) == 3

        await comes_true(three_are_told)
        # what runs here takes no room
        assert await on.service.call("add", {"a": 1, "b": 2}, thread=THREAD) == Success(3)
        for open_call in await on.log.open_calls(LOCAL):
            await on.answer(open_call, Success({"viewKey": "v1"}))
    told = [task.result() for task in tasks]
    assert told.count(why) == 3
    assert told.count(Success({"viewKey": "v1"})) == 2


@pytest.mark.parametrize(("limits", "why"), LIMITS)
async def test_an_answered_call_leaves_its_room_to_the_next(
    stage: MakeStage, limits: Limits, why: str
) -> None:
    on = await stage([], open_url, settings=Settings(limits=limits))
    for _ in range(4):
        async with asyncio.TaskGroup() as group:
            group.create_task(on.service.call("open_url", URL, thread=THREAD))

            async def is_open() -> bool:
                return bool(await on.log.open_calls(LOCAL))

            await comes_true(is_open)
            await on.answer(await on.open_call(), Success({"viewKey": "v1"}))
    assert await on.log.open_calls(LOCAL, THREAD) == []
    assert await on.log.count_open_of_tenant(LOCAL.tenant) == 0
