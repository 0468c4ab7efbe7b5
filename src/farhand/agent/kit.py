"""What every run works with. Made once, by whoever assembles farhand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from farhand.agent.files import Files
from farhand.agent.leases import lease_sec
from farhand.agent.quotas import Quotas
from farhand.calls.desk import Desk
from farhand.calls.room import Room
from farhand.clock import Clock
from farhand.core.outcome import Failure, Success
from farhand.core.principal import Owner
from farhand.core.settings import Settings
from farhand.core.tool import Tool
from farhand.models.base import Model
from farhand.store.base import Store
from farhand.tools.toolbox import Toolbox, ToolSource


@dataclass(frozen=True)
class Kit:
    store: Store
    desk: Desk
    clock: Clock
    model: Model
    toolbox: Toolbox
    settings: Settings
    room: Room
    files: Files
    quotas: Quotas
    instructions: str = ""
    shows_tool_errors: bool = True
    """Whether people who chat are shown what a server tool raised."""
    sources: tuple[ToolSource, ...] = ()
    """Tools that come and go with those who registered them. They can't shadow the toolbox."""

    @cached_property
    def lease_sec(self) -> float:
        """For how long a claim on a run holds unless it is renewed."""
        return lease_sec(self.store, self.settings.patience)

    def tools(self, owner: Owner) -> Sequence[Tool]:
        """What a run of this owner is offered."""
        own = self.toolbox.tools()
        for source in self.sources:
            offered = source.tools(owner)
            if offered:
                own += [tool for tool in offered if tool.name not in self.toolbox]
        return own

    def tool(self, owner: Owner, name: str) -> Tool | None:
        own = self.toolbox.get(name)
        if own is not None:
            return own
        found = (source.get(owner, name) for source in self.sources)
        return next((tool for tool in found if tool is not None), None)

    def recorded(self, outcome: Success | Failure) -> Success | Failure:
        """The outcome of a server tool as it is stored."""
        if isinstance(outcome, Failure) and self.shows_tool_errors:
            return Failure(outcome.error)
        return outcome

    def asks(self, owner: Owner, tool: Tool, input: dict[str, object]) -> bool:
        """Whether a person must say yes to this input first. In doubt: yes."""
        declared = self.toolbox.declared(tool.name)
        if declared is not None:
            return declared.asks(input)
        home = next((source for source in self.sources if source.get(owner, tool.name)), None)
        return tool.may_ask if home is None else home.asks(tool, input)
