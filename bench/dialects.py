"""The requests that the load client sends and the bytes that it looks for. Pure.

`held`: the stream stays open, and the result goes to its own endpoint; farhand and the references.
`turns`: the response ends with the call, and the result is in the next message; what peers offer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass

PACE_SEC = 0.06
"""Between two words of a `paced` answer: longer than words are joined for, so that each is sent alone."""

_CALL = re.compile(rb'"type":"tool-input-available","toolCallId":"([^"]+)"')


@dataclass(frozen=True)
class Dialect:
    ask: Callable[[str, int], bytes]
    """The message of a user for the trip with this number."""
    answer: Callable[[str, int, str], bytes]
    find_call: Callable[[bytearray], str | None]
    """The id of the call that waits for an answer, once it has arrived."""
    has_receipt: bool

    def value(self, user: str, trip: int) -> bytes:
        """What the final text must contain."""
        return _value(user, trip).encode()


def post_request(path: str, who: str, body: object) -> bytes:
    data = json.dumps(body, separators=(",", ":")).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {who}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n"
    )
    return head.encode() + data


def get_request(path: str, who: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {who}\r\n\r\n".encode()


def chat_request(who: str, thread: str, text: str, wait: str = "hold") -> bytes:
    message = {"id": f"{thread}-m", "role": "user", "parts": [{"type": "text", "text": text}]}
    body = {"id": thread, "trigger": "submit-message", "messages": [message], "wait": wait}
    return post_request("/api/chat", who, body)


def ack_request(who: str, call_id: str, output: object) -> bytes:
    return post_request("/api/tools/ack", who, {"toolCallId": call_id, "status": "success", "output": output})


def _value(user: str, trip: int) -> str:
    return f"value-{user}-{trip}-end"


def _ask_held(user: str, trip: int) -> bytes:
    return chat_request(user, f"t-{user}-{trip}", "trip")


def _answer_held(user: str, trip: int, call_id: str) -> bytes:
    return ack_request(user, call_id, _value(user, trip))


def _find_held(seen: bytearray) -> str | None:
    found = _CALL.search(seen)
    return None if found is None else found[1].decode()


def _ask_turn(user: str, trip: int) -> bytes:
    return chat_request(user, f"t-{user}-{trip}", "trip", "turn")


def _answer_turn(user: str, trip: int, call_id: str) -> bytes:
    thread = f"t-{user}-{trip}"
    asked = {"id": f"{thread}-m", "role": "user", "parts": [{"type": "text", "text": "trip"}]}
    part = {
        "type": "tool-open_url",
        "toolCallId": call_id,
        "state": "output-available",
        "input": {"url": "https://example.org/report"},
        "output": _value(user, trip),
    }
    answered = {"id": f"{thread}-a", "role": "assistant", "parts": [part]}
    body = {"id": thread, "trigger": "submit-message", "messages": [asked, answered]}
    return post_request("/api/chat", user, body)


def _find_in_turn(seen: bytearray) -> str | None:
    return _find_held(seen) if seen.endswith(b"0\r\n\r\n") else None


DIALECTS = {
    "held": Dialect(_ask_held, _answer_held, _find_held, has_receipt=True),
    "turns": Dialect(_ask_turn, _answer_turn, _find_in_turn, has_receipt=False),
}
