"""The assistant at Backboard that stands for an agent: made once, kept in step with its tools and words."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from farhand.core.outcome import digest
from farhand.models.backboard.client import Client, Event
from farhand.models.telling import Telling


class Assistant:
    """One for all threads. Whoever starts an answer holds it, so that nobody changes the tools under them."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._id: str | None = None
        self._offers = ""
        self._starting = 0
        self._turn = asyncio.Condition()

    @asynccontextmanager
    async def in_step(self, client: Client, telling: Telling) -> AsyncIterator[str]:
        """Its id, with these tools for as long as this lasts: until the answer has begun."""
        tools, instructions = tools_of(telling), telling.prompt.instructions
        offers = digest((tools, instructions))
        async with self._turn:
            await self._turn.wait_for(lambda: self._starting == 0 or self._offers == offers)
            if self._id is None or self._offers != offers:
                self._id = await self._bring_up(client, tools, instructions)
                self._offers = offers
            self._starting += 1
            assistant = self._id
        try:
            yield assistant
        finally:
            async with self._turn:
                self._starting -= 1
                self._turn.notify_all()

    def forget(self) -> None:
        """It may be gone from Backboard: the next answer looks for it again."""
        self._id = None

    async def _bring_up(self, client: Client, tools: Sequence[Event], instructions: str) -> str:
        known = self._id
        if known is None:
            found = await client.list_assistants(name=self._name)
            known = str(found[0].assistant_id) if found else None
        if known is None:
            made = await client.create_assistant(name=self._name, system_prompt=instructions, tools=tools)
            return str(made.assistant_id)
        # what Backboard tells of an assistant is not all it was given, so it is given everything again
        await client.update_assistant(known, system_prompt=instructions, tools=tools)
        return known


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
