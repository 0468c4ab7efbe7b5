"""Bytes of the awaiting wire become our nouns."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TypeVar

import msgspec
from msgspec import UNSET, Struct

from farhand.agent.answers import Pause, Reaction
from farhand.core.approval import Answer
from farhand.core.call import Call, Phase
from farhand.core.ids import is_chosen_id
from farhand.core.outcome import Failure, Outcome, Success
from farhand.core.thread import Text
from farhand.core.tool import Executor
from farhand.errors import Malformed, NotFound
from farhand.faces.awaiting.shapes import (
    Format,
    RunRequest,
    TextBlock,
    ToolResult,
    ToolResultsRequest,
    UserTurn,
)
from farhand.wire.guard import read_as, read_json


class Prompt(Struct, frozen=True):
    """What the user says. Without a thread, in a new one."""

    thread_id: str | None
    parts: tuple[Text, ...]


class Results(Struct, frozen=True):
    thread_id: str
    results: tuple[ToolResult, ...]

    @property
    def call_ids(self) -> list[str]:
        return [result.tool_use_id for result in self.results]


def decode_message(body: bytes) -> Prompt:
    request = read_as(body, RunRequest)
    if request.agent_uuid is not None:
        check_thread_id(request.agent_uuid)
    parts = tuple(Text(text) for text in _texts(request.user_prompt) if text)
    if not any(part.text.strip() for part in parts):
        raise Malformed("user_prompt has no text.", hint="Say something; nothing was started.")
    return Prompt(request.agent_uuid, parts)


def decode_results(body: bytes, *, most: int) -> Results:
    request = read_as(body, ToolResultsRequest)
    check_thread_id(request.agent_uuid)
    if len(request.tool_results) > most:
        raise Malformed(f"tool_results has more than {most} entries.", hint="Nothing was applied.")
    for result in request.tool_results:
        if not is_chosen_id(result.tool_use_id):
            raise Malformed("A tool_use_id must be 1 to 128 letters, digits or _ . : -")
    return Results(request.agent_uuid, tuple(request.tool_results))


def check_thread_id(text: str) -> None:
    if not is_chosen_id(text):
        raise Malformed("agent_uuid must be 1 to 128 letters, digits or _ . : -")


def decode_format(parameters: Mapping[str, str], default: str) -> Format:
    match parameters.get("format", default):
        case "xml":
            return "xml"
        case "raw":
            return "raw"
        case _:
            raise Malformed("format is neither xml nor raw.", hint="Leave it out for the agent's own.")


def pause_meant(results: Results, pause: Pause, known: Sequence[Call]) -> Pause:
    """The pause these results are for: the open one, or, for results that come late, the one they missed.

    `known` are the calls of this thread among the ids that were posted.
    """
    got = set(results.call_ids)
    if pause.open and not got.isdisjoint(call.call_id for call in pause.calls):
        return pause
    if known and len(known) == len(got) and all(call.phase is Phase.SETTLED for call in known):
        return Pause(pause.run, tuple(known))
    if pause.open:
        return pause
    raise NotFound("None of the thread's calls waits for these results.", hint="Nothing was applied.")


def unapproved(results: Results, pause: Pause) -> list[str]:
    """Calls that wait for a yes or no, and were sent a result without one."""
    asking = {call.call_id for call in pause.calls if call.phase is Phase.ASKING}
    return [
        each.tool_use_id for each in results.results if each.tool_use_id in asking and each.approved is UNSET
    ]


def reactions_of(results: Results, pause: Pause, texts: Collection[str]) -> list[Reaction]:
    """`texts`: the calls whose tool returns a string, which is never read as JSON."""
    calls = {call.call_id: call for call in pause.calls}
    return [
        _reaction(result, calls.get(result.tool_use_id), as_text=result.tool_use_id in texts)
        for result in results.results
    ]


def _reaction(result: ToolResult, call: Call | None, *, as_text: bool) -> Reaction:
    asked = call is not None and call.approval is not None
    if not asked or result.approved is UNSET:
        return Reaction(result.tool_use_id, _outcome(result, as_text=as_text))
    if not result.approved:
        reason = "" if result.content is UNSET else result.content
        return Reaction(result.tool_use_id, answer=Answer(approved=False, reason=reason))
    yes = Answer(approved=True)
    if call is not None and call.executor is Executor.SERVER:
        # what runs here after the yes brings its own result
        return Reaction(result.tool_use_id, answer=yes)
    return Reaction(result.tool_use_id, _outcome(result, as_text=as_text), yes)


def _outcome(result: ToolResult, *, as_text: bool) -> Outcome:
    if result.content is UNSET:
        raise Malformed(f"The result for {result.tool_use_id} has no content.", hint="Nothing was applied.")
    if result.is_error:
        return Failure(result.content)
    return Success(result.content if as_text else _as_json(result.content))


def _as_json(content: str) -> object:
    try:
        return read_json(content.encode())
    except Malformed:
        return content


def _texts(prompt: object) -> list[str]:
    if isinstance(prompt, str):
        return [prompt]
    if isinstance(prompt, dict):
        return _texts(_convert(prompt, UserTurn).content)
    if isinstance(prompt, list):
        return [_convert(block, TextBlock).text for block in prompt]
    raise Malformed("user_prompt is neither a text, nor a list of text blocks, nor a message of the user.")


T = TypeVar("T", bound=Struct)


def _convert(value: object, shape: type[T]) -> T:
    try:
        return msgspec.convert(value, shape)
    except msgspec.ValidationError as fault:
        raise Malformed(
            f"user_prompt: {fault}.", hint='Blocks look like {"type": "text", "text": "…"}.'
        ) from None
