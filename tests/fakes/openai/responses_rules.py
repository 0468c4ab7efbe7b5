"""The rules of the Responses API that a client can break, each with the API's own error message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.fakes.openai.encrypted_reasoning import is_sealed
from tests.fakes.openai.names import bad, check_functions, check_image, check_length
from tests.fakes.provider import Json, Refusal


def check_response(body: Json, reasons: Mapping[str, str]) -> None:
    """Raises the first broken rule. `reasons` has the reasoning item that each call came with."""
    for wanted in ("model", "input"):
        if wanted not in body:
            raise bad(
                f"Missing required parameter: '{wanted}'.", param=wanted, code="missing_required_parameter"
            )
    functions = [tool for tool in body.get("tools") or [] if tool.get("type") == "function"]
    check_functions(functions, "tools[#]")
    items = items_of(body)
    _check_shapes(items)
    _check_images(items)
    _check_pairs(items)
    _check_reasoning(items)
    _check_reasons(items, reasons)


def items_of(body: Json) -> list[Json]:
    given = body["input"]
    return [{"role": "user", "content": given}] if isinstance(given, str) else list(given)


def _check_shapes(items: Sequence[Json]) -> None:
    for number, item in enumerate(items):
        if item.get("type") not in {"function_call", "function_call_output"}:
            continue
        place = f"input[{number}].call_id"
        if not item.get("call_id"):
            raise bad(
                f"Missing required parameter: '{place}'.", param=place, code="missing_required_parameter"
            )
        check_length(item["call_id"], place, 64)
        if item["type"] == "function_call_output" and not isinstance(item.get("output"), str | list):
            raise bad(
                f"Invalid type for 'input[{number}].output': expected one of an array of objects or string, "
                "but got an object instead.",
                param=f"input[{number}].output",
                code="invalid_type",
            )


def _check_images(items: Sequence[Json]) -> None:
    for number, item in enumerate(items):
        parts = item.get("output" if item.get("type") == "function_call_output" else "content")
        for part in parts if isinstance(parts, list) else []:
            if part.get("type") == "input_image":
                check_image(part.get("image_url"), f"input[{number}].image_url")


def _check_pairs(items: Sequence[Json]) -> None:
    waiting: dict[str, None] = {}
    known: set[str] = set()
    for item in items:
        call = str(item.get("call_id"))
        if item.get("type") == "function_call":
            if call in known:
                raise bad(
                    f"Duplicate item found with id {call}. Remove duplicate items from your input and try "
                    "again.",
                    param="input",
                )
            known.add(call)
            waiting[call] = None
        elif item.get("type") == "function_call_output":
            if call not in waiting:
                raise bad(f"No tool call found for function call output with call_id {call}.", param="input")
            del waiting[call]
    for call in waiting:
        raise bad(f"No tool output found for function call {call}.", param="input")


def _check_reasoning(items: Sequence[Json]) -> None:
    for number, item in enumerate(items):
        if item.get("type") != "reasoning":
            continue
        name = item.get("id")
        if not item.get("encrypted_content"):
            raise Refusal(
                404,
                f"Item with id '{name}' not found. Items are not persisted when `store` is set to false. Try "
                "again with `store` set to true, or remove this item from your input.",
                param="input",
            )
        if not is_sealed(item):
            raise bad(
                f"The encrypted content for item {name} could not be verified. Reason: Encrypted content "
                "could not be decrypted or parsed.",
                param="input",
                code="invalid_encrypted_content",
            )
        following = items[number + 1] if number + 1 < len(items) else {}
        if following.get("role") != "assistant" and following.get("type") not in {
            "function_call",
            "reasoning",
        }:
            raise bad(
                f"Item '{name}' of type 'reasoning' was provided without its required following item.",
                param="input",
            )


def _check_reasons(items: Sequence[Json], reasons: Mapping[str, str]) -> None:
    there = {item.get("id") for item in items if item.get("type") == "reasoning"}
    for item in items:
        wanted = reasons.get(str(item.get("call_id"))) if item.get("type") == "function_call" else None
        if wanted is not None and wanted not in there:
            name = item.get("id") or item["call_id"]
            raise bad(
                f"Item '{name}' of type 'function_call' was provided without its required 'reasoning' item: "
                f"'{wanted}'.",
                param="input",
            )
