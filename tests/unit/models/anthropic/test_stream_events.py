from __future__ import annotations

import pytest

from farhand.models.anthropic.stream import (
    InputPiece,
    MessageEvent,
    OtherDelta,
    OtherEvent,
    TextPiece,
    decode_event,
)
from farhand.models.error_messages import AnswerFailed
from farhand.models.sse_reader import SseEvent
from tests.requirement import requirement


@pytest.mark.parametrize(
    ("data", "kind", "words"),
    [
        (
            b'{"type": "error", "error": {"type": "overloaded_error", "message": "Over"}}',
            "overloaded_error",
            "Over",
        ),
        (b'{"error": {"type": "api_error"}}', "api_error", "{'error': {'type': 'api_error'}}"),
        (b'{"error": "no"}', "", "{'error': 'no'}"),
        (b"[7]", "", "[7]"),
        (b"oh no", "", "oh no"),
        (b"", "", "an error without a message"),
        (b"[" * 100_000, "", "[" * 100_000),
    ],
    ids=["the API's", "no words", "of another shape", "no object", "no JSON", "nothing", "too deep"],
)
@requirement("models:trouble")
def test_an_error_says_what_it_can(data: bytes, kind: str, words: str) -> None:
    with pytest.raises(AnswerFailed) as failed:
        decode_event(SseEvent(b"error", data))
    assert (failed.value.code, failed.value.words) == (kind, words)


@pytest.mark.parametrize(
    ("name", "data"),
    [(b"ping", b'{"type": "ping"}'), (b"ping", b"no JSON"), (b"", b'{"type": "message_stop"}'), (b"x", b"")],
)
def test_what_only_keeps_the_connection_open_is_left_out(name: bytes, data: bytes) -> None:
    assert decode_event(SseEvent(name, data)) is None


DELTA = b'{"type": "content_block_delta", "index": 0, "delta": %b}'


@pytest.mark.parametrize(
    ("data", "event"),
    [
        (DELTA % b'{"type": "text_delta", "text": "hi", "more": 1}', TextPiece("hi")),
        (DELTA % b'{"type": "input_json_delta", "partial_json": "{"}', InputPiece("{")),
        (DELTA % b'{"type": "new_delta", "text": {"of": "another shape"}}', OtherDelta()),
        (DELTA % b'{"text": 7}', OtherDelta()),
        (b'{"type": "new_event", "delta": 7, "message": 7}', OtherEvent()),
        (b'{"type": ["message_stop"]}', OtherEvent()),
    ],
)
def test_types_that_are_not_known_are_skipped_whatever_is_in_them(data: bytes, event: MessageEvent) -> None:
    assert decode_event(SseEvent(b"x", data)) == event
