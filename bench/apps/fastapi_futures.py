"""What people write: FastAPI, a pydantic model for each body, a dictionary of futures. Nothing durable."""

from __future__ import annotations

import asyncio
import json
import sys
import uuid
from collections.abc import AsyncIterator

import uvicorn
from fastapi import FastAPI, HTTPException
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

from bench.words import CHAT, words


class Part(BaseModel):
    type: str
    text: str = ""


class Message(BaseModel):
    id: str
    role: str
    parts: list[Part]


class Chat(BaseModel):
    id: str
    messages: list[Message]


class Ack(BaseModel):
    toolCallId: str  # noqa: N815
    status: str
    output: object = None


app = FastAPI()
waiting: dict[str, asyncio.Future[object]] = {}


def frame(chunk: dict[str, object]) -> str:
    return f"data: {json.dumps(chunk, separators=(',', ':'))}\n\n"


@app.post("/api/chat")
async def chat(body: Chat) -> StreamingResponse:
    return StreamingResponse(answer(body.messages[-1].parts[0].text), media_type="text/event-stream")


@app.post("/api/tools/ack")
async def ack(body: Ack) -> dict[str, bool]:
    future = waiting.pop(body.toolCallId, None)
    if future is None:
        raise HTTPException(404)
    future.set_result(body.output)
    return {"ok": True}


async def answer(text: str) -> AsyncIterator[str]:
    yield frame({"type": "start", "messageId": str(uuid.uuid4())})
    kind, _, count = text.partition(" ")
    if kind == CHAT:
        async for word in words(text):
            yield frame({"type": "text-delta", "id": "1", "delta": word})
    elif kind != "trip":
        for number in range(int(count)):
            yield frame({"type": "text-delta", "id": "1", "delta": f"word {number} "})
            await asyncio.sleep(0)
    else:
        call_id = f"call_{uuid.uuid4().hex}"
        waiting[call_id] = asyncio.get_running_loop().create_future()
        asked = {"toolName": "open_url", "input": {"url": "https://example.org/report"}}
        yield frame({"type": "tool-input-start", "toolCallId": call_id, "toolName": "open_url"})
        yield frame({"type": "tool-input-available", "toolCallId": call_id, **asked})
        output = await waiting[call_id]
        yield frame({"type": "tool-output-available", "toolCallId": call_id, "output": output})
        yield frame({"type": "text-start", "id": "1"})
        yield frame({"type": "text-delta", "id": "1", "delta": f"The page said {output}."})
        yield frame({"type": "text-end", "id": "1"})
    yield frame({"type": "finish"})
    yield "data: [DONE]\n\n"


if __name__ == "__main__":
    uvicorn.run(app, port=int(sys.argv[-1]), lifespan="off", log_config=None, access_log=False)
