"""What a script sees when it is asked for the next step, and whether a provider would take that history.

Everything is read from the prompt alone: a script answers the same after a crash as before it.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from farhand.core.outcome import (
    Cancelled,
    Denied,
    Failure,
    Outcome,
    Success,
    TimedOut,
    kind_of,
    seen_by_model,
)
from farhand.core.thread import (
    Asked,
    AssistantMessage,
    Message,
    Resolved,
    ResultsMessage,
    UserMessage,
    text_of,
)
from farhand.errors import ModelFault
from farhand.models.base import Prompt


class Returned(Struct, frozen=True):
    """A call that came back."""

    call_id: str
    tool: str
    input: object
    outcome: Outcome

    @property
    def kind(self) -> str:
        """`success`, `failure`, `denied`, `timed_out` or `cancelled`."""
        return kind_of(self.outcome)

    @property
    def output(self) -> object:
        """What a success brought, else None."""
        return self.outcome.output if isinstance(self.outcome, Success) else None

    @property
    def error(self) -> str:
        """Why there is no output, in words; empty after a success."""
        match self.outcome:
            case Success():
                return ""
            case Failure(error=error):
                return error
            case Denied(reason=reason):
                return f"denied: {reason}" if reason else "denied"
            case TimedOut(after_sec=after):
                return "timed out" if after is None else f"timed out after {after:g} s"
            case Cancelled(reason=reason):
                return reason

    @property
    def seen(self) -> str:
        """The result as farhand words it for a model."""
        return seen_by_model(self.outcome).text


class Moment(Struct, frozen=True, kw_only=True):
    """The conversation as it stands. `steps` and `results` count from the last user message on."""

    text: str
    """Of the last user message."""
    steps: int
    """How many steps the model has made since."""
    results: tuple[Returned, ...]
    """The calls that came back since, in order."""
    last: tuple[Returned, ...]
    """Of these, the calls of the step before this one."""
    tools: tuple[str, ...]
    """The names of the tools that are offered."""
    messages: tuple[Message, ...]
    instructions: str = ""
    thread_id: str = ""


def moment_of(prompt: Prompt) -> Moment:
    text, since = _split(prompt.messages)
    rounds = [tuple(map(_returned, each.results)) for each in since if isinstance(each, ResultsMessage)]
    waiting = bool(since) and isinstance(since[-1], ResultsMessage)
    return Moment(
        text=text,
        steps=sum(isinstance(each, AssistantMessage) for each in since),
        results=tuple(result for each in rounds for result in each),
        last=rounds[-1] if waiting else (),
        tools=tuple(tool.name for tool in prompt.tools),
        messages=tuple(prompt.messages),
        instructions=prompt.instructions,
        thread_id=prompt.thread_id,
    )


def check_history(messages: Sequence[Message]) -> None:
    """Refuse, as providers do, a history in which calls and results do not pair up."""
    if not messages or not isinstance(messages[0], UserMessage):
        raise _invalid("it does not begin with a user message")
    owed: tuple[Asked, ...] = ()
    known: set[str] = set()
    for message in messages:
        if isinstance(message, ResultsMessage):
            _check_results(owed, message.results)
            owed = ()
            continue
        if owed:
            raise _invalid(f"the next message has no result for {_list(owed)}")
        if isinstance(message, AssistantMessage):
            owed = message.asked
            _check_new(owed, known)
    if owed:
        raise _invalid(f"it ends without a result for {_list(owed)}")


def _split(messages: Sequence[Message]) -> tuple[str, Sequence[Message]]:
    for index in range(len(messages) - 1, -1, -1):
        if isinstance(messages[index], UserMessage):
            return text_of(messages[index]), messages[index + 1 :]
    return "", messages


def _returned(call: Resolved) -> Returned:
    return Returned(call.call_id, call.tool, call.input, call.outcome)


def _check_results(owed: tuple[Asked, ...], results: tuple[Resolved, ...]) -> None:
    expected = [(call.call_id, call.tool, call.model_call_id) for call in owed]
    got = [(call.call_id, call.tool, call.model_call_id) for call in results]
    if expected != got:
        raise _invalid(f"after the calls {_list(owed)} it has the results {_list(results)}")
    if not expected:
        raise _invalid("it has a message of results that nobody asked for")


def _check_new(calls: tuple[Asked, ...], known: set[str]) -> None:
    for call in calls:
        if call.call_id in known:
            raise _invalid(f"it holds the call {call.call_id} twice")
        known.add(call.call_id)


def _list(calls: Sequence[Asked | Resolved]) -> str:
    named = (f"{call.call_id} ({call.tool})" for call in calls)
    return ", ".join(named) or "(none)"


def _invalid(why: str) -> ModelFault:
    return ModelFault(f"The history is not valid for a model: {why}.")
