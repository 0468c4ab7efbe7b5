"""While a database does not confirm a commit, callers get an error in time and may ask again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from functools import partial
from typing import TypeAlias

import pytest

from farhand.clock import SystemClock
from farhand.core.event import RunFinished
from farhand.core.outcome import Success
from farhand.core.principal import LOCAL
from farhand.core.result import Receipt, Repeated, Result
from farhand.errors import StoreDown
from farhand.models.scripted import Ask
from farhand.store import base
from farhand.store.postgres import PostgresStore
from tests.postgres import running_cluster
from tests.replica import wait_for_replica
from tests.unit.agent.hands import open_url
from tests.unit.agent.stage import Stage, comes_true, text_in

OPEN = Ask("open_url", {"url": "https://example.org"})
Replica: TypeAlias = Callable[[str], Coroutine[None, None, None]]


@pytest.fixture
async def doubtful() -> AsyncIterator[tuple[Stage, Replica]]:
    """A stage on a database of its own, and how to make it wait for a replica of this name, or for none."""
    with running_cluster() as cluster:
        address = cluster.address("doubt")
        on = Stage(await PostgresStore.open(address), SystemClock(), [OPEN, "Thanks."], open_url)
        await on.service.open()
        yield on, partial(wait_for_replica, address)
        await on.service.close()


async def test_whoever_brings_a_result_is_told_in_time_and_the_same_again_is_repeated(
    doubtful: tuple[Stage, Replica], monkeypatch: pytest.MonkeyPatch
) -> None:
    on, wait_for = doubtful
    run = await on.say("go")
    await on.told(run)
    result = Result(call_id=(await on.open_call()).call_id, outcome=Success({"viewKey": "v"}))
    with monkeypatch.context() as impatient:
        impatient.setattr(base, "SOON_SEC", 0.3)
        await wait_for("ghost")
        with pytest.raises(StoreDown, match="not confirmed yet whether this was stored"):
            await on.service.desk.settle(LOCAL, result)
    await wait_for("")
    receipts: list[Receipt] = []

    async def is_told() -> bool:
        try:
            receipts.append(await on.service.desk.settle(LOCAL, result))
        except StoreDown:
            return False
        return True

    await comes_true(is_told)
    assert receipts == [Repeated()], "it was kept, though nobody could say so"
    assert text_in(await on.told(run, RunFinished)) == "Thanks."


async def test_a_message_whose_beginning_is_in_doubt_is_answered_once(
    doubtful: tuple[Stage, Replica], monkeypatch: pytest.MonkeyPatch
) -> None:
    on, wait_for = doubtful
    with monkeypatch.context() as impatient:
        impatient.setattr(base, "SOON_SEC", 0.3)
        await wait_for("ghost")
        with pytest.raises(StoreDown, match="not confirmed yet whether this was stored"):
            await on.say("go", message_id="m1", hold_for=30.0)
    await wait_for("")

    async def is_asked() -> bool:
        """By itself, and long before its lease is over."""
        return len(on.model.prompts) == 1

    await comes_true(is_asked)
    again = await on.say("go", message_id="m1", hold_for=30.0)
    assert again.run_id == (await on.service.last_run(LOCAL, again.thread_id)).run_id
    assert len(await on.log.runs(LOCAL, limit=10)) == 1
    assert len(on.model.prompts) == 1
