"""What a process remembers of its principals is bounded, and a minute ends."""

from __future__ import annotations

import asyncio

import pytest

from farhand.agent import quotas
from farhand.agent.quotas import Quotas
from farhand.core.decide.decision import Decision
from farhand.core.event import MessageAdded, ThreadCreated
from farhand.core.file import StoredFile
from farhand.core.principal import Owner
from farhand.core.run import Run
from farhand.core.settings import Limits
from farhand.core.thread import Text, UserMessage
from farhand.errors import TooMany
from farhand.eventlog.log import EventLog
from farhand.store.base import Counted
from farhand.store.memory import MemoryStore
from tests.requirement import requirement

ANN = Owner("acme", "ann")
RUN = Run(run_id="run_1", owner=ANN, thread_id="t0", started_at=0.0)


def made(monkeypatch: pytest.MonkeyPatch, **limits: int) -> tuple[Quotas, list[float]]:
    now = [1000.0]
    monkeypatch.setattr(quotas, "monotonic", lambda: now[0])
    limited = Quotas(EventLog(MemoryStore()), Limits(**limits))
    return limited, now


async def begin(made: Quotas, owner: Owner = ANN, size: int = 1) -> None:
    """In a thread of its own."""
    async with made.reserve_slot(owner, "another", size):
        pass


@requirement("quotas:rate")
async def test_after_a_minute_there_are_as_many_again(monkeypatch: pytest.MonkeyPatch) -> None:
    limited, now = made(monkeypatch, runs_per_min=2)
    await begin(limited)
    await begin(limited)
    now[0] += 20.0
    with pytest.raises(TooMany) as refused:
        await begin(limited)
    assert refused.value.retry_after == 40
    now[0] += 40.0
    await begin(limited)


@requirement("quotas:rate")
async def test_of_many_principals_the_oldest_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quotas, "MAX_OWNERS", 3)
    limited, _ = made(monkeypatch, runs_per_min=1)
    await begin(limited)
    for number in range(5):
        await begin(limited, Owner("acme", f"s{number}"))
    await begin(limited)


async def test_a_principal_in_use_is_not_the_one_that_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quotas, "MAX_OWNERS", 4)
    limited, _ = made(monkeypatch, runs_per_min=2)
    await begin(limited)
    await begin(limited)
    for number in range(5):
        await begin(limited, Owner(f"t{number}", "ann"))
        with pytest.raises(TooMany):
            await begin(limited)


async def test_a_place_is_given_back_whatever_becomes_of_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    limited, _ = made(monkeypatch, running_per_principal=1)
    with pytest.raises(ValueError, match="broken"):
        async with limited.reserve_slot(ANN, "t1", 1):
            raise ValueError("broken")
    async with limited.reserve_slot(ANN, "t1", 1):
        with pytest.raises(TooMany):
            await begin(limited)
    limited.begin(RUN)
    with pytest.raises(TooMany):
        await begin(limited)


async def test_posts_to_one_thread_take_one_place_together(monkeypatch: pytest.MonkeyPatch) -> None:
    limited, _ = made(monkeypatch, running_per_principal=1, runs_per_min=1)
    async with limited.reserve_slot(ANN, "t1", 1):
        async with limited.reserve_slot(ANN, "t1", 1):
            pass
        with pytest.raises(TooMany):
            await begin(limited)


async def test_a_run_that_is_active_before_it_is_stored_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    limited, _ = made(monkeypatch, running_per_principal=2)
    async with limited.reserve_slot(ANN, RUN.thread_id, 1):
        limited.begin(RUN)
        await begin(limited)
    await begin(limited)
    limited.end(RUN)
    assert not limited.at_work


class Shared(MemoryStore):
    """As a store that others share: others have so many active runs, and so many counted runs go away."""

    is_shared = True

    def __init__(self, counts: list[int]) -> None:
        super().__init__()
        self.counts = counts

    async def count(self, what: Counted, tenant: str, subject: str | None = None) -> int:
        assert what == "running"
        await asyncio.sleep(0)
        return self.counts.pop(0)


async def test_a_run_that_may_have_been_counted_twice_is_looked_at_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(quotas, "PAUSE_SEC", 0.0)
    limits = Limits(running_per_principal=3)
    # one is being stored here: 2 and that one may be the same
    store = Shared([0, 2, 1])
    limited = Quotas(EventLog(store), limits)
    limited.begin(RUN)
    async with limited.reserve_slot(ANN, "t1", 1):
        await begin(limited)
    assert store.counts == []


async def test_what_stays_in_doubt_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quotas, "PAUSE_SEC", 0.0)
    limits = Limits(running_per_principal=3)
    limited = Quotas(EventLog(Shared([0] + [2] * 30)), limits)
    limited.begin(RUN)
    async with limited.reserve_slot(ANN, "t1", 1):
        with pytest.raises(TooMany):
            await begin(limited)


@requirement("quotas:rate")
async def test_what_threads_and_files_take_counts_and_deleting_a_thread_makes_room() -> None:
    eventlog = EventLog(MemoryStore())
    limited = Quotas(eventlog, Limits(stored_bytes=4_000))
    say = UserMessage("m1", (Text("x" * 2_000),))
    events = (ThreadCreated(), MessageAdded(say))
    await eventlog.decide(ANN, "t1", lambda thread, now: Decision(None, events))
    file = StoredFile(owner=ANN, ref="blob_" + "0" * 32, name="a", media_type="text/plain", created_at=0.0)
    assert await eventlog.files.put(file, 0, [b"x" * 1_000], is_last=True)
    await begin(limited, size=500)
    with pytest.raises(TooMany, match="Your chats and files use 3"):
        await begin(limited, size=1_500)
    assert await eventlog.delete(ANN, "t1")
    await begin(limited, size=1_500)
