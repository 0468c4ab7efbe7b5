"""Interrupts: what a person is asked before a run continues, an approval or the question of a tool. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from farhand.agent.post_content import question_id
from farhand.core.call import Call, Phase
from farhand.core.tool import Executor, Tool
from farhand.faces.agui.shapes import Interrupt, InterruptDetails
from farhand.faces.base import format_time

APPROVAL_SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "approved": {"type": "boolean"},
        "reason": {"type": "string"},
        "editedArgs": {"type": "object"},
    },
    "required": ["approved"],
}


def interrupt_of(call: Call, tool: Tool | None, *, with_expiry: bool) -> Interrupt:
    """`tool` is that of a question. Only a call that the client was shown is named by its id: a page's call
    is shown after its approval, and a tool's question never is."""
    is_approval = call.phase is Phase.ASKING
    is_shown = is_approval and call.executor is not Executor.FRONTEND and call.parent is None
    asked = Interrupt(question_id(call), "tool_call" if is_shown else "confirmation")
    asked.tool_call_id = call.call_id if is_shown else None
    asked.message = f"The assistant wants to use {call.tool}."
    asked.response_schema = APPROVAL_SCHEMA
    if not is_approval:
        asked.reason = "input_required"
        asked.message = _words(call.input)
        asked.response_schema = None if tool is None else tool.output_schema
    asked.expires_at = format_time(call.deadline) if with_expiry and call.deadline is not None else None
    asked.metadata = InterruptDetails(call.tool, call.input)
    return asked


def _words(input: Mapping[str, object]) -> str | None:
    """The question of a tool, if its input contains a text for it."""
    for name in ("message", "question", "prompt", "title"):
        if isinstance(text := input.get(name), str):
            return text
    return None
