"""A hand-written loop that parks in one process and continues in another: `python -m … FOLDER API
park|resume`."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from farhand.bridges.anthropic import anthropic_results
from farhand.bridges.openai import chat_results, responses_outputs
from tests.frameworks.processes import say
from tests.frameworks.stage import Stage

ARGUMENTS = json.dumps({"amount": 3})
FUNCTION = {"name": "pay", "arguments": ARGUMENTS}
# what the model said, as each library's `to_dict()` gives it
SAID: dict[str, dict[str, Any]] = {
    "anthropic": {
        "id": "msg_1",
        "stop_reason": "tool_use",
        "content": [{"type": "tool_use", "id": "toolu_1", "name": "pay", "input": {"amount": 3}}],
    },
    "responses": {
        "id": "resp_1",
        "status": "completed",
        "output": [{"type": "function_call", "call_id": "call_1", **FUNCTION}],
    },
    "chat": {
        "id": "chatcmpl_1",
        "choices": [
            {
                "finish_reason": "tool_calls",
                "message": {"tool_calls": [{"id": "call_1", "type": "function", "function": FUNCTION}]},
            }
        ],
    },
}
# Any: three libraries' shapes
RESULTS: dict[str, Any] = {
    "anthropic": anthropic_results,
    "responses": responses_outputs,
    "chat": chat_results,
}


async def main(folder: Path, api: str, what: str) -> None:
    async with Stage(f"sqlite:///{folder}/hands.db", folder) as stage:
        hold_for = 0.1 if what == "park" else None
        try:
            say(json.dumps(await RESULTS[api](stage.hands, SAID[api], thread="t", hold_for=hold_for)))
        except TimeoutError:
            say("parked")
            await asyncio.Event().wait()


asyncio.run(main(Path(sys.argv[1]), *sys.argv[2:]))
