"""Where a conversation stands at Backboard, read from the history alone: it survives every restart.

Each step carries, as the provider's own item, the thread it was said in and the run that waits for results.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import asdict

from farhand.core.thread import AssistantMessage, Message, Reasoning, ResultsMessage, UserMessage
from farhand.models.base import ReasoningDone
from farhand.models.telling import echo_by, echoed

PROVIDER = "backboard"


class Place(Struct, frozen=True):
    """Where an answer is said."""

    assistant: str
    thread: str
    at: int
    """Which of the thread's answers it is."""


class Standing(Struct, frozen=True):
    """What Backboard said last, and what came of it since."""

    place: Place
    run: str | None
    """The run that waits for the results of its calls."""
    results: ResultsMessage | None
    users: tuple[UserMessage, ...]


def echo_of(place: Place, run: str | None) -> ReasoningDone:
    return ReasoningDone(echo_by(PROVIDER, {**asdict(place), "run": run}))


def standing_of(messages: Sequence[Message]) -> Standing | None:
    """None if the last words are not Backboard's: it has to be told everything from the start."""
    last = max((at for at, each in enumerate(messages) if isinstance(each, AssistantMessage)), default=None)
    if last is None:
        return None
    echo = _echo(messages[last])
    if echo is None:
        return None
    since = messages[last + 1 :]
    results = next((each for each in since if isinstance(each, ResultsMessage)), None)
    users = tuple(each for each in since if isinstance(each, UserMessage))
    at, run = echo.get("at"), echo.get("run")
    return Standing(
        # older histories name no assistant: theirs may have other tools by now, so it is nobody's
        place=Place(
            str(echo.get("assistant", "")), str(echo.get("thread")), at if isinstance(at, int) else 0
        ),
        run=str(run) if run and results else None,
        results=results,
        users=users,
    )


def _echo(message: Message) -> dict[str, object] | None:
    parts = message.parts if isinstance(message, AssistantMessage) else ()
    echoes = (echoed(PROVIDER, part) for part in reversed(parts) if isinstance(part, Reasoning))
    return next((echo for echo in echoes if echo is not None), None)
