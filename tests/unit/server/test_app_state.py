"""Refusals are counted by face and reason; a lowered limit applies."""

from __future__ import annotations

from farhand.core.principal import Principal
from farhand.core.settings import Limits, Settings
from farhand.server.app import create_app
from tests.faces.ui_stream.agents import Scene
from tests.requirement import requirement
from tests.unit.server.asgi_requests import ask, visit


@requirement("limits:rates")
async def test_every_refusal_is_counted_by_its_face_and_its_reason() -> None:
    app = create_app(Scene(["Hello."]).agent, store="memory:")
    async with app.lifespan():
        known = {"authorization": f"Bearer {app.auth.token}"}
        for _ in range(3):
            await ask(app, visit(method="GET", path="/api/inbox"))
        await ask(app, visit(known, method="POST", path="/api/tools/ack"))
        await ask(app, visit(known, method="PUT", path="/api/tools/ack"))
        await ask(app, visit(known, method="GET", path="/api/inbox"))
        assert app.refusals == {
            ("threads", "unauthenticated"): 3,
            ("ack", "wrong_type"): 1,
            ("ack", "wrong_method"): 1,
        }


@requirement("limits:rates")
async def test_a_rate_limit_is_counted_and_says_when_to_retry() -> None:
    settings = Settings(limits=Limits(results_per_sec=1, results_burst=1))
    app = create_app(
        Scene(["Hello."]).agent,
        store="memory:",
        settings=settings,
        authenticate=lambda request: Principal("house", "ada"),
    )
    async with app.lifespan():
        replies = [await ask(app, visit(method="POST", path="/api/tools/ack")) for _ in range(2)]
        assert [reply.status for reply in replies] == [415, 429]
        assert replies[1].headers["retry-after"] == "1"
        assert app.refusals["ack", "too_many"] == 1
