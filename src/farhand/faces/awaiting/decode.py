"""Bytes of the awaiting wire become our nouns."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, assert_never

import msgspec
from msgspec import UNSET, Struct

from farhand.agent.answers import Pause, Reaction
from farhand.agent.attachments import Attached, Referred, Said, from_base64
from farhand.agent.files import Label
from farhand.core.approval import Answer
from farhand.core.call import Call, Phase
from farhand.core.file import UNNAMED, clean_name, media_type_of
from farhand.core.ids import is_chosen_id
from farhand.core.outcome import Failure, Outcome, Success
from farhand.core.thread import Text
from farhand.core.tool import Executor
from farhand.errors import Malformed, NotFound
from farhand.faces.awaiting.shapes import (
    Base64Source,
    DocumentBlock,
    FileSource,
    Format,
    ImageBlock,
    PromptBlock,
    RunRequest,
    TextBlock,
    TextSource,
    ToolResult,
    ToolResultsRequest,
    UserTurn,
)
from farhand.wire.guard import json_or_text, read_as


class Prompt(Struct, frozen=True):
    """What the user says. Without a thread, in a new one."""

    thread_id: str | None
    said: tuple[Said, ...]


class SessionPage(Struct, frozen=True):
    limit: int
    offset: int


class ConversationPage(Struct, frozen=True):
    """Conversations before this number; None: the newest."""

    limit: int
    before: int | None


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
    said = tuple(part for part in _said(request.user_prompt) if not isinstance(part, Text) or part.text)
    if all(isinstance(part, Text) and not part.text.strip() for part in said):
        raise Malformed("user_prompt has no text.", hint="Say something; nothing was started.")
    return Prompt(request.agent_uuid, said)


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


def decode_session_page(parameters: Mapping[str, str]) -> SessionPage:
    limit = _number(parameters, "limit", default=50, least=1, most=100)
    return SessionPage(limit, _number(parameters, "offset", default=0, least=0, most=10_000))


def decode_conversation_page(parameters: Mapping[str, str]) -> ConversationPage:
    limit = _number(parameters, "limit", default=20, least=1, most=100)
    if "before" not in parameters:
        return ConversationPage(limit, None)
    return ConversationPage(limit, _number(parameters, "before", default=1, least=1, most=2**31))


def _number(parameters: Mapping[str, str], name: str, *, default: int, least: int, most: int) -> int:
    text = parameters.get(name, str(default))
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(most))
    if not is_number or not least <= int(text) <= most:
        raise Malformed(f"{name} must be a number from {least} to {most}.")
    return int(text)


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
    return Success(result.content if as_text else json_or_text(result.content))


def _said(prompt: object) -> list[Said]:
    if isinstance(prompt, str):
        return [Text(prompt)]
    try:
        if isinstance(prompt, dict):
            return _said(msgspec.convert(prompt, UserTurn).content)
        if isinstance(prompt, list):
            return [_said_in(msgspec.convert(block, _BLOCK)) for block in prompt]
    except msgspec.ValidationError as fault:
        raise Malformed(f"user_prompt: {fault}.", hint=_BLOCKS_LOOK_LIKE) from None
    raise Malformed("user_prompt is neither a text, nor a list of blocks, nor a message of the user.")


# the type of a union, which `type[...]` has no word for
_BLOCK: Any = PromptBlock
_BLOCKS_LOOK_LIKE = (
    'Blocks look like {"type": "text", "text": "…"}, or have the type image or document and a source of the '
    "type base64, text or file; nothing is fetched."
)


def _said_in(block: PromptBlock) -> Said:
    if isinstance(block, TextBlock):
        return Text(block.text)
    name = block.title if isinstance(block, DocumentBlock) else None
    source: Base64Source | TextSource | FileSource = block.source
    match source:
        case FileSource(file_id=ref):
            return Referred(ref)
        case TextSource(data=text, media_type=media_type):
            return _file(media_type, name, text.encode())
        case Base64Source(data=data, media_type=media_type):
            if isinstance(block, ImageBlock) and not media_type.lower().startswith("image/"):
                raise Malformed(f"An image cannot have the media_type '{media_type[:64]}'.")
            return _file(media_type, name, from_base64(data, what="The data of a block"))
    assert_never(source)


def _file(media_type: str, name: str | None, data: bytes) -> Attached:
    kind = media_type_of(media_type)
    if kind is None:
        raise Malformed(f"'{media_type[:64]}' is not a media_type.", hint="Send one such as image/png.")
    return Attached(Label(clean_name(name) if name else UNNAMED, kind, len(data)), data)
