"""The assistants at Backboard that stand for an agent: one for each set of tools and instructions it has had.

An assistant is never changed: whoever else has the same key and name, its threads keep their tools and words.
"""

from __future__ import annotations

import asyncio

from farhand.core.outcome import digest
from farhand.models.backboard.client import Client, Event
from farhand.models.telling import Telling

_MARK = 16
_KEPT = 1_000


class Assistants:
    def __init__(self, name: str) -> None:
        self._name = name
        self._ids: dict[str, str] = {}
        self._making = asyncio.Lock()

    async def fitting(self, client: Client, telling: Telling) -> str:
        """The id of the one with these tools and instructions: known, found or made."""
        tools, instructions = tools_of(telling), telling.prompt.instructions
        name = f"{self._name} {digest((tools, instructions))[-_MARK:]}"
        async with self._making:
            if name not in self._ids:
                found = await client.list_assistants(name=name)
                there = next((each for each in found if each.name == name), None)
                made = there or await client.create_assistant(
                    name=name, system_prompt=instructions, tools=tools
                )
                self._ids[name] = str(made.assistant_id)
            while len(self._ids) > _KEPT:
                del self._ids[next(iter(self._ids))]
            return self._ids[name]

    def forget(self) -> None:
        """They may be gone from Backboard: the next answer looks for them again."""
        self._ids.clear()


def tools_of(telling: Telling) -> list[Event]:
    return [
        {
            "type": "function",
            "function": {
                "name": offer.name,
                "description": offer.description,
                "parameters": {"properties": {}, **offer.schema},
            },
        }
        for offer in telling.offers()
    ]
