"""An agent of LangChain's `create_agent` with a scripted model, and with LangGraph's SQLite saver."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import Any, Self

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.tools import BaseTool, tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command
from pydantic import Field

from farhand.bridges.langgraph import approved, farhand_tools
from tests.frameworks.loop import Loop, Steps, next_step


class Scripted(BaseChatModel):
    """Step by step its calls; afterwards a text with all results."""

    steps: Steps
    offered: list[dict[str, Any]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    # Any: tools in every form that LangChain takes
    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Runnable[Any, AIMessage]:
        self.offered = [convert_to_openai_tool(each)["function"] for each in tools]
        return self

    def _generate(self, messages: list[BaseMessage], *rest: Any, **options: Any) -> ChatResult:
        results = [message for message in messages if isinstance(message, ToolMessage)]
        step = next_step(self.steps, len(results))
        text = " | ".join(("failed: " if each.status == "error" else "") + each.text for each in results)
        calls = [{"name": ask.tool, "args": ask.input, "id": ask.call_id} for ask in step or ()]
        answer = AIMessage("" if step else text, tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=answer)])


class GraphLoop(Loop):
    failed = "failed: "
    tools: list[BaseTool] | None = None

    async def __aenter__(self) -> Self:
        self._opened = AsyncExitStack()
        saver: BaseCheckpointSaver[str] | None = None
        if self.hold_for is not None:
            stored = AsyncSqliteSaver.from_conn_string(str(self.folder / "graph.db"))
            saver = await self._opened.enter_async_context(stored)
        tools = self.tools or farhand_tools(self.hands, hold_for=self.hold_for)
        self.graph = create_agent(Scripted(steps=self.steps), tools, checkpointer=saver)
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._opened.aclose()

    def charging(self, charge: Callable[[int], str]) -> Self:
        self.tools = [approved(self.hands, tool(charge), hold_for=self.hold_for)]
        return self

    async def run(self, thread: str = "t") -> str | None:
        return await self._go({"messages": [("user", "Go")]}, thread)

    async def resume(self, thread: str = "t") -> str | None:
        state = await self.graph.aget_state(config(thread))
        return await self._go(Command(resume={each.id: True for each in state.interrupts}), thread)

    # Any: what a graph takes
    async def _go(self, given: Any, thread: str) -> str | None:
        result = await self.graph.ainvoke(given, config(thread), version="v2")
        return None if result.interrupts else str(result.value["messages"][-1].text)


def config(thread: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread}}


LOOP = GraphLoop
