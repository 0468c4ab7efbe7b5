"""Creates any number of waiting calls: their threads are written as parked runs would have left them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from bench.synthetic_run import SyntheticRun
from farhand.agent.service import AgentService
from farhand.core.decide.decision import Decision
from farhand.core.decide.opening import Opening
from farhand.core.principal import Owner
from farhand.core.state import ThreadState
from farhand.core.tool import Tool

OWNER = Owner("tenanter", "answerer")
"""The owner as whom the load client answers."""

INPUT: dict[str, object] = {"url": "https://example.org/report"}
AT_ONCE = 64


@dataclass(frozen=True)
class Pending:
    """`each` is the number of calls of one run to be answered. With `beside`, one more stays open, so that
    the answers do not resume the run, whose cost would be added."""

    service: AgentService
    tool: Tool
    each: int = 16
    beside: bool = True
    due_at: float | None = None
    """When they begin to expire, by the store's clock: evenly over one second."""

    async def open(self, count: int) -> list[str]:
        """Their ids."""
        runs = (count + self.each - 1) // self.each
        opened: list[str] = []
        for start in range(0, runs, AT_ONCE):
            some = [self._open_run(number, runs) for number in range(start, min(start + AT_ONCE, runs))]
            opened += [call_id for ids in await asyncio.gather(*some) for call_id in ids]
        return opened[:count]

    async def _open_run(self, number: int, runs: int) -> list[str]:
        log = self.service.log
        within = None if self.due_at is None else self.due_at - log.now() + number / runs
        openings = [self._opening(within) for _ in range(self.each + int(self.beside))]
        run_id = self.service.clock.fresh("run")
        await log.decide(
            OWNER, f"pending-{number}", lambda thread, now: self._parked(thread, run_id, openings, now)
        )
        return [opening.call_id for opening in openings[: self.each]]

    def _opening(self, within: float | None) -> Opening:
        return Opening(
            call_id=self.service.clock.fresh("call"),
            tool=self.tool,
            input=INPUT,
            step=1,
            timeout_sec=within,
        )

    def _parked(
        self, thread: ThreadState, run_id: str, openings: list[Opening], now: float
    ) -> Decision[None]:
        played = SyntheticRun(thread, now, self.service.settings)
        played.begin(run_id, f"{thread.thread_id}-m", "trip")
        played.park(openings)
        return played.decision()
