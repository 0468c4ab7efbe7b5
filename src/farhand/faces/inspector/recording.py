"""Gathers what a run was, for the test that plays it again: read through the agent, and masked."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from farhand.agent.farhand import Farhand
from farhand.core.call import Call
from farhand.core.event import CallRejected, Entry
from farhand.core.run import Run
from farhand.core.thread import AssistantMessage, Message, text_of
from farhand.core.tool import Tool
from farhand.faces.inspector.as_test import Recording
from farhand.faces.inspector.journal import masked_call, masked_entries, masked_step
from farhand.faces.inspector.listing import Listing
from farhand.faces.inspector.masks import masked_text


async def recording_of(farhand: Farhand, run: Run) -> Recording:
    entries = await farhand.journal(run)
    calls = await farhand.calls(run)
    messages = await farhand.messages(run.owner, run.thread_id)
    tools: dict[str, Tool] = {}
    for call in calls:
        # the newest of a tool that changed in mid-run
        tool = await farhand.tool_of(call)
        if tool is not None:
            tools[tool.name] = tool
    prompt = await Listing(farhand).prompt(run)
    known = _Known(run, prompt, messages, calls, list(tools.values()), entries)
    # in a thread: what is masked may be long
    return await asyncio.to_thread(_masked, known)


class _Known(NamedTuple):
    """As it is stored."""

    run: Run
    prompt: str
    messages: Sequence[Message]
    calls: Sequence[Call]
    tools: list[Tool]
    entries: Sequence[Entry]


def _masked(known: _Known) -> Recording:
    entries = masked_entries(known.entries)
    rejected = {entry.event.call_id for entry in entries if isinstance(entry.event, CallRejected)}
    prompt = masked_text(known.prompt) or "Go on."
    steps = [
        masked_step(message)
        for message in known.messages
        if isinstance(message, AssistantMessage) and message.run_id == known.run.run_id
    ]
    return Recording(
        title=prompt,
        prompt=prompt,
        state=known.run.state,
        steps=steps,
        calls=[masked_call(call) for call in known.calls if call.call_id not in rejected],
        tools=known.tools,
        entries=entries,
        answer="".join(text_of(step) for step in steps),
    )
