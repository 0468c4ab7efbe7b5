"""What a server process logs, and in which format."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from farhand.server.logs import (
    REPEAT_AFTER_SEC,
    JsonFormatter,
    OncePerMinute,
    configure_logging,
    with_access_log,
)
from tests.requirement import requirement

ROOT = Path(__file__).resolve().parents[3]


def written(
    message: str, *, extra: dict[str, object] | None = None, error: BaseException | None = None
) -> Any:
    exc_info = (type(error), error, error.__traceback__) if error is not None else None
    record = logging.getLogger("farhand.runs").makeRecord(
        "farhand.runs", logging.ERROR, __file__, 1, message, (), exc_info, extra=extra
    )
    line = JsonFormatter().format(record)
    assert "\n" not in line
    line.encode()
    return json.loads(line)


def test_a_record_is_one_json_object_with_its_fields() -> None:
    record = written(
        "run r failed:\nwith two lines", extra={"run_id": "r", "odd": float("nan"), "path": Path("x")}
    )
    assert (record["level"], record["logger"]) == ("ERROR", "farhand.runs")
    assert record["message"] == "run r failed:\nwith two lines"
    assert (record["run_id"], record["odd"], record["path"]) == ("r", "nan", "x")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", record["time"])


def test_an_exception_is_part_of_the_object() -> None:
    try:
        raise ValueError("half a character \ud800")
    except ValueError as error:
        record = written("it broke", error=error)
    assert record["exception"].startswith("Traceback (most recent call last):\n")
    assert record["exception"].endswith("ValueError: half a character ?")


def test_a_stack_is_part_of_the_object() -> None:
    record = logging.makeLogRecord({"msg": "here", "stack_info": "Stack:\n  f"})
    assert json.loads(JsonFormatter().format(record))["stack"] == "Stack:\n  f"


@pytest.fixture
def levels() -> Iterator[None]:
    """Afterwards every logger has the level that it had."""
    changed = [logging.getLogger(name) for name in (None, "farhand", "farhand.access")]
    before = [logger.level for logger in changed]
    yield
    for logger, level in zip(changed, before, strict=True):
        logger.setLevel(level)


@pytest.mark.usefixtures("levels")
def test_a_program_that_logs_already_keeps_its_handlers(monkeypatch: pytest.MonkeyPatch) -> None:
    root, handler = logging.getLogger(), logging.NullHandler()
    monkeypatch.setattr(root, "handlers", [handler])
    configure_logging(level="debug", style="json", access_log=False)
    assert root.handlers == [handler]
    assert logging.getLogger("farhand").level == logging.DEBUG


@pytest.mark.usefixtures("levels")
@pytest.mark.parametrize(("style", "is_json"), [("json", True), ("text", False)])
def test_a_program_that_logs_nowhere_logs_to_standard_error(
    monkeypatch: pytest.MonkeyPatch, style: str, is_json: bool
) -> None:
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    configure_logging(level="info", style=style, access_log=True)
    (handler,) = root.handlers
    assert isinstance(handler.formatter, JsonFormatter) is is_json
    assert (root.level, logging.getLogger("farhand.access").level) == (logging.WARNING, logging.INFO)


async def answered(
    scope: Scope, caplog: pytest.LogCaptureFixture, *messages: Message
) -> list[logging.LogRecord]:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        for message in messages:
            await send(message)

    async def receive() -> Message:
        raise AssertionError("nothing is read")

    async def send(message: Message) -> None: ...

    with caplog.at_level(logging.INFO, "farhand.access"):
        await with_access_log(app)(scope, receive, send)
    return caplog.records


async def test_a_request_is_one_line_without_its_query(caplog: pytest.LogCaptureFixture) -> None:
    scope = {
        "type": "http", "method": "GET", "path": "/a\nERROR forged", "query_string": b"token=secret",
        "client": ("10.0.0.1", 5), "headers": [(b"authorization", b"Bearer secret")],
    }  # fmt: skip
    start, body = (
        {"type": "http.response.start", "status": 200},
        {"type": "http.response.body", "body": b"abc"},
    )
    (record,) = await answered(scope, caplog, start, body)
    line = record.getMessage()
    assert re.fullmatch(r"10\.0\.0\.1 GET /a\?ERROR forged 200 3 bytes [\d.]+ ms", line)
    assert record.status == 200  # type: ignore[attr-defined]


async def test_a_socket_is_one_line_with_the_code_that_closed_it(caplog: pytest.LogCaptureFixture) -> None:
    scope = {"type": "websocket", "path": "/api/chat/ws", "headers": []}
    sent = {"type": "websocket.send", "text": "hello"}
    (record,) = await answered(scope, caplog, sent, {"type": "websocket.close", "code": 4401})
    assert record.getMessage().startswith("None WEBSOCKET /api/chat/ws 4401 5 bytes")


async def test_a_lifespan_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    assert await answered({"type": "lifespan"}, caplog) == []


@requirement("settings:reference")
def test_every_logger_is_in_the_reference() -> None:
    reference = (ROOT / "docs/reference/logging.md").read_text()
    sources = [path.read_text() for path in (ROOT / "src/farhand").rglob("*.py")]
    names = {name for text in sources for name in re.findall(r'getLogger\("(farhand\.[a-z.]+)"\)', text)}
    assert len(names) > 5
    assert [name for name in sorted(names) if f"| `{name}` |" not in reference] == []


def line(text: str, at: float, level: int = logging.WARNING) -> logging.LogRecord:
    record = logging.LogRecord("uvicorn.error", level, __file__, 1, text, (), None)
    record.created = at
    return record


def test_the_same_warning_is_written_once_a_minute() -> None:
    once = OncePerMinute()
    assert once.filter(line("Invalid HTTP request received.", 0))
    assert not once.filter(line("Invalid HTTP request received.", 1))
    assert once.filter(line("Exceeded concurrency limit.", 2))
    assert not once.filter(line("Invalid HTTP request received.", REPEAT_AFTER_SEC - 1))
    assert once.filter(line("Invalid HTTP request received.", REPEAT_AFTER_SEC))


@pytest.mark.parametrize("level", [logging.INFO, logging.ERROR])
def test_every_other_line_is_written_each_time(level: int) -> None:
    once = OncePerMinute()
    assert all(once.filter(line("Exception in ASGI application", 0, level)) for _ in range(3))
