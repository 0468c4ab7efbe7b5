"""Runs that are decided completely and stored in one append, by the same rules as every run, but without a
worker or a model."""

from __future__ import annotations

from farhand.core.decide import runs
from farhand.core.decide.decision import Decision
from farhand.core.decide.opening import Opening
from farhand.core.decide.runs import StepResult
from farhand.core.event import Event, StepStarted, TextAdded
from farhand.core.fold import append
from farhand.core.settings import Settings
from farhand.core.state import ThreadState
from farhand.messages import Text, UserMessage

FENCE = 1
"""The fence of the first claim on a run."""


class SyntheticRun:
    """One run, in a thread without an active run."""

    def __init__(self, thread: ThreadState, now: float, settings: Settings) -> None:
        self._thread = ThreadState(owner=thread.owner, thread_id=thread.thread_id, version=thread.version)
        self._now = now
        self._settings = settings
        self._openings: list[Opening] = []
        self._events: list[Event] = []

    def begin(self, run_id: str, message_id: str, text: str) -> None:
        message = UserMessage(message_id, (Text(text),))
        self._add(*runs.begin(self._thread, message, runs.NewRun(run_id)).events)

    def park(self, openings: list[Opening]) -> None:
        """Adds one step with these calls, then parks the run."""
        self._openings = openings
        self._finish(StepResult(step=1, stop_reason="calls", calls=tuple(openings)))
        self._add(*runs.park(self._thread, FENCE).events)

    def answer(self, text: str) -> None:
        """Adds one step with this text, then ends the run."""
        written = (TextAdded(0, text),)
        self._finish(
            StepResult(step=1, stop_reason="end", written=written, after=2, is_last=True, is_delivered=True)
        )

    def decision(self) -> Decision[None]:
        return Decision(None, tuple(self._events), tools=tuple([each.tool for each in self._openings[:1]]))

    def _finish(self, result: StepResult) -> None:
        self._add(StepStarted(1))
        room = len(result.calls)
        ended = runs.finish_step(
            self._thread, FENCE, result, now=self._now, settings=self._settings, calls_left=room
        )
        self._add(*ended.events)

    def _add(self, *events: Event) -> None:
        append(self._thread, events, self._now)
        self._events += events
