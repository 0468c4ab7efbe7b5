"""The interface through which `laws.py` tests a framework's own agent, with a scripted model.

What a model does next depends on the results in its history alone, so a loop continues in another process.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar, NamedTuple, Self

from farhand.bridges.far_tools import Hands


class Ask(NamedTuple):
    """A call as the model asks for it."""

    tool: str
    input: dict[str, object]
    call_id: str


PAY = Ask("pay", {"amount": 3}, "call_0")
OPEN = Ask("open_url", {"url": "https://example.org"}, "call_1")
QUICK = Ask("ask_quickly", {"question": "Now?"}, "call_0")
CHARGE = Ask("charge", {"amount": 3}, "call_0")
Steps = Sequence[Sequence[Ask]]


class Loop(ABC):
    """With `hold_for`, what the framework keeps of a paused run is stored in the folder."""

    failed: ClassVar[str]
    """How the framework marks a failure for its model."""
    race_is_lost: ClassVar[tuple[type[Exception], ...]] = ()
    """What the framework raises in one of two resumes at once."""

    def __init__(self, hands: Hands, folder: Path, steps: Steps, *, hold_for: float | None = None) -> None:
        self.hands = hands
        self.folder = folder
        self.steps = steps
        self.hold_for = hold_for

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        return None

    @abstractmethod
    def charging(self, charge: Callable[[int], str]) -> Self:
        """The same with `approved(hands, charge)` for its tool."""

    @abstractmethod
    async def run(self, thread: str = "t") -> str | None:
        """What the model read of all its calls; None if the run is paused."""

    @abstractmethod
    async def resume(self, thread: str = "t") -> str | None: ...

    async def finish(self, thread: str = "t") -> str:
        """Resumes it until it ends."""
        while (told := await self.resume(thread)) is None:
            pass
        return told


def next_step(steps: Steps, results: int) -> Sequence[Ask] | None:
    """What a model asks for that has so many results; None when it is done."""
    for step in steps:
        if results == 0:
            return step
        results -= len(step)
    return None


def note_charges(effects: Path) -> Callable[[int], str]:
    """A tool of the framework's own, whose executions are counted across processes."""

    def charge(amount: int) -> str:
        """Charge the customer."""
        with effects.open("a") as file:
            file.write(f"charged {amount}\n")
        return f"charged {amount}"

    return charge
