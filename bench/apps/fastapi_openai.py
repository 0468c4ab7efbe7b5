"""What people write: FastAPI, the provider's official library, a stream of its words. Nothing is kept.

The first argument is the provider's address.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator

import openai
import uvicorn
from fastapi import FastAPI
from fastapi.responses import StreamingResponse

from bench.apps.fastapi_futures import Chat

app = FastAPI()
# the first argument is the provider's address, the last one the port
client = openai.AsyncOpenAI(base_url=f"{sys.argv[1]}/v1", api_key="none")


@app.post("/api/chat")
async def chat(body: Chat) -> StreamingResponse:
    return StreamingResponse(answer(body.messages[-1].parts[0].text), media_type="text/event-stream")


async def answer(text: str) -> AsyncIterator[str]:
    stream = await client.chat.completions.create(
        model="m", stream=True, messages=[{"role": "user", "content": text}]
    )
    async for chunk in stream:
        if chunk.choices and (word := chunk.choices[0].delta.content):
            delta = {"type": "text-delta", "id": "1", "delta": word}
            yield f"data: {json.dumps(delta, separators=(',', ':'))}\n\n"
    yield "data: [DONE]\n\n"


if __name__ == "__main__":
    uvicorn.run(app, port=int(sys.argv[-1]), lifespan="off", log_config=None, access_log=False)
