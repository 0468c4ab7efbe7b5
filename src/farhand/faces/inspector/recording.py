"""Gathers what a run was, for the test that plays it again: read through the agent, and masked."""

from __future__ import annotations

from farhand.agent.farhand import Farhand
from farhand.core.event import CallRejected
from farhand.core.run import Run
from farhand.core.thread import AssistantMessage, text_of
from farhand.core.tool import Tool
from farhand.faces.inspector.as_test import Recording
from farhand.faces.inspector.journal import masked_call, masked_entries, masked_step
from farhand.faces.inspector.listing import Listing
from farhand.faces.inspector.masks import masked_text


async def recording_of(farhand: Farhand, run: Run) -> Recording:
    entries = masked_entries(await farhand.journal(run))
    rejected = {entry.event.call_id for entry in entries if isinstance(entry.event, CallRejected)}
    calls = [masked_call(call) for call in await farhand.calls(run)]
    messages = await farhand.messages(run.owner, run.thread_id)
    steps = [
        masked_step(message)
        for message in messages
        if isinstance(message, AssistantMessage) and message.run_id == run.run_id
    ]
    tools: dict[str, Tool] = {}
    for call in calls:
        # the newest of a tool that changed in mid-run
        tool = await farhand.tool_of(call)
        if tool is not None:
            tools[tool.name] = tool
    prompt = masked_text(await Listing(farhand).prompt(run)) or "Go on."
    return Recording(
        title=prompt,
        prompt=prompt,
        state=run.state,
        steps=steps,
        calls=[call for call in calls if call.call_id not in rejected],
        tools=list(tools.values()),
        entries=entries,
        answer="".join(text_of(step) for step in steps),
    )
