"""An agent of Pydantic AI pays an invoice once a person has approved it.

Lines that far hands add or change are marked with `+`.
"""

from __future__ import annotations

import asyncio

from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from examples.bridges.hands import approve_next, hands, paid  # + your own: hands = create_app(toolbox, …)
from farhand.bridges.pydantic_ai import FarhandToolset, hands_results  # +


def think(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Instead of a real model: pays, then reports the result."""
    last = messages[-1].parts[-1]
    if isinstance(last, ToolReturnPart):
        return ModelResponse(parts=[TextPart(f"It says: {last.content}.")])
    return ModelResponse(parts=[ToolCallPart("pay", {"amount": 3})])


agent = Agent(
    FunctionModel(think),
    output_type=[str, DeferredToolRequests],
    toolsets=[FarhandToolset(hands, thread="invoices", hold_for=0.2)],  # +
)


async def main() -> None:
    async with hands:  # + or serve or mount it
        parked = await agent.run("Pay the invoice")
        assert isinstance(parked.output, DeferredToolRequests), "nobody approved it within 0.2 s"
        await approve_next(hands)
        results = await hands_results(hands, parked.output)  # +
        done = await agent.run(message_history=parked.all_messages(), deferred_tool_results=results)
    assert done.output == "It says: paid 3 euros."
    assert paid == [3]


if __name__ == "__main__":
    asyncio.run(main())
