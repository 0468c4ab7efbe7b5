"""What look-up rows contain about a thread and a call."""

from __future__ import annotations

import pytest

from farhand.core.call import Phase, ProgramRequest
from farhand.core.run import RunState
from farhand.store.base import Append, ThreadRow
from farhand.store.guards import can_go_on, is_in_time, is_open, is_running, key_of
from farhand.store.memory import MemoryStore
from farhand.testing import FakeClock
from farhand.testing.store_laws.fixture import ANN, StoreFixture


@pytest.mark.parametrize(
    ("state", "is_parked", "expected"),
    [
        (None, False, (False, False)),
        (RunState.RUNNING, False, (True, True)),
        (RunState.RUNNING, True, (True, True)),
        (RunState.WAITING, False, (True, False)),
        (RunState.WAITING, True, (False, False)),
        (RunState.DONE, False, (False, False)),
        (RunState.STOPPED, True, (False, False)),
        (RunState.FAILED, False, (False, False)),
    ],
)
def test_a_run_can_continue_and_counts_as_running_by_what_it_waits_for(
    *, state: RunState | None, is_parked: bool, expected: tuple[bool, bool]
) -> None:
    row = ThreadRow(title="", created_at=1.0, updated_at=1.0, run_state=state, is_parked=is_parked)
    assert (can_go_on(row), is_running(row)) == expected


def test_an_append_is_in_time_from_its_first_moment_until_before_its_last() -> None:
    append = Append(owner=ANN, thread_id="t1", version=0, at=1.0, not_before=10.0, not_after=20.0)
    assert [is_in_time(append, now) for now in (9.9, 10.0, 19.9, 20.0)] == [False, True, True, False]
    assert is_in_time(Append(owner=ANN, thread_id="t1", version=0, at=1.0), 5.0)


def test_a_call_has_up_to_three_keys() -> None:
    fixture = StoreFixture(MemoryStore(), FakeClock())
    call = fixture.new_call(approval=fixture.new_approval(), request=ProgramRequest("job-1"))
    assert [key_of(call, kind) for kind in ("call", "approval", "request")] == ["call_1", "apr_1", "job-1"]
    bare = fixture.new_call()
    assert [key_of(bare, kind) for kind in ("call", "approval", "request")] == ["call_1", None, None]
    assert is_open(bare)
    assert bare.phase is Phase.READY
    assert not is_open(fixture.settled(bare))
