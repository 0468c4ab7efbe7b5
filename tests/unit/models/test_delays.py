from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from farhand.models.delays import hearing_delays, watch
from tests.requirement import requirement

pytestmark = requirement("models:retries")


@dataclass
class Sent:
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Answered:
    status_code: int
    headers: dict[str, str] = field(default_factory=dict)
    request: Sent = field(default_factory=Sent)


async def told(answered: Answered, max_retries: int = 2) -> list[str]:
    heard: list[str] = []
    with hearing_delays(heard.append):
        await watch("Acme", max_retries)(answered)
    return heard


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503, 529])
async def test_a_busy_provider_is_told_with_its_status(status: int) -> None:
    assert await told(Answered(status)) == [f"Acme is busy ({status}); it is asked again."]


async def test_how_long_it_takes_is_told_if_the_provider_says_so_in_seconds() -> None:
    assert await told(Answered(429, {"retry-after": "2.5"})) == [
        "Acme is busy (429); it is asked again in 2.5 s."
    ]
    assert await told(Answered(429, {"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"})) == [
        "Acme is busy (429); it is asked again."
    ]


@pytest.mark.parametrize(
    "answered",
    [
        Answered(200),
        Answered(400),
        Answered(500, {"x-should-retry": "false"}),
        Answered(500, request=Sent({"x-stainless-retry-count": "2"})),
    ],
    ids=["an answer", "a refusal", "not to be repeated", "the last try"],
)
async def test_what_is_not_asked_again_is_no_delay(answered: Answered) -> None:
    assert await told(answered) == []


async def test_nobody_has_to_listen() -> None:
    await watch("Acme", 2)(Answered(429))
