"""Logging of a server process: to standard error, as text or as one JSON object per line; and its access log.

Owns the formats, and keeps peers from filling the log: uvicorn's warnings about bad requests pass once a
minute. docs/reference/logging.md lists the loggers.
"""

from __future__ import annotations

import json
import logging
import math
from datetime import UTC, datetime

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from farhand.clock import monotonic

access = logging.getLogger("farhand.access")

REPEAT_AFTER_SEC = 60.0

_TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {
    "message",
    "asctime",
    "taskName",
    "color_message",
}


def configure_logging(*, level: str, style: str, access_log: bool) -> None:
    """For a server process. A program that has configured handlers keeps them."""
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
    """One object per record, on one line, with the extra fields and the exception of the record."""

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
        # UTF-8 has no lone surrogates, and some readers reject their escapes
        return json.dumps(written, ensure_ascii=False).encode(errors="replace").decode()


def _plain(value: object) -> object:
    if value is None or isinstance(value, str | bool | int):
        return value
    return value if isinstance(value, float) and math.isfinite(value) else str(value)


def with_access_log(app: ASGIApp) -> ASGIApp:
    """Logs one line per request and per socket, without the query, which may contain a token."""

    async def logged(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await app(scope, receive, send)
            return
        began, seen = monotonic(), _ResponseStats()
        try:
            await app(scope, receive, seen.watch(send))
        finally:
            _log(scope, seen, monotonic() - began)

    return logged


class _ResponseStats:
    """The status of the response, or the close code of a socket, and the number of bytes."""

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


def _log(scope: Scope, seen: _ResponseStats, seconds: float) -> None:
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
    """A decoded path may contain line breaks, which must not start a new log line."""
    return "".join(letter if letter.isprintable() else "?" for letter in path)[:1024]


class OncePerMinute(logging.Filter):
    """Drops a warning if the same one passed within the last minute. Errors always pass."""

    def __init__(self) -> None:
        super().__init__()
        self._passed_at: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno != logging.WARNING:
            return True
        text = record.getMessage()
        if record.created - self._passed_at.get(text, -math.inf) < REPEAT_AFTER_SEC:
            return False
        self._passed_at[text] = record.created
        return True


_FILTER = OncePerMinute()


def limit_uvicorn_warnings() -> None:
    """Its few warnings are always the same: too many connections, not HTTP, an unsupported upgrade."""
    logging.getLogger("uvicorn.error").addFilter(_FILTER)
