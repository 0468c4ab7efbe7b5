from __future__ import annotations

from collections.abc import Mapping

import httpx2
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


def sent(tried: int = 0) -> httpx2.Request:
    return httpx2.Request("POST", "http://127.0.0.1", headers={"x-stainless-retry-count": str(tried)})


def answered(status: int, headers: Mapping[str, str] | None = None, *, tried: int = 0) -> httpx2.Response:
    return httpx2.Response(status, headers=headers, request=sent(tried))


async def delays_of(response: httpx2.Response, max_retries: int = 2) -> list[str]:
    sentences: list[str] = []
    with DelayListener(sentences.append):
        await response_hook("Acme", max_retries)(response)
    return sentences


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503, 529])
async def test_a_busy_provider_is_told_without_its_name(status: int) -> None:
    assert await delays_of(answered(status)) == ["The model is busy; trying again."]


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
    response = answered(429, headers)
    (sentence,) = await delays_of(response)
    assert sentence.startswith("The model is busy; trying again in ")
    assert response.headers == {"retry-after": seconds}


@pytest.mark.parametrize("after", ["soon", "0", "-5", "nan", "Wed, 21 Oct 2020 07:28:00 GMT", "Wed, 99 Xyz"])
async def test_a_wait_that_makes_no_sense_is_left_to_the_library(after: str) -> None:
    response = answered(429, {"retry-after": after})
    assert await delays_of(response) == ["The model is busy; trying again."]
    assert response.headers == {}


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
    response = answered(429, headers)
    assert await delays_of(response) == []
    assert response.headers["x-should-retry"] == "false"
    assert (retry_after_sec(response.headers) or 0) > LONGEST_WAIT_SEC


async def test_a_provider_may_ask_for_another_try_of_anything() -> None:
    assert await delays_of(answered(400, {"x-should-retry": "true"})) == ["The model is busy; trying again."]


@pytest.mark.parametrize(
    "response",
    [
        answered(200),
        answered(200, {"x-should-retry": "true"}),
        answered(400),
        answered(500, {"x-should-retry": "false"}),
        answered(500, tried=2),
    ],
    ids=["an answer", "an answer that says odd things", "a refusal", "not to be repeated", "the last try"],
)
async def test_what_is_not_asked_again_is_no_delay(response: httpx2.Response) -> None:
    assert await delays_of(response) == []


async def test_nobody_has_to_listen() -> None:
    await response_hook("Acme", 2)(answered(429))


async def test_a_connection_that_failed_is_told_when_it_is_tried_again() -> None:
    hooks = retry_hooks("Acme", 2)
    (asks,), (hears,) = hooks["request"], hooks["response"]
    sentences: list[str] = []
    first, second, third = map(sent, range(3))
    with DelayListener(sentences.append):
        await asks(first)
        assert sentences == []
        await asks(second)
        assert sentences == ["The model could not be reached; trying again."]
        await hears(answered(503, tried=1))
        await asks(third)
    assert sentences[1:] == ["The model is busy; trying again."]
