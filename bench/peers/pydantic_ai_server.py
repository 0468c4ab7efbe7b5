"""Pydantic AI with its AI SDK adapter: the response ends with the call, the next message brings the result.

The client has the history, so nothing is stored here. Runs in an environment of its own.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator

import uvicorn
from fastapi import FastAPI
from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.messages import ModelMessage, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ExternalToolset
from pydantic_ai.ui.vercel_ai import VercelAIAdapter
from starlette.requests import Request
from starlette.responses import Response

from bench.words import CHAT, words

INPUT = {"url": "https://example.org/report"}


async def model(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
    for part in messages[-1].parts:
        if isinstance(part, ToolReturnPart):
            yield f"The page said {part.content}."
            return
    said = _said(messages)
    if said.startswith(CHAT):
        async for word in words(said):
            yield word
        return
    yield {0: DeltaToolCall(name="open_url", json_args=json.dumps(INPUT), tool_call_id="call_0")}


def _said(messages: list[ModelMessage]) -> str:
    part = messages[-1].parts[-1]
    content = part.content if isinstance(part, UserPromptPart) else ""
    return content if isinstance(content, str) else str(content[0])


schema = {"type": "object", "properties": {"url": {"type": "string"}}, "required": ["url"]}
tools = ExternalToolset([ToolDefinition(name="open_url", parameters_json_schema=schema)])
agent = Agent(FunctionModel(stream_function=model), toolsets=[tools], output_type=[str, DeferredToolRequests])
app = FastAPI()


@app.post("/api/chat")
async def chat(request: Request) -> Response:
    return await VercelAIAdapter.dispatch_request(request, agent=agent)


if __name__ == "__main__":
    uvicorn.run(app, port=int(sys.argv[-1]), log_config=None, access_log=False)
