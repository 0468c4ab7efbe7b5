from __future__ import annotations

import pytest

from farhand.models.faults import Trouble, broke_off, fault_of
from tests.requirement import requirement

pytestmark = requirement("models:trouble")


def told(status: int | None, words: str = "", code: str = "") -> str:
    trouble = Trouble(
        provider="Acme", model="a-1", key_setting="ACME_KEY", status=status, words=words, code=code
    )
    return str(fault_of(trouble))


@pytest.mark.parametrize(
    ("status", "sentence"),
    [
        (None, "Acme could not be reached. Check the network and the address, then send the message again."),
        (400, "Acme refused the request (400). The conversation is kept; another message goes on from here."),
        (401, "Acme did not accept the key (401). Check ACME_KEY."),
        (403, "Acme did not accept the key (403). Check ACME_KEY."),
        (
            404,
            "Acme does not know what it was asked for (404). Check the address and the model's name, 'a-1'.",
        ),
        (413, "The conversation is too long for a-1. Start a new thread, or choose a model that takes more."),
        (500, "Acme has trouble of its own (500). Send the message again later."),
        (529, "Acme has trouble of its own (529). Send the message again later."),
    ],
)
def test_each_trouble_has_a_sentence_and_a_next_step(status: int | None, sentence: str) -> None:
    assert told(status) == sentence


def test_a_limit_says_that_waiting_helps() -> None:
    assert "Wait a minute" in told(429)


def test_the_providers_own_words_are_told_in_one_line_of_bearable_length() -> None:
    assert "It says: no such {tool} here" in told(400, "no such\n{tool}   here")
    assert len(told(400, "x" * 10_000)) < 800


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
    assert told(400, words, code).startswith("The conversation is too long for a-1.")


def test_an_answer_that_breaks_off_says_why_if_that_is_known() -> None:
    assert str(broke_off("Acme")) == "The answer of Acme broke off. Send the message again."
    assert str(broke_off("Acme", "reset")) == "The answer of Acme broke off (reset). Send the message again."
