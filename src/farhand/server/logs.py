"""How a server process logs: to standard error, as text or as one JSON object per line; and its access log.

Owns the formats. Which part logs what is written down in docs/reference/logging.md.
"""

from __future__ import annotations

import json
import logging
import math
from datetime import UTC, datetime

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from farhand.clock import monotonic

access = logging.getLogger("farhand.access")

_TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {
    "message",
    "asctime",
    "taskName",
    "color_message",
}


def configure_logging(*, level: str, style: str, access_log: bool) -> None:
    """For a server process. A program that has handlers already keeps them, and its format."""
    root = logging.getLogger()
    if not root.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(JsonFormatter() if style == "json" else logging.Formatter(_TEXT))
        root.addHandler(handler)
        root.setLevel(logging.WARNING)
    logging.getLogger("farhand").setLevel(level.upper())
    if access_log:
        access.setLevel(logging.INFO)


class JsonFormatter(logging.Formatter):
    """One object per record, on one line, with the fields that the record brings and its exception."""

    def format(self, record: logging.LogRecord) -> str:
        written: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        for name, value in record.__dict__.items():
            if name not in _STANDARD:
                written[name] = _plain(value)
        if record.exc_info:
            written["exception"] = self.formatException(record.exc_info)
        if record.stack_info:
            written["stack"] = self.formatStack(record.stack_info)
        # half a character has no place in UTF-8, and some readers refuse its escape
        return json.dumps(written, ensure_ascii=False).encode(errors="replace").decode()


def _plain(value: object) -> object:
    if value is None or isinstance(value, str | bool | int):
        return value
    return value if isinstance(value, float) and math.isfinite(value) else str(value)


def with_access_log(app: ASGIApp) -> ASGIApp:
    """The app with one line for each request and each socket: never the query, which may hold a token."""

    async def logged(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await app(scope, receive, send)
            return
        began, seen = monotonic(), _Seen()
        try:
            await app(scope, receive, seen.watch(send))
        finally:
            _log(scope, seen, monotonic() - began)

    return logged


class _Seen:
    """What was answered: a status, or the code that closed a socket; and how many bytes."""

    def __init__(self) -> None:
        self.status: int | None = None
        self.size = 0

    def watch(self, send: Send) -> Send:
        async def watched(message: Message) -> None:
            kind = message["type"]
            if kind == "http.response.start":
                self.status = message["status"]
            elif kind == "websocket.close":
                self.status = message.get("code", 1000)
            sent = message.get("body") or message.get("text") or message.get("bytes") or b""
            self.size += len(sent)
            await send(message)

        return watched


def _log(scope: Scope, seen: _Seen, seconds: float) -> None:
    client = scope.get("client")
    facts = {
        "method": scope.get("method", "WEBSOCKET"),
        "path": _printable(scope["path"]),
        "status": seen.status,
        "bytes": seen.size,
        "ms": round(seconds * 1000, 1),
        "client": client[0] if client else None,
    }
    access.info("%(client)s %(method)s %(path)s %(status)s %(bytes)d bytes %(ms)g ms", facts, extra=facts)


def _printable(path: str) -> str:
    """A path is decoded: a line break in it must not begin a line of the log."""
    return "".join(letter if letter.isprintable() else "?" for letter in path)[:1024]
