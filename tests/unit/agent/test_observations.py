"""What a process observes outside the log is kept for the Inspector, within bounds."""

from __future__ import annotations

from farhand.agent.observations import MOST_EACH, MOST_KEPT, Observations
from farhand.core.approval import Answer
from farhand.core.decide.calls import Reply
from farhand.core.outcome import Success
from farhand.core.result import Accepted, Conflict, Repeated, Result, Winner
from farhand.eventlog.log import EventLog
from farhand.store.memory import MemoryStore

RESULT = Result(call_id="call_1", outcome=Success(1))
REPLY = Reply("apr_1", Answer(approved=True))


def test_only_answers_without_effect_are_kept() -> None:
    seen = Observations(EventLog(MemoryStore()))
    winner = Winner("success", "", 0.0)
    for item, receipt in ((RESULT, Accepted()), (RESULT, Repeated()), (REPLY, Conflict(winner))):
        seen.note_receipt(item, receipt)
    assert [each.seen for each in seen.of("call_1")] == ["repeat"]
    assert [each.seen for each in seen.of("call_1", "apr_1")] == ["repeat", "conflict"]
    assert seen.of("call_2") == []


def test_what_is_kept_is_bounded() -> None:
    seen = Observations(EventLog(MemoryStore()))
    for number in range(MOST_KEPT + 1):
        seen.note_reader(f"run_{number}", "joined")
    assert seen.of("run_0") == []
    for _ in range(MOST_EACH + 5):
        seen.note_reader("run_1", "left")
    assert len(seen.of("run_1")) == MOST_EACH
