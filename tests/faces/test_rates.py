"""Rate limits count every request of a principal on their paths, valid or not."""

from __future__ import annotations

import asyncio

import pytest

from farhand.core.settings import Limits, Settings
from tests.faces.conftest import Serve
from tests.faces.ui_stream.agents import Scene
from tests.requirement import requirement

RARE = Settings(limits=Limits(results_per_sec=1, results_burst=2, registrations_per_min=2))
AT_ONCE = 30
"""So many that a slow machine does not make up for them."""
PATHS = [
    "/api/tools/ack",
    "/ai/tools/ack",
    "/api/tools/take",
    "/api/tools/approve",
    "/agent/tool_results",
    "/client-tools/result",
    "/client-tools/progress",
    "/client-tools/register",
]


@requirement("limits:rates")
@pytest.mark.parametrize("path", PATHS)
async def test_what_comes_more_often_than_it_may_is_told_when_to_come_again(serve: Serve, path: str) -> None:
    served = await serve(Scene(["x"]).agent, settings=RARE)
    answers = await asyncio.gather(*(served.http.post(path, json={}) for _ in range(AT_ONCE)))
    assert {answer.status_code for answer in answers} == {400, 429}
    refused = [answer for answer in answers if answer.status_code == 429]
    assert all(int(answer.headers["retry-after"]) >= 1 for answer in refused)
