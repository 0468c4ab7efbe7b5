from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from farhand.models.retry_after import (
    LONGEST_WAIT_SEC,
    DelayListener,
    response_hook,
    retry_after_sec,
    retry_hooks,
)
from tests.requirement import requirement

pytestmark = requirement("models:trouble")


@dataclass
class Sent:
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Answered:
    status_code: int
    headers: dict[str, str] = field(default_factory=dict)
    request: Sent = field(default_factory=Sent)


async def delays_of(answered: Answered, max_retries: int = 2) -> list[str]:
    sentences: list[str] = []
    with DelayListener(sentences.append):
        await response_hook("Acme", max_retries)(answered)
    return sentences


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503, 529])
async def test_a_busy_provider_is_told_without_its_name(status: int) -> None:
    assert await delays_of(Answered(status)) == ["The model is busy; trying again."]


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2.5"}, "2.500"),
        ({"retry-after": "120"}, "120.000"),
        ({"retry-after-ms": "250", "retry-after": "60"}, "0.250"),
        ({"retry-after-ms": "soon", "retry-after": "3"}, "3.000"),
    ],
)
async def test_how_long_it_takes_is_told_and_the_library_is_left_that_one_number(
    headers: dict[str, str], seconds: str
) -> None:
    answered = Answered(429, headers)
    (sentence,) = await delays_of(answered)
    assert sentence.startswith("The model is busy; trying again in ")
    assert headers == {"retry-after": seconds}


@pytest.mark.parametrize("after", ["soon", "0", "-5", "nan", "Wed, 21 Oct 2020 07:28:00 GMT", "Wed, 99 Xyz"])
async def test_a_wait_that_makes_no_sense_is_left_to_the_library(after: str) -> None:
    headers = {"retry-after": after}
    assert await delays_of(Answered(429, headers)) == ["The model is busy; trying again."]
    assert headers == {}


@pytest.mark.parametrize(
    "headers",
    [
        {"retry-after": "3600"},
        {"retry-after": "120.1"},
        {"retry-after": "inf"},
        {"retry-after": "9" * 400},
        {"retry-after-ms": "3600000"},
        {"retry-after": "Wed, 21 Oct 2997 07:28:00 GMT"},
        {"retry-after": "3600", "x-should-retry": "true"},
    ],
    ids=lambda headers: str(headers)[:40],
)
async def test_too_long_a_wait_is_not_waited_for(headers: dict[str, str]) -> None:
    assert await delays_of(Answered(429, headers)) == []
    assert headers["x-should-retry"] == "false"
    assert (retry_after_sec(headers) or 0) > LONGEST_WAIT_SEC


async def test_a_provider_may_ask_for_another_try_of_anything() -> None:
    assert await delays_of(Answered(400, {"x-should-retry": "true"})) == ["The model is busy; trying again."]


@pytest.mark.parametrize(
    "answered",
    [
        Answered(200),
        Answered(200, {"x-should-retry": "true"}),
        Answered(400),
        Answered(500, {"x-should-retry": "false"}),
        Answered(500, request=Sent({"x-stainless-retry-count": "2"})),
    ],
    ids=["an answer", "an answer that says odd things", "a refusal", "not to be repeated", "the last try"],
)
async def test_what_is_not_asked_again_is_no_delay(answered: Answered) -> None:
    assert await delays_of(answered) == []


async def test_nobody_has_to_listen() -> None:
    await response_hook("Acme", 2)(Answered(429))


async def test_a_connection_that_failed_is_told_when_it_is_tried_again() -> None:
    hooks = retry_hooks("Acme", 2)
    (asks,), (hears,) = hooks["request"], hooks["response"]
    sentences: list[str] = []
    first, second, third = (Sent({"x-stainless-retry-count": str(tried)}) for tried in range(3))
    with DelayListener(sentences.append):
        await asks(first)
        assert sentences == []
        await asks(second)
        assert sentences == ["The model could not be reached; trying again."]
        await hears(Answered(503, request=second))
        await asks(third)
    assert sentences[1:] == ["The model is busy; trying again."]
