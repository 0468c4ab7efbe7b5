"""The rules of Chat Completions that a client can break, each with the API's own error message."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tests.fakes.openai.names import bad, check_functions, check_image, check_length
from tests.fakes.provider import Json


def check_chat(body: Json) -> None:
    """Raises the first broken rule as a 400."""
    for wanted in ("model", "messages"):
        if not body.get(wanted):
            raise bad(
                f"Missing required parameter: '{wanted}'.", param=wanted, code="missing_required_parameter"
            )
    check_functions([tool.get("function") or {} for tool in body.get("tools") or []], "tools[#].function")
    messages: list[Json] = body["messages"]
    _check_shapes(messages)
    _check_pairs(messages)
    _check_images(messages)


def check_thoughts(body: Json, member: str, thoughts: Collection[str]) -> None:
    """What servers of models that think ask for: what led to calls comes back with them, as it was."""
    for number, message in enumerate(body["messages"]):
        if not message.get("tool_calls") or not thoughts:
            continue
        if not message.get(member):
            raise bad(
                f"Missing `{member}` field in the assistant message at message index {number}.",
                param=f"messages[{number}].{member}",
            )
        if message[member] not in thoughts:
            raise bad(
                f"The `{member}` in the assistant message at message index {number} was changed.",
                param=f"messages[{number}].{member}",
            )


def _check_shapes(messages: Sequence[Json]) -> None:
    for number, message in enumerate(messages):
        calls = message.get("tool_calls")
        if calls == []:
            raise bad(
                f"Invalid 'messages[{number}].tool_calls': empty array. Expected an array with minimum "
                "length 1, but got an empty array instead.",
                param=f"messages[{number}].tool_calls",
                code="empty_array",
            )
        if message.get("content") is None and not calls:
            raise bad(
                "Invalid value for 'content': expected a string, got null.",
                param=f"messages.[{number}].content",
            )
        for place, call in enumerate(calls or []):
            check_length(str(call.get("id")), f"messages[{number}].tool_calls[{place}].id", 40)


def _check_images(messages: Sequence[Json]) -> None:
    for number, message in enumerate(messages):
        content = message.get("content")
        for part in content if isinstance(content, list) else []:
            if part.get("type") != "image_url":
                continue
            if message["role"] != "user":
                raise bad(
                    f"Invalid 'messages[{number}]'. Image URLs are only allowed for messages with role "
                    f"'user', but this message with role '{message['role']}' contains an image URL.",
                    param=f"messages[{number}]",
                    code="invalid_value",
                )
            check_image(part["image_url"].get("url"), f"messages[{number}].content.image_url")


def _check_pairs(messages: Sequence[Json]) -> None:
    asked: list[str] = []
    missing: list[str] = []
    known: set[str] = set()
    for number, message in enumerate(messages):
        if message["role"] == "tool":
            _check_answer(number, str(message.get("tool_call_id")), asked, missing)
            continue
        _check_none_missing(missing)
        asked = [str(call.get("id")) for call in message.get("tool_calls") or []]
        missing = list(asked)
        for call in asked:
            if call in known:
                raise bad(
                    f"Duplicate value for 'tool_call_id' of '{call}' in message[{number}].",
                    param=f"messages.[{number}].tool_calls",
                )
            known.add(call)
    _check_none_missing(missing)


def _check_answer(number: int, call: str, asked: Sequence[str], missing: list[str]) -> None:
    if not asked:
        raise bad(
            "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
            "'tool_calls'.",
            param=f"messages.[{number}].role",
        )
    if call not in missing:
        raise bad(
            f"Invalid parameter: 'tool_call_id' of '{call}' not found in 'tool_calls' of previous message.",
            param=f"messages.[{number}].tool_call_id",
        )
    missing.remove(call)


def _check_none_missing(missing: Sequence[str]) -> None:
    if missing:
        raise bad(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            "'tool_call_id'. The following tool_call_ids did not have response messages: "
            f"{', '.join(missing)}",
            param="messages.[0].role",
        )
