"""A program whose run is parked in one process and resumed in another: `python -m … FOLDER park|resume`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from pydantic import TypeAdapter
from pydantic_ai import DeferredToolRequests, ModelMessagesTypeAdapter

from farhand.bridges.pydantic_ai import FarhandToolset, hands_results
from tests.frameworks.processes import say
from tests.frameworks.pydantic_ai.scripted import PAY, make_agent
from tests.frameworks.stage import Stage

REQUESTS = TypeAdapter(DeferredToolRequests)


async def main(folder: Path, what: str) -> None:
    async with Stage(f"sqlite:///{folder}/hands.db", folder) as stage:
        agent = make_agent(FarhandToolset(stage.hands, thread="t", hold_for=0.1), [PAY])
        history, requests = folder / "history.json", folder / "requests.json"
        if what == "park":
            result = await agent.run("Pay")
            assert isinstance(result.output, DeferredToolRequests)
            history.write_bytes(result.all_messages_json())
            requests.write_bytes(REQUESTS.dump_json(result.output))
            say("parked")
            await asyncio.Event().wait()
        results = await hands_results(stage.hands, REQUESTS.validate_json(requests.read_bytes()))
        messages = ModelMessagesTypeAdapter.validate_json(history.read_bytes())
        resumed = await agent.run(message_history=messages, deferred_tool_results=results)
        say(str(resumed.output))


asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
