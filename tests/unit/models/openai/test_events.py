"""Decoding the events of both of OpenAI's APIs, including errors."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from farhand.models.error_messages import AnswerFailed
from farhand.models.openai.chat import DONE, ChatChunk, decode_chunk
from farhand.models.openai.responses import OtherEvent, decode_event
from tests.requirement import requirement


@pytest.mark.parametrize("decode", [decode_chunk, decode_event], ids=["openai-chat", "openai"])
@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (
            b'{"message": "slow down", "code": "rate_limit_exceeded", "type": "x"}',
            "rate_limit_exceeded",
            "slow down",
        ),
        (b'{"message": "no", "type": "invalid_request_error", "code": null}', "invalid_request_error", "no"),
        (b'{"message": "no", "code": 503}', "503", "no"),
        (b'{"detail": "no"}', "", "no"),
        (b'"no"', "", "no"),
        (b"[7]", "", "An error occurred during streaming"),
    ],
    ids=["a code", "a type", "a number", "a detail", "a text", "of another shape"],
)
@requirement("models:trouble")
def test_an_error_says_what_it_can(
    decode: Callable[[bytes], object], error: bytes, code: str, words: str
) -> None:
    with pytest.raises(AnswerFailed) as failed:
        decode(b'{"type": "response.output_text.delta", "choices": [], "error": %b}' % error)
    assert (failed.value.code, failed.value.words) == (code, words)


@pytest.mark.parametrize("error", [b"null", b"{}", b'""', b"false"])
def test_an_error_with_nothing_in_it_is_none(error: bytes) -> None:
    assert isinstance(decode_chunk(b'{"choices": [], "error": %b}' % error), ChatChunk)
    assert decode_event(b'{"type": "new", "error": %b}' % error) == OtherEvent()


@pytest.mark.parametrize(
    "data",
    [
        b'{"type": "response.sky", "delta": {}, "item": 7, "response": 7}',
        b'{"type": ["response.completed"]}',
        b"{}",
    ],
)
def test_types_that_are_not_known_are_skipped_whatever_is_in_them(data: bytes) -> None:
    assert decode_event(data) == OtherEvent()


def test_the_last_word_is_an_event_of_a_chat_and_none_of_a_response() -> None:
    assert decode_chunk(b"[DONE]") is DONE
    assert decode_event(b"[DONE]") is None
