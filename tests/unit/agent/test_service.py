"""What faces request from a running agent: threads, runs, and what is deleted with them."""

from __future__ import annotations

import pytest

from farhand.core.event import StepFinished
from farhand.core.outcome import Success
from farhand.core.principal import LOCAL, Owner
from farhand.core.run import RunState
from farhand.core.settings import Settings, Timeouts
from farhand.models.scripted import Ask, Moment, Step
from tests.requirement import requirement
from tests.unit.agent.conftest import MakeStage
from tests.unit.agent.hands import open_url
from tests.unit.agent.stage import PATIENCE_SEC, THREAD, text_in

pytestmark = pytest.mark.timeout(PATIENCE_SEC)
OPEN = Ask("open_url", {"url": "https://example.org"})
VIEW = Success({"viewKey": "v1"})
TURNS = Settings(timeouts=Timeouts(hold_for=0.0))


@requirement("threads:delete")
async def test_a_deleted_thread_is_gone_with_its_run_and_its_calls(stage: MakeStage) -> None:
    on = await stage([OPEN, "Fresh."], open_url)
    run = await on.say("open it", hold_for=60)
    await on.told(run, StepFinished)
    call = await on.open_call()
    await on.service.delete(LOCAL, THREAD)
    assert await on.service.log.get_thread(LOCAL, THREAD) is None
    assert await on.service.log.last_run(LOCAL, THREAD) is None
    assert await on.service.log.get_call(LOCAL, call.call_id) is None
    await on.idle()
    assert text_in(await on.told(await on.say("again"))) == "Fresh."


@requirement("threads:delete")
async def test_another_owners_thread_is_not_deleted(stage: MakeStage) -> None:
    on = await stage(["Hello."])
    await on.told(await on.say("hi"))
    await on.service.delete(Owner("acme", "bob"), THREAD)
    assert await on.service.log.get_thread(LOCAL, THREAD) is not None


async def test_threads_are_listed_and_renamed(stage: MakeStage) -> None:
    on = await stage(["Hello."])
    await on.told(await on.say("hi"))
    await on.service.rename(LOCAL, THREAD, "Greetings")
    [thread] = await on.service.log.threads_of(LOCAL, limit=10)
    assert (thread.thread_id, thread.title) == (THREAD, "Greetings")
    assert await on.service.log.threads_of(Owner("acme", "bob"), limit=10) == []


async def test_a_service_that_is_open_is_not_opened_twice(stage: MakeStage) -> None:
    on = await stage(["Hello."])
    await on.service.open()
    await on.service.ping()
    await on.told(await on.say("hi"))
    assert (await on.service.last_run(LOCAL, THREAD)).state is RunState.DONE


def _tell(moment: Moment) -> Step:
    return " ".join(str(each.output) if each.kind == "success" else each.error for each in moment.last)
