"""An agent of Pydantic AI with a scripted model: the calls of each step, then a text with the results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.toolsets import AbstractToolset

PAY = ToolCallPart("pay", {"amount": 3}, "call_0")


def scripted(*steps: Sequence[ToolCallPart]) -> FunctionModel:
    """Step by step, these calls; afterwards a text with all results."""

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        taken = sum(isinstance(message, ModelResponse) for message in messages)
        if taken < len(steps):
            return ModelResponse(parts=list(steps[taken]))
        return ModelResponse(parts=[TextPart(" | ".join(results_in(messages)))])

    return FunctionModel(answer)


def results_in(messages: Sequence[ModelMessage]) -> list[str]:
    """As the model reads them, errors marked."""
    parts = [part for message in messages if isinstance(message, ModelRequest) for part in message.parts]
    returned = [part for part in parts if isinstance(part, ToolReturnPart)]
    return [
        ("" if part.outcome == "success" else f"{part.outcome}: ")
        + part.model_response_str(wrap_if_error=False)
        for part in returned
    ]


def make_agent(
    toolset: AbstractToolset[Any], *steps: Sequence[ToolCallPart]
) -> Agent[None, str | DeferredToolRequests]:
    return Agent(scripted(*steps), toolsets=[toolset], output_type=[str, DeferredToolRequests])
