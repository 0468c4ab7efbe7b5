"""Decodes requests of the awaiting wire."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, assert_never

import msgspec
from msgspec import UNSET, Struct

from farhand.agent.attachments import AttachedFile, FileReference, MessageInput, from_base64
from farhand.agent.files import Label
from farhand.agent.pause import PostedResult
from farhand.core.file import UNNAMED, clean_name, media_type_of
from farhand.core.thread import Text
from farhand.errors import Malformed
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
from farhand.faces.base import check_id, decode_number
from farhand.wire.json_reader import read_as


class PromptRequest(Struct, frozen=True):
    """A message of the user. Without a thread, it begins a new one."""

    thread_id: str | None
    parts: tuple[MessageInput, ...]


class SessionPage(Struct, frozen=True):
    limit: int
    offset: int


class ConversationPage(Struct, frozen=True):
    """Conversations before this number; None for the newest ones."""

    limit: int
    before: int | None


class ToolResults(Struct, frozen=True):
    thread_id: str
    results: tuple[PostedResult, ...]


def decode_message(body: bytes) -> PromptRequest:
    request = read_as(body, RunRequest)
    if request.agent_uuid is not None:
        check_id(request.agent_uuid, "agent_uuid")
    parts = tuple(part for part in _parts(request.user_prompt) if not isinstance(part, Text) or part.text)
    if all(isinstance(part, Text) and not part.text.strip() for part in parts):
        raise Malformed("user_prompt has no text.", hint="Nothing was started.")
    return PromptRequest(request.agent_uuid, parts)


def decode_results(body: bytes, *, most: int) -> ToolResults:
    request = read_as(body, ToolResultsRequest)
    check_id(request.agent_uuid, "agent_uuid")
    if len(request.tool_results) > most:
        raise Malformed(f"tool_results has more than {most} entries.", hint="Nothing was applied.")
    for result in request.tool_results:
        check_id(result.tool_use_id, "A tool_use_id")
    return ToolResults(request.agent_uuid, tuple(_posted(result) for result in request.tool_results))


def decode_format(parameters: Mapping[str, str], default: str) -> Format:
    match parameters.get("format", default):
        case "xml":
            return "xml"
        case "raw":
            return "raw"
        case _:
            raise Malformed("format must be xml or raw.", hint="Leave it out for the agent's default.")


def decode_session_page(parameters: Mapping[str, str]) -> SessionPage:
    limit = decode_number(parameters, "limit", default=50, least=1, most=100)
    return SessionPage(limit, decode_number(parameters, "offset", default=0, least=0, most=10_000))


def decode_conversation_page(parameters: Mapping[str, str]) -> ConversationPage:
    limit = decode_number(parameters, "limit", default=20, least=1, most=100)
    if "before" not in parameters:
        return ConversationPage(limit, None)
    return ConversationPage(limit, decode_number(parameters, "before", default=1, least=1, most=2**31))


def _posted(result: ToolResult) -> PostedResult:
    return PostedResult(
        result.tool_use_id,
        None if result.content is UNSET else result.content,
        result.is_error,
        None if result.approved is UNSET else result.approved,
    )


def _parts(prompt: object) -> list[MessageInput]:
    if isinstance(prompt, str):
        return [Text(prompt)]
    try:
        if isinstance(prompt, dict):
            return _parts(msgspec.convert(prompt, UserTurn).content)
        if isinstance(prompt, list):
            return [_part(msgspec.convert(block, _BLOCK)) for block in prompt]
    except msgspec.ValidationError as fault:
        raise Malformed(f"user_prompt: {fault}.", hint=_BLOCKS_LOOK_LIKE) from None
    raise Malformed("user_prompt must be a string, a list of blocks, or a user message.")


# Any: `type[...]` cannot express the type of a union
_BLOCK: Any = PromptBlock
_BLOCKS_LOOK_LIKE = (
    'Blocks look like {"type": "text", "text": "…"}, or have the type image or document and a source of the '
    "type base64, text or file; nothing is fetched."
)


def _part(block: PromptBlock) -> MessageInput:
    if isinstance(block, TextBlock):
        return Text(block.text)
    name = block.title if isinstance(block, DocumentBlock) else None
    source: Base64Source | TextSource | FileSource = block.source
    match source:
        case FileSource(file_id=ref):
            return FileReference(ref)
        case TextSource(data=text, media_type=media_type):
            return _file(media_type, name, text.encode())
        case Base64Source(data=data, media_type=media_type):
            if isinstance(block, ImageBlock) and not media_type.lower().startswith("image/"):
                raise Malformed(f"An image cannot have the media_type '{media_type[:64]}'.")
            return _file(media_type, name, from_base64(data, what="The data of a block"))
    assert_never(source)


def _file(media_type: str, name: str | None, data: bytes) -> AttachedFile:
    kind = media_type_of(media_type)
    if kind is None:
        raise Malformed(f"'{media_type[:64]}' is not a media_type.", hint="Send one such as image/png.")
    return AttachedFile(Label(clean_name(name) if name else UNNAMED, kind, len(data)), data)
