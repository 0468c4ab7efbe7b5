"""The rules of the Messages API that a client can break, each with the API's own error message."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from tests.fakes.anthropic.signature import is_signed
from tests.fakes.images import wrong_with
from tests.fakes.provider import Json, Refusal

_ID = re.compile(r"[a-zA-Z0-9_-]+")
_THOUGHTS = frozenset({"thinking", "redacted_thinking"})
_REFUSED_AT_TOP = frozenset({"oneOf", "allOf", "anyOf"})
_MEMBER = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")


def check(body: Json, paused: Sequence[Sequence[Json]]) -> None:
    """Raises the first broken rule as a 400."""
    for wanted in ("model", "max_tokens", "messages"):
        if wanted not in body:
            raise _bad(f"{wanted}: Field required")
    turns = turns_of(body)
    if not turns:
        raise _bad("messages: at least one message is required")
    if turns[0][0] != "user":
        raise _bad('messages: first message must use the "user" role')
    for rule in _RULES:
        rule(turns)
    _check_tools(body, turns)
    _check_end(turns, paused)
    if body.get("thinking", {}).get("type") == "enabled":
        _check_thinking_kept(turns)


def turns_of(body: Json) -> list[tuple[str, list[Json]]]:
    """Roles and blocks; what follows in the same role belongs to the same turn, as the API reads it."""
    turns: list[tuple[str, list[Json]]] = []
    for number, message in enumerate(body["messages"]):
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content or [])
        if not blocks:
            raise _bad(
                f"messages.{number}: all messages must have non-empty content "
                "except for the optional final assistant message"
            )
        if turns and turns[-1][0] == message["role"]:
            turns[-1][1].extend(blocks)
        else:
            turns.append((message["role"], blocks))
    return turns


Turns = list[tuple[str, list[Json]]]


def _check_blocks(turns: Turns) -> None:
    for place, role, block in _each(turns):
        _check_content(block, place)
        if block["type"] == "tool_use" and role != "assistant":
            raise _bad(f"{place}: `tool_use` blocks can only be in `assistant` messages")
        if block["type"] == "tool_result" and role != "user":
            raise _bad(f"{place}: `tool_result` blocks can only be in `user` messages")
        if block["type"] == "thinking" and not is_signed(block):
            raise _bad(f"{place}: Invalid `signature` in `thinking` block")


def _check_content(block: Json, place: str) -> None:
    """Texts and images, in a message or in a result."""
    inside = block.get("content") if block["type"] == "tool_result" else None
    for each in (block, *(inside if isinstance(inside, list) else ())):
        source = each.get("source") or {}
        wrong = wrong_with(str(source.get("media_type")), str(source.get("data")))
        if each["type"] == "image" and wrong is not None:
            raise _bad(f"{place}.image.source.base64: {wrong}")
        if each["type"] == "text" and not each.get("text"):
            raise _bad("messages: text content blocks must be non-empty")
        if each["type"] == "text" and not each["text"].strip():
            raise _bad("messages: text content blocks must contain non-whitespace text")


def _check_calls(turns: Turns) -> None:
    known: set[str] = set()
    for place, _, block in _each(turns):
        if block["type"] != "tool_use":
            continue
        if _ID.fullmatch(str(block.get("id"))) is None:
            raise _bad(f"{place}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
        if not isinstance(block.get("input"), dict):
            raise _bad(f"{place}.tool_use.input: Input should be a valid dictionary")
        if block["id"] in known:
            raise _bad(f"{place}: `tool_use` ids must be unique")
        known.add(block["id"])


def _check_results(turns: Turns) -> None:
    for number, (role, blocks) in enumerate(turns):
        asked = _ids(turns[number - 1][1]) if number and role == "user" else []
        got: set[str] = set()
        for position, block in enumerate(blocks):
            if block["type"] != "tool_result":
                continue
            place, call = f"messages.{number}.content.{position}", block.get("tool_use_id")
            if call not in asked:
                raise _bad(
                    f"{place}: unexpected `tool_use_id` found in `tool_result` blocks: {call}. Each "
                    "`tool_result` block must have a corresponding `tool_use` block in the previous message."
                )
            if call in got:
                raise _bad(
                    f"{place}: each tool_use must have a single result. Found multiple `tool_result` blocks "
                    f"with id: {call}"
                )
            got.add(str(call))


def _check_answered(turns: Turns) -> None:
    for number, (role, blocks) in enumerate(turns):
        asked = _ids(blocks) if role == "assistant" else []
        following = turns[number + 1][1] if number + 1 < len(turns) else []
        missing = [call for call in asked if call not in _first_results(following)]
        if missing:
            raise _bad(
                f"messages.{number}: `tool_use` ids were found without `tool_result` blocks immediately "
                f"after: {', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` "
                "block in the next message."
            )


def _check_server_tools(turns: Turns) -> None:
    ended = {block.get("tool_use_id") for _, _, block in _each(turns)}
    for place, _, block in _each(turns[:-1]):
        if block["type"] == "server_tool_use" and block.get("id") not in ended:
            name = block.get("name")
            raise _bad(
                f"{place}: `{name}` tool use with id `{block.get('id')}` was found without a corresponding "
                f"`{name}_tool_result` block"
            )


def _check_last_blocks(turns: Turns) -> None:
    for number, (role, blocks) in enumerate(turns[:-1]):
        if role == "assistant" and blocks and blocks[-1]["type"] in _THOUGHTS:
            raise _bad(f"messages.{number}: The final block in an assistant message cannot be `thinking`.")


_RULES: tuple[Callable[[Turns], None], ...] = (
    _check_blocks,
    _check_calls,
    _check_results,
    _check_answered,
    _check_server_tools,
    _check_last_blocks,
)


def _check_tools(body: Json, turns: Turns) -> None:
    tools = body.get("tools") or []
    for number, tool in enumerate(tools):
        _check_tool(tool, f"tools.{number}.custom")
    if len({tool["name"] for tool in tools}) < len(tools):
        raise _bad("tools: Tool names must be unique.")
    if not tools and any(block["type"] in {"tool_use", "tool_result"} for _, _, block in _each(turns)):
        raise _bad("Requests which include `tool_use` or `tool_result` blocks must define tools")


def _check_tool(tool: Json, place: str) -> None:
    if _NAME.fullmatch(str(tool.get("name"))) is None:
        raise _bad(f"{place}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
    if "type" in tool:
        return
    schema = tool.get("input_schema") or {}
    if schema.get("type") != "object":
        raise _bad(f"{place}.input_schema.type: Field required")
    if not _REFUSED_AT_TOP.isdisjoint(schema):
        raise _bad(
            f"{place}.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level"
        )
    if any(_MEMBER.fullmatch(name) is None for name in schema.get("properties") or {}):
        raise _bad(
            f"{place}.input_schema.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{{1,64}}$'"
        )


def _check_end(turns: Turns, paused: Sequence[Sequence[Json]]) -> None:
    role, blocks = turns[-1]
    # a turn that was paused grows with every pause, and must be there as it was
    if role == "assistant" and not any(blocks[-len(turn) :] == list(turn) for turn in paused):
        raise _bad(
            "This model does not support assistant message prefill. "
            "The conversation must end with a user message."
        )


def _check_thinking_kept(turns: Turns) -> None:
    number = max((index for index, (role, _) in enumerate(turns) if role == "assistant"), default=None)
    if number is None or not _ids(turns[number][1]):
        return
    found = turns[number][1][0]["type"]
    if found not in _THOUGHTS:
        raise _bad(
            f"messages.{number}.content.0.type: Expected `thinking` or `redacted_thinking`, but found "
            f"`{found}`. When `thinking` is enabled, a final `assistant` message must start with a thinking "
            "block (preceeding the lastmost set of `tool_use` and `tool_result` blocks)."
        )


def _each(turns: Turns) -> Iterator[tuple[str, str, Json]]:
    for number, (role, blocks) in enumerate(turns):
        for position, block in enumerate(blocks):
            yield f"messages.{number}.content.{position}", role, block


def _ids(blocks: Sequence[Json]) -> list[str]:
    return [str(block.get("id")) for block in blocks if block["type"] == "tool_use"]


def _first_results(blocks: Sequence[Json]) -> list[str]:
    """The results that come before anything else."""
    first: list[str] = []
    for block in blocks:
        if block["type"] != "tool_result":
            break
        first.append(str(block.get("tool_use_id")))
    return first


def _bad(message: str) -> Refusal:
    return Refusal(400, message)
