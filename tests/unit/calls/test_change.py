"""A change is made only where the table has a move for it."""

from __future__ import annotations

from farhand.calls.change import answered, finished
from farhand.core.outcome import Success
from tests.unit.core.samples import NO, NOW, YES, a_call, an_asking_call


def test_a_call_that_asks_nobody_cannot_be_answered() -> None:
    assert answered(a_call(), YES, at=NOW, deadline=None) is None
    assert answered(a_call(), NO, at=NOW, deadline=None) is None


def test_a_call_that_asks_cannot_be_finished() -> None:
    assert finished(an_asking_call(), Success(1), at=NOW) is None
