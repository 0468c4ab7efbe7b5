"""One prompt while it is told to a provider: which id each call has, which name each tool, what came back.

Every adapter builds its request with one of these. It must not know how any provider spells that request.
"""

from __future__ import annotations

import json
import re

import msgspec

from farhand.core.thread import Asked, Reasoning, Resolved
from farhand.models.base import Prompt
from farhand.models.calling import CallIds, Names, calls_in
from farhand.models.offered import Offer, offer_of
from farhand.models.shown import Shown, result_shown


class Telling:
    def __init__(self, prompt: Prompt, *, longest_id: int = 64, longest_name: int = 64) -> None:
        self.prompt = prompt
        self.ids = CallIds(prompt.messages, longest=longest_id)
        self._asked: dict[str, Asked] = {asked.call_id: asked for asked in calls_in(prompt.messages)}
        offered = (tool.name for tool in prompt.tools)
        # tools that the history tells of may be gone by now, and their names must fit all the same
        told = (asked.tool for asked in self._asked.values())
        self.names = Names((*offered, *told), longest=longest_name)

    def offers(self, members: re.Pattern[str] | None = None) -> list[Offer]:
        """The tools; `members` are the names of an input's members that the provider takes."""
        return [offer_of(tool, self.names.alias(tool.name), members=members) for tool in self.prompt.tools]

    def result(self, resolved: Resolved) -> Shown:
        return result_shown(resolved, self._asked[resolved.call_id], self.prompt)


def echo_by(provider: str, item: object) -> dict[str, object]:
    """An item of this provider, as the history keeps it: another one must not be given it."""
    try:
        msgspec.json.encode(item)
    except UnicodeEncodeError:
        # halves of characters, which no store can hold: changed, it may be refused; unchanged, it is lost
        text = json.dumps(item, ensure_ascii=False).encode("utf-16-le", "surrogatepass")
        return {provider: json.loads(text.decode("utf-16-le", "replace"))}
    return {provider: item}


def echoed(provider: str, part: Reasoning) -> dict[str, object] | None:
    """The provider's own item, if this is one."""
    item = part.echo.get(provider) if isinstance(part.echo, dict) else None
    return item if isinstance(item, dict) else None
