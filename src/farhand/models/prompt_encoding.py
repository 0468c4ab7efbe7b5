"""Encodes one prompt for a provider: the id of each call, the name of each tool, and the results.

Every adapter builds its request with one encoder. It must not know the request format of any provider.
"""

from __future__ import annotations

import json
import re

import msgspec

from farhand.core.thread import Asked, Reasoning, Resolved
from farhand.models.base import Prompt
from farhand.models.provider_ids import CallIds, ToolNames, calls_in_messages
from farhand.models.render import RenderedResult, render_result
from farhand.models.tool_schema import ToolDefinition, define_tool


class PromptEncoder:
    def __init__(self, prompt: Prompt, *, longest_id: int = 64, longest_name: int = 64) -> None:
        self.prompt = prompt
        self.ids = CallIds(prompt.messages, longest=longest_id)
        self._asked: dict[str, Asked] = {asked.call_id: asked for asked in calls_in_messages(prompt.messages)}
        offered = (tool.name for tool in prompt.tools)
        # tools in the history may no longer exist, but their names must be valid all the same
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

    def result(self, resolved: Resolved) -> RenderedResult:
        return render_result(resolved, self._asked[resolved.call_id], self.prompt)


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
