"""The hands that every bridge is tested with, and the people who answer.

`pay` notes each execution in a file, so that an effect is counted across processes and restarts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from farhand import Answer, Owner, Settings, Success, Toolbox, create_app
from farhand.core.call import Call, Phase
from farhand.core.principal import LOCAL
from farhand.core.result import Accepted, Result

PATIENCE_SEC = 30.0
YES = Answer(approved=True)


class Stage:
    """`async with Stage("memory:", folder) as stage:` serves `stage.hands`."""

    def __init__(self, store: str, folder: Path) -> None:
        self.effects = folder / "effects.txt"
        self.hands = create_app(make_toolbox(self.effects), store=store, settings=Settings())

    async def __aenter__(self) -> Self:
        await self.hands.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.hands.drain()
        await self.hands.stop()

    @property
    def paid(self) -> list[str]:
        """What was really paid, line by line."""
        return self.effects.read_text().splitlines() if self.effects.exists() else []

    async def open_calls(self, count: int = 1, owner: Owner = LOCAL) -> list[Call]:
        """The calls that wait for a person or a page, once there are so many; by thread and input."""
        waiting: list[Call] = []

        async def are_there() -> bool:
            nonlocal waiting
            waiting = [call for call in await self.hands.service.log.open_calls(owner) if call.blocks]
            return len(waiting) >= count

        await comes_true(are_there)
        assert len(waiting) == count, waiting
        return sorted(waiting, key=lambda call: (call.thread_id, repr(call.input)))

    async def no_open_call(self, owner: Owner = LOCAL) -> None:
        await comes_true(lambda: self._is_quiet(owner))

    async def _is_quiet(self, owner: Owner) -> bool:
        return not await self.hands.service.log.open_calls(owner)

    async def approve(self, call: Call, answer: Answer = YES) -> None:
        """A person's yes, no or edit in the inbox."""
        assert call.approval is not None
        assert call.phase is Phase.ASKING
        receipt = await self.hands.service.desk.approve(call.owner, call.approval.approval_id, answer)
        assert isinstance(receipt, Accepted), receipt

    async def answer(self, call: Call, output: object) -> None:
        """A page executed the call."""
        receipt = await self.hands.service.desk.settle(
            call.owner, Result(call_id=call.call_id, outcome=Success(output))
        )
        assert isinstance(receipt, Accepted), receipt

    async def approve_next(self, answer: Answer = YES, *, count: int = 1) -> None:
        for call in await self.open_calls(count):
            await self.approve(call, answer)


def make_toolbox(effects: Path) -> Toolbox:
    toolbox = Toolbox()

    @toolbox.tool(needs_approval=True)
    def pay(amount: int) -> str:
        """Pay an invoice.

        Args:
            amount: In euros.
        """
        with effects.open("a") as file:
            file.write(f"paid {amount}\n")
        return f"paid {amount}"

    @toolbox.tool(executor="frontend")
    def open_url(url: str) -> dict[str, str]:
        """Open a page beside the chat.

        Args:
            url: The address.

        Returns:
            The address, and the key of the view.
        """
        raise AssertionError("never executed here")

    @toolbox.tool(executor="frontend", timeout_sec=1)
    def ask_quickly(question: str) -> str:
        """Ask the person, who has one second.

        Args:
            question: What to ask.

        Returns:
            The answer.
        """
        raise AssertionError("never executed here")

    return toolbox


async def comes_true(fact: Callable[[], Awaitable[bool]]) -> None:
    """Waits for a fact, with a generous bound."""
    async with asyncio.timeout(PATIENCE_SEC):
        # whatever brings the fact about knows nothing of this test
        while not await fact():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
