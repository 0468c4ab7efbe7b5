"""A provider that streams OpenAI's Chat Completions at a steady pace, as cheaply as possible."""

from __future__ import annotations

import sys

import msgspec
import uvicorn
from starlette.types import Receive, Scope, Send

from bench.words import words

HEAD = [(b"content-type", b"text/event-stream")]
CHUNK = (
    b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1794849144,"model":"m",'
    b'"system_fingerprint":"fp","choices":[{"index":0,"delta":{%b},"logprobs":null,"finish_reason":%b}]}\n\n'
)


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] != "http":
        return
    text = _last_said(await _body(receive))
    await send({"type": "http.response.start", "status": 200, "headers": HEAD})
    if text is None:
        await send({"type": "http.response.body", "body": b"{}"})
        return
    await _write(send, CHUNK % (b'"role":"assistant","content":""', b"null"))
    async for word in words(text):
        await _write(send, CHUNK % (b'"content":' + msgspec.json.encode(word), b"null"))
    last = CHUNK % (b"", b'"stop"') + b"data: [DONE]\n\n"
    await send({"type": "http.response.body", "body": last})


async def _write(send: Send, body: bytes) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": True})


async def _body(receive: Receive) -> bytes:
    body: bytes = b""
    while True:
        message = await receive()
        body += bytes(message.get("body", b""))
        if not message.get("more_body"):
            return body


def _last_said(body: bytes) -> str | None:
    """None for the request that checks whether the server is ready."""
    messages = msgspec.json.decode(body).get("messages")
    if not messages:
        return None
    said = messages[-1]["content"]
    text: str = said if isinstance(said, str) else said[0]["text"]
    return text


if __name__ == "__main__":
    uvicorn.run(app, port=int(sys.argv[-1]), lifespan="off", log_config=None, access_log=False)
