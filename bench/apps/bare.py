"""The ceiling: plain ASGI and a dictionary of futures. Nothing is durable, and there is no authentication.

It implements the part of the chat stream that a round trip needs. `/api/plain` is a minimal POST.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping

import msgspec
import uvicorn
from starlette.types import Receive, Scope, Send

from bench.dialects import PACE_SEC
from bench.words import CHAT, words

encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder().decode

STREAM = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache")]
JSON = [(b"content-type", b"application/json"), (b"content-length", b"11")]
OK = b'{"ok":true}'
DONE = b'data: {"type":"finish"}\n\ndata: [DONE]\n\n'

waiting: dict[str, asyncio.Future[object]] = {}


def frame(chunk: Mapping[str, object]) -> bytes:
    return b"data: " + encode(chunk) + b"\n\n"


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] != "http":
        return
    body = decode((await receive())["body"])
    match scope["path"]:
        case "/api/chat":
            await chat(body["messages"][-1]["parts"][0]["text"], send)
        case "/api/tools/ack":
            waiting.pop(body["toolCallId"]).set_result(body["output"])
            await reply(send)
        case _:
            await reply(send)


async def reply(send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": JSON})
    await send({"type": "http.response.body", "body": OK})


async def chat(text: str, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": STREAM})
    kind, _, count = text.partition(" ")
    if kind == "trip":
        await trip(send)
    elif kind == CHAT:
        async for word in words(text):
            await send_word(send, word)
    else:
        await deltas(send, int(count), PACE_SEC if kind == "paced" else 0)
    await send({"type": "http.response.body", "body": DONE, "more_body": False})


async def trip(send: Send) -> None:
    call_id = "call_" + os.urandom(16).hex()
    answer = waiting[call_id] = asyncio.get_running_loop().create_future()
    asked = {
        "type": "tool-input-available",
        "toolCallId": call_id,
        "toolName": "open_url",
        "input": {"url": "https://example.org/report"},
    }
    await send({"type": "http.response.body", "body": frame(asked), "more_body": True})
    text = f"The page said {await answer}."
    body = frame({"type": "text-delta", "id": "1", "delta": text})
    await send({"type": "http.response.body", "body": body, "more_body": True})


async def deltas(send: Send, count: int, pace: float) -> None:
    for number in range(count):
        await send_word(send, f"word {number} ")
        await asyncio.sleep(pace)


async def send_word(send: Send, word: str) -> None:
    body = frame({"type": "text-delta", "id": "1", "delta": word})
    await send({"type": "http.response.body", "body": body, "more_body": True})


if __name__ == "__main__":
    uvicorn.run(app, port=int(sys.argv[-1]), lifespan="off", log_config=None, access_log=False)
