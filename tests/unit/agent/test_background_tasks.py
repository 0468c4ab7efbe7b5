"""Background tasks of the service: they survive unexpected errors, and their end is reported."""

from __future__ import annotations

import logging

import pytest

from farhand.agent import worker
from farhand.calls.deadlines import Deadlines
from farhand.calls.desk import Desk
from farhand.core.principal import LOCAL
from farhand.core.settings import Settings, Timeouts
from farhand.errors import ShuttingDown
from farhand.models.scripted import Ask, Moment, Step
from farhand.testing import FakeClock
from farhand.tools.decorate import tool
from tests.requirement import requirement
from tests.unit.agent.conftest import MakeStage
from tests.unit.agent.hands import add
from tests.unit.agent.stage import PATIENCE_SEC, comes_true, text_in

pytestmark = pytest.mark.timeout(PATIENCE_SEC)


class Gone(BaseException):
    """What no guard expects."""


@pytest.mark.parametrize("kind", [GeneratorExit, SystemExit])
async def test_a_tool_that_raises_to_end_everything_ends_only_itself(
    stage: MakeStage, kind: type[BaseException]
) -> None:
    @tool
    async def odd() -> str:
        """Raise."""
        raise kind

    def script(moment: Moment) -> Step:
        return moment.results[0].error if moment.results else Ask("odd")

    on = await stage(script, odd)
    assert text_in(await on.told(await on.say("go"))) == kind.__name__
    assert text_in(await on.told(await on.say("go on"))) == kind.__name__
    await on.service.ping()


async def test_a_watch_that_breaks_begins_again(stage: MakeStage, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = 0

    async def breaks(self: Deadlines, desk: Desk) -> None:
        nonlocal begun
        begun += 1
        raise RuntimeError("unforeseen")

    monkeypatch.setattr(worker, "SWEEP_SEC", 0.01)
    monkeypatch.setattr(Deadlines, "run", breaks)
    on = await stage(["Hello."])

    async def twice() -> bool:
        return begun >= 2

    await comes_true(twice)
    assert text_in(await on.told(await on.say("hi"))) == "Hello."
    await on.service.ping()


async def test_an_agent_that_stopped_by_itself_is_not_ready_and_says_so_once(
    stage: MakeStage, caplog: pytest.LogCaptureFixture
) -> None:
    async def go() -> None:
        raise Gone

    on = await stage(["Hello."])
    group = on.service.worker._group
    assert group is not None
    group.create_task(go())

    async def is_logged() -> bool:
        # by a callback of the task, which runs a moment after the task is done
        return any(record.levelno == logging.CRITICAL for record in caplog.records)

    await comes_true(is_logged)
    for _ in range(2):
        with pytest.raises(ShuttingDown, match="has stopped working"):
            await on.service.ping()
    assert [record.levelno for record in caplog.records].count(logging.CRITICAL) == 1


@requirement("runs:retention")
async def test_what_settled_long_ago_is_removed_and_the_rest_is_kept(
    stage: MakeStage, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "FIRST_REMOVAL_SEC", 0.01)
    monkeypatch.setattr(worker, "REMOVAL_SEC", 0.01)
    week = Settings(timeouts=Timeouts(keep_settled=7 * 24 * 3600.0))
    on = await stage([], add, settings=week)
    for thread, days in (("old", 6), ("new", 2)):
        await on.service.call("add", {"a": 1, "b": 2}, thread=thread)
        clock.advance(days * 24 * 3600)

    async def feed() -> set[str | None]:
        return {news.thread_id for news in await on.log.feed(LOCAL)}

    async def old_is_gone() -> bool:
        return await feed() == {"new"}

    await comes_true(old_is_gone)
    assert (await on.store.purge(before=clock.now())).calls == 1


async def test_an_agent_that_was_stopped_says_nothing(
    stage: MakeStage, caplog: pytest.LogCaptureFixture
) -> None:
    on = await stage(["Hello."])
    assert on.service._serving is not None
    on.service.worker.stop()
    await on.service._serving
    assert [record for record in caplog.records if record.levelno == logging.CRITICAL] == []
