"""Repeats a question that timed out when the person writes "ask me again".

The scripted model reads only the last message and would ask something else. Only questions that timed out are
repeated; with the new answer, the script continues where it stopped.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from typing import NamedTuple

from msgspec.structs import replace

from farhand import TimedOut
from farhand.messages import Message, ResultsMessage, ToolResultPart, UserMessage, text_of
from farhand.models import Ask, Model, ModelEvent, Prompt, Say, ScriptedModel

AGAIN = ("ask me again", "ask again")


class QuestionRepeater:
    """Wraps a model: `QuestionRepeater(ScriptedModel.from_yaml(path))`."""

    def __init__(self, model: Model, *, delay: float = 0.0) -> None:
        self.name = model.name
        self._model = model
        self._delay = delay

    async def stream(self, prompt: Prompt) -> AsyncGenerator[ModelEvent, None]:
        """The calls that timed out, if the person has just asked for them; otherwise the model's answer."""
        *before, last = prompt.messages
        late = _find_late(_rewrite_history(before)) if _is_again(last) else None
        model, asked = self._model, prompt
        if late is None:
            asked = replace(prompt, messages=_rewrite_history(prompt.messages))
        else:
            calls = [Ask(call.tool, call.input) for call in late.calls]
            model = ScriptedModel([[Say("Once more, then."), *calls]], delay=self._delay)
        async with aclosing(model.stream(asked)) as events:
            async for event in events:
                yield event


class _Late(NamedTuple):
    """The last results in a history, and the calls among them that timed out."""

    place: int
    results: ResultsMessage
    calls: tuple[ToolResultPart, ...]


def _rewrite_history(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The history as if every repeated question had been answered the first time."""
    history: list[Message] = []
    for message, *since in _turns(messages):
        late = _find_late(history) if _is_again(message) else None
        answered = next((each for each in since if isinstance(each, ResultsMessage)), None)
        if late is None or answered is None:
            history += [message, *since]
        else:
            history[late.place :] = [_with_answers(late, answered), *since[since.index(answered) + 1 :]]
    return tuple(history)


def _turns(messages: Sequence[Message]) -> Iterator[list[Message]]:
    """Each message of the person, with the messages that follow it."""
    turn: list[Message] = []
    for message in messages:
        if isinstance(message, UserMessage) and turn:
            yield turn
            turn = []
        turn.append(message)
    if turn:
        yield turn


def _is_again(message: Message) -> bool:
    return isinstance(message, UserMessage) and any(each in text_of(message).lower() for each in AGAIN)


def _find_late(history: Sequence[Message]) -> _Late | None:
    for place in range(len(history) - 1, -1, -1):
        message = history[place]
        if isinstance(message, ResultsMessage):
            late = tuple(each for each in message.results if isinstance(each.outcome, TimedOut))
            return _Late(place, message, late) if late else None
    return None


def _with_answers(late: _Late, answered: ResultsMessage) -> ResultsMessage:
    """The results, with the new outcomes in place of those that timed out."""
    outcomes = {call.call_id: new.outcome for call, new in zip(late.calls, answered.results, strict=True)}
    results = [
        replace(each, outcome=outcomes.get(each.call_id, each.outcome)) for each in late.results.results
    ]
    return replace(late.results, results=tuple(results))
