"""What Backboard is told in words, because its threads take nothing else. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from farhand.core.thread import AssistantMessage, Message, ResultsMessage, UserMessage, text_of
from farhand.models.shown import input_text, user_parts, words
from farhand.models.telling import Telling

_BEFORE = "Earlier in this conversation:"
_GO_ON = "Go on from there."


def user_words(users: Iterable[UserMessage], telling: Telling) -> str:
    return "\n\n".join(words(user_parts(each, telling.prompt)) for each in users)


def after_cancelled(results: ResultsMessage, users: Iterable[UserMessage], telling: Telling) -> str:
    """A message after calls whose results can no longer be submitted: what came of them is told in it."""
    came = "\n".join(_results(results, telling))
    return f"What came of the calls before this message:\n{came}\n\n{user_words(users, telling)}"


def everything(telling: Telling) -> str:
    """The whole conversation for a thread that knows nothing of it; if it only begins, its first message."""
    messages = telling.prompt.messages
    new = len(messages)
    while new and isinstance(messages[new - 1], UserMessage):
        new -= 1
    asked = user_words((each for each in messages[new:] if isinstance(each, UserMessage)), telling)
    if new == 0:
        return asked
    before = "\n".join(line for each in messages[:new] for line in _lines(each, telling))
    return f"{_BEFORE}\n{before}\n\n{asked or _GO_ON}"


def _lines(message: Message, telling: Telling) -> Iterator[str]:
    match message:
        case UserMessage():
            yield f"User: {user_words([message], telling)}"
        case AssistantMessage():
            if text_of(message).strip():
                yield f"You: {text_of(message)}"
            for asked in message.asked:
                yield f"You called {asked.tool} with {input_text(asked)}."
        case ResultsMessage():
            yield from _results(message, telling)


def _results(results: ResultsMessage, telling: Telling) -> Iterator[str]:
    for resolved in results.results:
        yield f"{resolved.tool}: {telling.result(resolved).text}"
