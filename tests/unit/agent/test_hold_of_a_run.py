"""A run that is resumed after parking waits in the way it was started."""

from __future__ import annotations

from farhand.core.event import RunParked, RunResumed
from farhand.core.outcome import Success
from farhand.core.principal import LOCAL
from farhand.core.result import Accepted, Result
from farhand.models.scripted import Ask
from farhand.store.memory import MemoryStore
from farhand.testing import FakeClock
from tests.unit.agent.hands import open_url
from tests.unit.agent.stage import Stage

OPEN = Ask("open_url", {"url": "https://example.org"})


async def test_a_run_that_an_ack_brings_back_pauses_at_once_if_it_was_started_so() -> None:
    clock = FakeClock()
    stage = Stage(MemoryStore(clock), clock, [OPEN, OPEN, "Done."], open_url)
    await stage.service.open()
    run = await stage.say("hi", hold_for=0.0)
    await stage.told(run, RunParked)
    first = await stage.open_call()
    result = Result(call_id=first.call_id, outcome=Success({"url": "u", "viewKey": "v"}))
    after = await stage.position(run)
    assert await stage.service.desk.settle(LOCAL, result) == Accepted()
    # a reader is here the whole time: a run that holds would keep it waiting for a minute and a half
    told = await stage.told(run, RunParked, after=after)
    assert any(isinstance(event, RunResumed) for event in told)
    again = await stage.open_call()
    assert again.deadline == clock.now() + stage.service.settings.timeouts.park_for
    await stage.service.close()
