"""Runs server tools and settles them like any other hand.

The intent is stored before the effect: a call is held by the server before its tool begins. What was in
flight when a process died is not run again, unless the tool is declared idempotent: the model is told that
nobody knows how it ended (`core/decide/calls.py`, `recovered`).
"""

from __future__ import annotations

import logging

from farhand.agent.context import AgentContext
from farhand.agent.offered_tools import OfferedTools
from farhand.agent.tool_link import ToolLink, context_of
from farhand.core.call import Call, Phase
from farhand.core.decide.calls import CHANGED
from farhand.core.decide.opening import BACKSTOP_SEC
from farhand.core.outcome import Outcome, TimedOut
from farhand.core.run import Run
from farhand.core.tool import Tool
from farhand.tools.context import acting
from farhand.tools.execute import to_failure

log = logging.getLogger("farhand.runs")


async def may_repeat(context: AgentContext, call: Call) -> bool:
    """Whether a tool that was in flight is run again: as it is declared now or, if the program chose it for a
    person, as it was when the call was opened."""
    declared = context.toolbox.declared(call.tool)
    if declared is not None:
        return declared.tool.idempotent
    tool = await context.log.get_tool(call.tool_version) if context.choose_tools is not None else None
    return tool is not None and tool.idempotent


async def run_tool(context: AgentContext, call: Call, run: Run | None = None) -> Outcome:
    """`run` is that of the call, which knows who began it; none for a direct call."""
    within = call.timeout_sec or context.settings.patience.server_tool
    if call.run_id is None and call.deadline is not None:
        # its time has been running since it was opened or approved, whenever the tool is started
        left = call.deadline - BACKSTOP_SEC - context.log.now()
        if left <= 0:
            return TimedOut(within)
        within = min(within, left)
    most = context.settings.limits.tool_output
    try:
        offered = await _offered_to(context, call, run)
    # the program's own function chooses the tools, and may raise anything
    except Exception as error:
        return context.recorded(to_failure(call.tool, error))
    tool = offered.toolbox.get(call.tool)
    if tool is None or tool.version != call.tool_version:
        # what is chosen now is not what was asked for, or approved
        return CHANGED
    link = ToolLink(context, call, offered)
    try:
        with acting(context_of(call, run, link)):
            outcome = await offered.toolbox.execute(
                call.tool, call.input, within=within, call_id=call.call_id, at_most=most
            )
    finally:
        await link.close()
    return context.recorded(outcome)


async def find_tool(context: AgentContext, call: Call, run: Run | None) -> Tool | None:
    """The tool as the person whom this call is executed for has it now; None if it cannot be had."""
    try:
        return (await _offered_to(context, call, run)).toolbox.get(call.tool)
    # as above
    except Exception:
        log.exception("the tools for call %s cannot be chosen", call.call_id)
        return None


async def _offered_to(context: AgentContext, call: Call, run: Run | None) -> OfferedTools:
    return await context.offered(context_of(call, run), () if run is None else run.brought)


async def execute(context: AgentContext, call: Call, run: Run) -> None:
    """Runs the tool of this call of a run, and settles it; not once another claim on the run exists."""
    held: Call | None = call
    if call.phase is Phase.READY:
        tool = await find_tool(context, call, run)
        held = await context.desk.start(call, tool, fence=run.fence)
    if held is not None:
        await context.desk.finish(held, await run_tool(context, held, run), fence=run.fence)
