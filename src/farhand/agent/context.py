"""What every run works with. Created once, when farhand is assembled."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from farhand.agent.files import Files
from farhand.agent.offered_tools import (
    ChooseText,
    ChooseTools,
    OfferedTools,
    RequestTools,
    choose_text,
    choose_toolbox,
)
from farhand.agent.quotas import Quotas
from farhand.calls.desk import Desk
from farhand.calls.limits import OpenCallLimit
from farhand.clock import Clock
from farhand.core.outcome import Failure, Success
from farhand.core.settings import Settings
from farhand.core.tool import Tool
from farhand.errors import ModelFault
from farhand.eventlog.log import EventLog
from farhand.eventlog.writer import Tick
from farhand.models.base import Model
from farhand.tools.context import Context
from farhand.tools.toolbox import Toolbox, ToolSource

LOG_HAS_DETAILS = "The server's log has the details."


async def _always(since: float, look: Callable[[], Awaitable[bool]]) -> bool:
    return True


@dataclass(frozen=True)
class AgentContext:
    log: EventLog
    desk: Desk
    clock: Clock
    model: Model
    toolbox: Toolbox
    settings: Settings
    open_call_limit: OpenCallLimit
    files: Files
    quotas: Quotas
    tick: Tick
    """Stores what the models of all runs write."""
    instructions: str | ChooseText = ""
    chat_title: Callable[[str], str] | None = None
    """Names a chat by its first message."""
    choose_tools: ChooseTools | None = None
    """Chooses tools for the person a run works for, in addition to the toolbox."""
    remember: Callable[[Toolbox], None] = lambda toolbox: None
    """Called with the tools that were chosen for a person."""
    request_tools: RequestTools | None = None
    is_sure: Callable[[float], bool] = lambda since: True
    """Whether no other process can have taken over what this one has held since this time."""
    still_holds: Callable[[float, Callable[[], Awaitable[bool]]], Awaitable[bool]] = _always
    """Whether this process still holds what it held at this time: another one may have taken it over while
    this one, or its store, was suspended. The function that it gets looks in the log."""
    shows_tool_errors: bool = True
    """Whether people in the chat see the error that a server tool raised, and are referred to the log if the
    model fails."""
    sources: tuple[ToolSource, ...] = ()
    """Tools that come and go with their registered clients. They cannot shadow the toolbox."""

    async def offered(self, context: Context, request_tools: Sequence[str] = ()) -> OfferedTools:
        """The tools that the model, or a call, may use for this person. `request_tools` has the versions of
        the tools that the request contained."""
        toolbox = self.toolbox
        if self.choose_tools is not None:
            toolbox = await choose_toolbox(toolbox, self.choose_tools, context)
            self.remember(toolbox)
        known = await self._find_request_tools(context, request_tools) if request_tools else ()
        return OfferedTools(context.owner, toolbox, self.sources, known, self.request_tools)

    async def _find_request_tools(self, context: Context, versions: Sequence[str]) -> list[Tool]:
        tools = [await self.log.get_tool(version) for version in versions]
        if None in tools:
            # a run continues before its start is durable; the tools are stored with it
            await self.log.read(context.owner, context.thread_id, lambda thread: None)
            tools = [await self.log.get_tool(version) for version in versions]
        return [tool for tool in tools if tool is not None]

    async def instructions_for(self, context: Context) -> str:
        said = self.instructions
        return said if isinstance(said, str) else await choose_text(said, context)

    def recorded(self, outcome: Success | Failure) -> Success | Failure:
        """The outcome of a server tool as it is stored."""
        if isinstance(outcome, Failure) and self.shows_tool_errors:
            return Failure(outcome.error)
        return outcome

    def public_text(self, fault: ModelFault) -> str:
        """What people in the chat see of the fault. During development they can read the server's log."""
        return f"{fault.public} {LOG_HAS_DETAILS}" if self.shows_tool_errors else fault.public
