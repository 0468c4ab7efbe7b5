"""Where a conversation is at Backboard, and what has to be sent next, as text. Pure.

The position is read from the history alone, so it survives every restart: each step carries, as the
provider's own item, the thread of its answer and the run that waits for results. Threads of Backboard take
only text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import asdict

from farhand.core.thread import AssistantMessage, Message, Reasoning, ResultsMessage, UserMessage, text_of
from farhand.models.base import ReasoningDone
from farhand.models.prompt_encoding import PromptEncoder, own_echo, tag_echo
from farhand.models.render import join_text, render_input_text, render_user_parts

PROVIDER = "backboard"


class AnswerPlace(Struct, frozen=True):
    """The place of an answer at Backboard."""

    assistant: str
    thread: str
    at: int
    """The number of the answer in its thread."""


class ThreadPosition(Struct, frozen=True):
    """The last answer of Backboard, and what followed since."""

    place: AnswerPlace
    run: str | None
    """The run that waits for the results of its calls, if any."""
    results: ResultsMessage | None
    users: tuple[UserMessage, ...]


def echo_of(place: AnswerPlace, run: str | None) -> ReasoningDone:
    return ReasoningDone(tag_echo(PROVIDER, {**asdict(place), "run": run}))


def position_of(messages: Sequence[Message]) -> ThreadPosition | None:
    """None if the last answer is not from Backboard: it then needs the whole conversation."""
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
    return ThreadPosition(
        # without an assistant: its tools may have changed, so it matches none
        place=AnswerPlace(
            str(echo.get("assistant", "")), str(echo.get("thread")), at if isinstance(at, int) else 0
        ),
        run=str(run) if run and results else None,
        results=results,
        users=users,
    )


def _echo(message: Message) -> dict[str, object] | None:
    parts = message.parts if isinstance(message, AssistantMessage) else ()
    echoes = (own_echo(PROVIDER, part) for part in reversed(parts) if isinstance(part, Reasoning))
    return next((echo for echo in echoes if echo is not None), None)


_BEFORE = "Earlier in this conversation:"
_CONTINUE = "Continue from there."


def user_text(users: Iterable[UserMessage], encoder: PromptEncoder) -> str:
    return "\n\n".join(join_text(render_user_parts(each, encoder.prompt)) for each in users)


def text_after_cancel(results: ResultsMessage, users: Iterable[UserMessage], encoder: PromptEncoder) -> str:
    """A message after calls whose results can no longer be submitted: it includes them as text."""
    results_text = "\n".join(_results(results, encoder))
    return f"Results of the calls before this message:\n{results_text}\n\n{user_text(users, encoder)}"


def whole_conversation(encoder: PromptEncoder) -> str:
    """The whole conversation for a new thread; only the message if the conversation has just begun."""
    messages = encoder.prompt.messages
    new = len(messages)
    while new and isinstance(messages[new - 1], UserMessage):
        new -= 1
    asked = user_text((each for each in messages[new:] if isinstance(each, UserMessage)), encoder)
    if new == 0:
        return asked
    before = "\n".join(line for each in messages[:new] for line in _lines(each, encoder))
    return f"{_BEFORE}\n{before}\n\n{asked or _CONTINUE}"


def _lines(message: Message, encoder: PromptEncoder) -> Iterator[str]:
    match message:
        case UserMessage():
            yield f"User: {user_text([message], encoder)}"
        case AssistantMessage():
            if text_of(message).strip():
                yield f"You: {text_of(message)}"
            for asked in message.tool_calls:
                yield f"You called {asked.tool} with {render_input_text(asked)}."
        case ResultsMessage():
            yield from _results(message, encoder)


def _results(results: ResultsMessage, encoder: PromptEncoder) -> Iterator[str]:
    for resolved in results.results:
        yield f"{resolved.tool}: {encoder.result(resolved).text}"
