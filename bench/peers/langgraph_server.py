"""LangGraph with an interrupt and its SQLite saver: the response ends with the call, the next one
resumes.

Runs in an environment of its own; the first argument is the database.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypedDict

import uvicorn
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt


class State(TypedDict, total=False):
    said: str
    output: str
    text: str


# async: a plain function would be sent to a thread for each step
async def ask(state: State) -> State:
    return {"output": interrupt({"tool": "open_url", "input": {"url": "https://example.org/report"}})}


async def report(state: State) -> State:
    return {"text": f"The page said {state['output']}."}


graph = StateGraph(State)
graph.add_node("ask", ask)
graph.add_node("report", report)
graph.add_edge(START, "ask")
graph.add_edge("ask", "report")
graph.add_edge("report", END)


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with AsyncSqliteSaver.from_conn_string(sys.argv[1]) as saver:
        # as durable as what it is compared with
        await saver.conn.execute("PRAGMA journal_mode = WAL")
        await saver.conn.execute("PRAGMA synchronous = FULL")
        app.state.graph = graph.compile(checkpointer=saver)
        yield


app = FastAPI(lifespan=lifespan)


@app.post("/api/chat")
async def chat(body: dict[str, Any]) -> StreamingResponse:
    last = body["messages"][-1]
    if last["role"] == "user":
        given: Any = {"said": last["parts"][0]["text"]}
    else:
        given = Command(resume=last["parts"][0]["output"])
    return StreamingResponse(answer(body["id"], given), media_type="text/event-stream")


def frame(chunk: dict[str, object]) -> str:
    return f"data: {json.dumps(chunk, separators=(',', ':'))}\n\n"


async def answer(thread: str, given: Any) -> AsyncIterator[str]:
    yield frame({"type": "start", "messageId": thread})
    config = {"configurable": {"thread_id": thread}}
    async for update in app.state.graph.astream(given, config, stream_mode="updates"):
        if "__interrupt__" in update:
            asked = update["__interrupt__"][0]
            named = {"toolCallId": asked.id, "toolName": "open_url"}
            yield frame({"type": "tool-input-available", **named, "input": asked.value["input"]})
        elif "report" in update:
            yield frame({"type": "text-delta", "id": "1", "delta": update["report"]["text"]})
    yield frame({"type": "finish"})
    yield "data: [DONE]\n\n"


if __name__ == "__main__":
    uvicorn.run(app, port=int(sys.argv[-1]), log_config=None, access_log=False)
