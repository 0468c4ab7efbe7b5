"""Encodes one prompt for a provider: the id of each call, the name of each tool, and the results.

Every adapter builds its request with one encoder. It owns the rule that no two calls of a request share an id
and no two tools a name, whatever a provider sent before. It must not know the request format of any provider.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator

import msgspec

from farhand.core.thread import AssistantMessage, Message, Reasoning, ToolCallPart, ToolResultPart
from farhand.models.base import Prompt
from farhand.models.render import RenderedResult, render_result
from farhand.models.tool_schema import ToolDefinition, define_tool

_FITS = re.compile(r"[A-Za-z0-9_-]+")
_UNFIT = re.compile(r"[^A-Za-z0-9_-]+")


class PromptEncoder:
    def __init__(self, prompt: Prompt, *, longest_id: int = 64, longest_name: int = 64) -> None:
        self.prompt = prompt
        self.ids = call_ids(prompt.messages, longest=longest_id)
        self._asked: dict[str, ToolCallPart] = {
            asked.call_id: asked for asked in calls_in_messages(prompt.messages)
        }
        offered = (tool.name for tool in prompt.tools)
        # tools in the history may no longer exist, but their names must be valid
        called = (asked.tool for asked in self._asked.values())
        self.names = ToolNames((*offered, *called), longest=longest_name)

    def definitions(self, members: re.Pattern[str] | None = None) -> list[ToolDefinition]:
        """The tools; `members` matches the property names that the provider accepts."""
        return [define_tool(tool, self.names.alias(tool.name), members=members) for tool in self.prompt.tools]

    def function_tools(self) -> list[dict[str, object]]:
        """The tools in the form of Chat Completions, which other providers take as well."""
        return [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": {"properties": {}, **tool.schema},
                },
            }
            for tool in self.definitions()
        ]

    def result(self, resolved: ToolResultPart) -> RenderedResult:
        return render_result(resolved, self._asked[resolved.call_id], self.prompt)


def call_ids(messages: Iterable[Message], *, longest: int = 64) -> dict[str, str]:
    """The id of each call in one request: the provider's own, or ours if that one cannot be used.

    Providers repeat `call_0` every turn, send no id, or refuse the id of another provider. Ours is unique,
    valid everywhere, and the same in every later request.
    """
    ids: dict[str, str] = {}
    used: set[str] = set()
    for asked in calls_in_messages(messages):
        theirs = asked.model_call_id or ""
        good = theirs not in used and len(theirs) <= longest and _FITS.fullmatch(theirs) is not None
        ids[asked.call_id] = theirs if good else asked.call_id
        used.add(ids[asked.call_id])
    return ids


class ToolNames:
    """Tool names as a provider takes them, and back.

    A name that is not valid gets an alias that depends only on the name, so that the history is the same in
    every request.
    """

    def __init__(self, names: Iterable[str], *, longest: int = 64) -> None:
        self._longest = longest
        known = dict.fromkeys(names)
        self._aliases = {name: name for name in known if self._fits(name)}
        for name in known:
            if name not in self._aliases:
                self._aliases[name] = self._alias(name)
        self._names = {alias: name for name, alias in self._aliases.items()}

    def alias(self, name: str) -> str:
        return self._aliases[name]

    def name(self, alias: str) -> str:
        """The tool with this alias; a name that the model made up is returned unchanged."""
        return self._names.get(alias, alias)

    def _fits(self, name: str) -> bool:
        return len(name) <= self._longest and _FITS.fullmatch(name) is not None

    def _alias(self, name: str) -> str:
        mark = hashlib.sha256(name.encode(errors="replace")).hexdigest()
        readable = _UNFIT.sub("_", name)
        for size in range(8, len(mark)):
            alias = f"{readable[: self._longest - size - 1]}_{mark[:size]}"
            if alias not in self._aliases.values():
                return alias
        raise AssertionError("two names have the same SHA-256")


def calls_in_messages(messages: Iterable[Message]) -> Iterator[ToolCallPart]:
    return (asked for each in messages if isinstance(each, AssistantMessage) for asked in each.tool_calls)


def tag_echo(provider: str, item: object) -> dict[str, object]:
    """An item of this provider, as it is stored in the history: no other provider may get it."""
    try:
        msgspec.json.encode(item)
    except UnicodeEncodeError:
        # lone surrogates, which no store can hold: changed, the item may be refused; unchanged, it is lost
        text = json.dumps(item, ensure_ascii=False).encode("utf-16-le", "surrogatepass")
        return {provider: json.loads(text.decode("utf-16-le", "replace"))}
    return {provider: item}


def own_echo(provider: str, part: Reasoning) -> dict[str, object] | None:
    """The provider's own item, if this part holds one."""
    item = part.echo.get(provider) if isinstance(part.echo, dict) else None
    return item if isinstance(item, dict) else None
