from __future__ import annotations

import pytest
from msgspec.structs import replace

from farhand.models.error_messages import ProviderError, format_duration, model_fault, stream_cut
from tests.requirement import requirement

pytestmark = requirement("models:trouble")


def message_of(status: int | None, words: str = "", code: str = "") -> str:
    trouble = ProviderError(
        provider="Acme", model="a-1", key_setting="ACME_KEY", status=status, words=words, code=code
    )
    return str(model_fault(trouble))


@pytest.mark.parametrize(
    ("status", "sentence"),
    [
        (None, "Acme could not be reached. Check the network and the address, then send the message again."),
        (
            400,
            "Acme refused the request (400). The conversation is kept; send another message to continue.",
        ),
        (401, "Acme did not accept the key (401). Check ACME_KEY."),
        (403, "Acme did not accept the key (403). Check ACME_KEY."),
        (
            404,
            "Acme does not know the requested resource (404). Check the address and the model's name, 'a-1'.",
        ),
        (
            413,
            (
                "The conversation is too long for a-1. "
                "Start a new thread, or choose a model with a larger context window."
            ),
        ),
        (500, "Acme has an internal error (500). Send the message again later."),
        (529, "Acme has an internal error (529). Send the message again later."),
    ],
)
def test_each_trouble_has_a_sentence_and_a_next_step(status: int | None, sentence: str) -> None:
    assert message_of(status) == sentence


def test_a_limit_says_that_waiting_helps() -> None:
    assert "Wait a minute" in message_of(429)


def test_the_providers_own_words_are_told_in_one_line_of_bearable_length() -> None:
    trouble = ProviderError(
        provider="Acme", model="a-1", key_setting="ACME_KEY", status=400, words="no such\n{tool}   here"
    )
    assert model_fault(trouble).provider_message == "no such {tool} here"
    assert model_fault(trouble).detail.endswith("\nThe provider says: no such {tool} here")
    assert len(model_fault(replace(trouble, words="x" * 10_000)).detail) < 800


@pytest.mark.parametrize("status", [None, 400, 401, 403, 404, 413, 429, 500, 529])
def test_people_who_chat_are_told_nothing_of_the_operators(status: int | None) -> None:
    trouble = ProviderError(
        provider="http://10.0.0.7", model="a-1", key_setting="ACME_KEY", status=status, words="psst"
    )
    for each in (trouble, replace(trouble, wait_sec=60.0), replace(trouble, has_key=False)):
        public = model_fault(each).public
        assert public.startswith(("The model", "This conversation"))
        assert not any(word in public for word in ("10.0.0.7", "a-1", "ACME_KEY", "psst", "("))


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("prompt is too long: 210000 tokens > 200000 maximum", ""),
        ("This model's maximum context length is 8192 tokens.", ""),
        ("Your input exceeds the context window of this model.", ""),
        ("no", "context_length_exceeded"),
    ],
)
def test_a_conversation_that_is_too_long_is_known_by_many_words(words: str, code: str) -> None:
    assert message_of(400, words, code).startswith("The conversation is too long for a-1.")


def test_an_answer_that_breaks_off_says_why_if_that_is_known() -> None:
    assert str(stream_cut("Acme")) == "The answer of Acme was cut off. Send the message again."
    assert (
        str(stream_cut("Acme", "reset")) == "The answer of Acme was cut off (reset). Send the message again."
    )


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.01, "0.01 s"),
        (2.5, "2.5 s"),
        (119, "119 s"),
        (120, "2 minutes"),
        (3600, "60 minutes"),
        (86_400, "24 hours"),
    ],
)
def test_a_length_of_time_is_reported_as_a_person_would(seconds: float, words: str) -> None:
    assert format_duration(seconds) == words


def test_a_provider_that_wants_to_be_left_alone_says_for_how_long() -> None:
    trouble = ProviderError(provider="Acme", model="a-1", key_setting="ACME_KEY", status=429, wait_sec=3600)
    assert str(model_fault(trouble)) == (
        "Acme accepts no more requests for now (429). "
        "Send the message again in 60 minutes; earlier requests are refused."
    )


def test_a_server_that_wants_a_key_is_told_apart_from_one_that_refuses_it() -> None:
    trouble = ProviderError(provider="Acme", model="a-1", key_setting="ACME_KEY", status=401, has_key=False)
    assert str(model_fault(trouble)) == "Acme requires a key (401), and none is set. Set ACME_KEY."


@pytest.mark.parametrize("status", [401, 403, 404, 400])
def test_a_web_page_is_not_repeated_but_named(status: int) -> None:
    page = "HTTP: <!DOCTYPE html>\n<html><title>nginx</title></html>"
    assert message_of(status, page) == (
        f"The server at this address is not Acme: it sent a web page ({status}). "
        "Check the address (base_url)."
    )
    assert message_of(502, page) == "Acme has an internal error (502). Send the message again later."
