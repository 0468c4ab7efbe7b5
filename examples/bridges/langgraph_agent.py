"""An agent of LangChain and LangGraph pays an invoice once a person has approved it.

Lines that far hands add or change are marked with `+`.
"""

from __future__ import annotations

import asyncio
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from examples.bridges.hands import approve_next, hands, paid  # + your own: hands = create_app(toolbox, …)
from farhand.bridges.langgraph import farhand_tools  # +


class Model(BaseChatModel):
    """Instead of a real model: pays, then reports the result."""

    @property
    def _llm_type(self) -> str:
        return "example"

    # Any, here and below: what LangChain passes to every model
    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *rest: Any, **options: Any) -> ChatResult:
        answer = AIMessage("", tool_calls=[{"name": "pay", "args": {"amount": 3}, "id": "call_0"}])
        if isinstance(messages[-1], ToolMessage):
            answer = AIMessage(f"It says: {messages[-1].text}.")
        return ChatResult(generations=[ChatGeneration(message=answer)])


agent = create_agent(
    Model(),
    farhand_tools(hands, hold_for=0.2),  # +
    checkpointer=InMemorySaver(),
)


async def main() -> None:
    config: RunnableConfig = {"configurable": {"thread_id": "invoices"}}
    async with hands:  # + or serve or mount it
        run = await agent.ainvoke({"messages": [HumanMessage("Pay the invoice")]}, config, version="v2")
        assert [each.value["tool"] for each in run.interrupts] == ["pay"], "nobody approved it within 0.2 s"
        await approve_next(hands)
        # more than once if the tool takes longer
        while run.interrupts:
            resume: Command[Any] = Command(resume={each.id: True for each in run.interrupts})
            run = await agent.ainvoke(resume, config, version="v2")
    assert run.value["messages"][-1].content == "It says: paid 3 euros."
    assert paid == [3]


if __name__ == "__main__":
    asyncio.run(main())
