"""A program that calls tools without a run during a fault run.

With a request id it asks until it is answered, and then again. Without one it asks once, and sees to it
that the call does not stay open. What needs a yes or a page is answered as a person would.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import NamedTuple

import httpx2

from farhand.core.outcome import Success
from tests.chaos.history import Answered
from tests.chaos.storm.sender import SOON_SEC, Json, Progress, Sender

ANSWERED_WITHIN_SEC = 300.0
INPUTS = {"charge": "account", "look_up": "name", "delete_file": "path", "open_page": "address"}
"""What each tool calls its subject; a registered client's tool calls it `subject`."""


class Direct(NamedTuple):
    """One call: which tool, for what, and whether it can be asked for again."""

    tool: str
    subject: str
    is_keyed: bool

    @property
    def key(self) -> str:
        return f"{self.tool}:{self.subject}"

    @property
    def body(self) -> Json:
        input = {INPUTS.get(self.tool, "subject"): self.subject}
        named = {"requestID": self.subject} if self.is_keyed else {}
        return {"toolID": self.tool, "input": input, "sessionID": self.subject, **named}


class Caller:
    def __init__(self, direct: Direct, client: Callable[[], httpx2.AsyncClient], progress: Progress) -> None:
        self.direct = direct
        self.sender = Sender(client, progress)
        self.answers: list[Answered] = []

    async def call(self) -> None:
        async with (
            self.sender.progress.ends_within(ANSWERED_WITHIN_SEC, self.direct.key),
            asyncio.TaskGroup() as group,
        ):
            answering = group.create_task(self._answer())
            await self._ask()
            # another process says it: there is no event to wait for
            while self.direct.is_keyed and not self.answers:
                await asyncio.sleep(SOON_SEC)
                await self._ask()
            if self.direct.is_keyed:
                await self._ask()
            await self._until_closed()
            answering.cancel()
        self.sender.progress.add(finished=1)

    async def _ask(self) -> None:
        try:
            response = await self.sender.client().post("/client-tools/execute", json=self.direct.body)
        except httpx2.HTTPError:
            return
        if response.status_code in (409, 429, 503) or (response.status_code == 404 and self._is_client):
            # in progress, not now, or its client is away
            return
        assert response.status_code in (200, 504), (response.status_code, response.text)
        told = response.json()
        is_success = told.get("status") == "success"
        self.answers.append(Answered(self.direct.key, is_success, told["output"] if is_success else None))
        self.sender.progress.add(told=1)

    @property
    def _is_client(self) -> bool:
        return self.direct.tool.startswith("client_")

    async def _open_calls(self) -> list[Json] | None:
        """None if nobody could tell."""
        try:
            response = await self.sender.client().get(f"/api/chat/{self.direct.subject}")
        except httpx2.HTTPError:
            return None
        if response.status_code == 404:
            return []
        if response.status_code in (429, 503):
            return None
        assert response.status_code == 200, (response.status_code, response.text)
        return list(response.json()["openCalls"])

    async def _until_closed(self) -> None:
        while await self._open_calls() != []:  # noqa: ASYNC110
            await asyncio.sleep(10 * SOON_SEC)

    async def _answer(self) -> None:
        """What a person has to do with it, once it is there."""
        if self.direct.tool not in ("delete_file", "open_page"):
            return
        while not (calls := await self._open_calls()):  # noqa: ASYNC110
            await asyncio.sleep(5 * SOON_SEC)
        call_id = calls[0]["callId"]
        if self.direct.tool == "open_page":
            await self.sender.bring(call_id, Success({"viewKey": "v1"}))
        else:
            approval_id = calls[0].get("approvalId")
            if approval_id is not None:
                await self.sender.answer(call_id, approval_id, approved=True)


def any_direct(number: int, hands: int, dice: random.Random) -> Direct:
    tools = [*INPUTS, f"client_hand{dice.randrange(hands)}_work"]
    return Direct(dice.choice(tools), f"direct-{number}", is_keyed=dice.random() < 0.7)
