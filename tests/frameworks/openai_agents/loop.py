"""An agent of the OpenAI Agents SDK with a scripted model; the state of a paused run is kept in a file."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Self, cast

from agents import Agent, ModelResponse, RunConfig, Runner, RunResult, RunState, Tool, Usage, function_tool
from agents.items import TResponseInputItem, TResponseStreamEvent
from agents.models.interface import Model
from agents.testing import assistant_message, function_call

from farhand.bridges.openai_agents import approved, farhand_tools
from tests.frameworks.loop import Loop, Steps, next_step

# nothing is sent to anyone
OFFLINE = RunConfig(tracing_disabled=True)


class Scripted(Model):
    """Step by step its calls; afterwards a text with all results."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self.tools: list[Tool] = []

    # Any: what the SDK tells every model
    async def get_response(
        self, system_instructions: str | None, input: str | list[TResponseInputItem], *rest: Any, **more: Any
    ) -> ModelResponse:
        self.tools = rest[1] if len(rest) > 1 else more["tools"]
        items = cast("list[Mapping[str, Any]]", [] if isinstance(input, str) else input)
        results = [str(item["output"]) for item in items if item.get("type") == "function_call_output"]
        step = next_step(self._steps, len(results))
        calls = [function_call(ask.tool, ask.input, call_id=ask.call_id) for ask in step or ()]
        return ModelResponse(calls or [assistant_message(" | ".join(results))], Usage(requests=1), None)

    def stream_response(self, *given: Any, **options: Any) -> AsyncIterator[TResponseStreamEvent]:
        raise AssertionError("these runs are not streamed")


class AgentsLoop(Loop):
    # the SDK has texts alone
    failed = ""
    tools: list[Tool] | None = None

    def charging(self, charge: Callable[[int], str]) -> Self:
        self.tools = [approved(self.hands, function_tool(charge), thread="t", hold_for=self.hold_for)]
        return self

    def agent(self, thread: str) -> Agent[None]:
        tools = self.tools or [*farhand_tools(self.hands, thread=thread, hold_for=self.hold_for)]
        return Agent("clerk", model=Scripted(self.steps), tools=tools)

    async def run(self, thread: str = "t") -> str | None:
        return self._keep(thread, await Runner.run(self.agent(thread), "Go", run_config=OFFLINE))

    async def resume(self, thread: str = "t") -> str | None:
        agent = self.agent(thread)
        stored = (self.folder / f"{thread}.json").read_text()
        state = await RunState.from_json(agent, json.loads(stored))
        for interruption in state.get_interruptions():
            state.approve(interruption)
        return self._keep(thread, await Runner.run(agent, state, run_config=OFFLINE))

    def _keep(self, thread: str, result: RunResult) -> str | None:
        if not result.interruptions:
            return str(result.final_output)
        (self.folder / f"{thread}.json").write_text(json.dumps(result.to_state().to_json()))
        return None


LOOP = AgentsLoop
