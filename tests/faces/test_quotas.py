"""Quotas of principals and tenants, reported in the format of every wire."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from starlette.requests import HTTPConnection

from farhand import Agent, Limits, Principal, ScriptedModel, Settings, tool
from farhand.core.principal import Owner
from farhand.errors import TooMany
from farhand.models.scripted import Ask, Moment, Step
from tests.faces.conftest import Serve
from tests.faces.served import Served
from tests.faces.ui_stream.page import Page, until, user_message
from tests.faces.ui_stream.websocket_client import read, wire
from tests.postgres import Cluster
from tests.requirement import requirement

# Any: bodies of a wire
Json = Any


class Works:
    """An agent whose runs are at work until the test lets them go, or wait for a person."""

    def __init__(self) -> None:
        self.over = asyncio.Event()
        self.at_work = 0

        @tool
        async def work() -> str:
            """Work."""
            self.at_work += 1
            await self.over.wait()
            return "done"

        @tool(needs_approval=True)
        def delete() -> str:
            """Delete."""
            return "gone"

        self.agent = Agent(ScriptedModel(self._next), tools=[work, delete])

    def _next(self, moment: Moment) -> Step:
        if moment.steps:
            return "Done."
        return [Ask("delete", {})] if moment.text == "delete" else [Ask("work", {})]


def by_header(request: HTTPConnection) -> Principal | None:
    """`x-who` is `tenant/subject`."""
    tenant, _, subject = request.headers.get("x-who", "").partition("/")
    return Principal(tenant, subject) if subject else None


async def begin(served: Served, chat: str, text: str = "go", **headers: str) -> int:
    """Sends a message and drops the connection once the status is here."""
    body = {"id": chat, "messages": [user_message(text, f"{chat}-m")], "trigger": "submit-message"}
    async with served.http.stream("POST", "/api/chat", json=body, headers=headers) as response:
        return response.status_code


async def test_dropped_connections_leave_no_more_active_runs_than_a_principal_may_have(
    serve: Serve, store: str
) -> None:
    works = Works()
    served = await serve(works.agent, store=store, settings=Settings(limits=Limits(running_per_principal=5)))
    statuses = await asyncio.gather(*(begin(served, f"chat{number}") for number in range(40)))
    assert sorted(statuses) == [200] * 5 + [429] * 35
    await until(lambda: works.at_work == 5)
    assert await served.service.log.count_running("local", "me") == 5
    works.over.set()
    async with asyncio.timeout(20):
        # there is no news of it
        while await served.service.log.count_running("local", "me"):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert await begin(served, "later") == 200


async def test_runs_that_wait_for_a_person_do_not_count(serve: Serve, store: str) -> None:
    works = Works()
    served = await serve(works.agent, store=store, settings=Settings(limits=Limits(running_per_principal=2)))
    for number in range(6):
        turn = await Page(served.http, f"waiting{number}").say("delete")
        assert turn.status == 200
    assert await begin(served, "at-work") == 200
    works.over.set()


async def test_a_tenant_has_a_limit_of_its_own_and_others_are_not_held_up(serve: Serve) -> None:
    works = Works()
    limits = Limits(running_per_tenant=3)
    served = await serve(works.agent, settings=Settings(limits=limits), authenticate=by_header)
    who = ["acme/ann", "acme/bob", "acme/cyd", "acme/dan", "other/ann"]
    statuses = [await begin(served, f"chat{number}", **{"x-who": name}) for number, name in enumerate(who)]
    assert statuses == [200, 200, 200, 429, 200]
    works.over.set()


async def test_active_runs_are_counted_across_workers(serve: Serve, cluster: Cluster) -> None:
    address = cluster.address("quotas")
    works = [Works(), Works()]
    settings = Settings(limits=Limits(running_per_principal=6))
    one, other = [await serve(each.agent, store=address, settings=settings) for each in works]
    assert [await begin(one, f"one{number}") for number in range(6)] == [200] * 6
    assert await other.service.log.count_running("local", "me") == 6
    # a worker without any asks nobody for its first
    assert [await begin(other, f"other{number}") for number in range(3)] == [200, 429, 429]
    for each in works:
        each.over.set()


async def test_every_wire_says_it_in_its_own_words(serve: Serve) -> None:
    works = Works()
    served = await serve(works.agent, settings=Settings(limits=Limits(running_per_principal=1)))
    assert await begin(served, "first") == 200
    chat = {"id": "second", "messages": [user_message("go", "m2")], "trigger": "submit-message"}
    posted = await served.http.post("/api/chat", json=chat)
    assert (posted.status_code, posted.headers["retry-after"]) == (429, "5")
    told = "You have 1 runs in progress; the limit is 1."
    assert told in posted.text
    awaited = await served.http.post("/agent/run", json={"user_prompt": "go"})
    assert (awaited.status_code, awaited.headers["retry-after"]) == (429, "5")
    assert awaited.json()["error"]["code"] == "too_many"
    for path, frame in (
        ("/api/chat/live", {"type": "message", **chat}),
        ("/api/chat/ws", {"type": "send", "requestId": "r1", "headers": {}, "body": {}, **chat}),
    ):
        async with wire(served, path) as socket:
            await socket.send(json.dumps(frame))
            answer = await read(socket)
            assert told in answer, path
    works.over.set()


async def test_what_was_sent_before_is_replayed_though_nothing_new_may_begin(
    serve: Serve, store: str
) -> None:
    served = await serve(
        Agent(ScriptedModel(lambda moment: "Hello.")),
        store=store,
        settings=Settings(limits=Limits(runs_per_min=1)),
    )
    page = Page(served.http)
    assert (await page.say("hi")).text == "Hello."
    again = {"id": page.id, "messages": page.messages[:1], "trigger": "submit-message"}
    repeated = await served.http.post("/api/chat", json=again)
    assert repeated.status_code == 200
    assert "Hello." in repeated.text
    assert await begin(served, "another") == 429


@requirement("quotas:rate")
async def test_a_message_that_is_sent_again_is_no_new_run(serve: Serve) -> None:
    agent = Agent(ScriptedModel(lambda moment: "Hello."))
    served = await serve(agent, settings=Settings(limits=Limits(runs_per_min=2)))
    assert [await begin(served, "one") for _ in range(5)] == [200] * 5
    assert await begin(served, "two") == 200
    assert await begin(served, "three") == 429


@requirement("quotas:rate")
async def test_a_message_that_is_refused_is_no_new_run(serve: Serve) -> None:
    works = Works()
    served = await serve(works.agent, settings=Settings(limits=Limits(runs_per_min=2)))
    assert await begin(served, "one") == 200
    for number in range(5):
        body = {"id": "one", "messages": [user_message("more", f"m{number}")], "trigger": "submit-message"}
        assert (await served.http.post("/api/chat", json=body)).status_code == 409
    works.over.set()
    assert await begin(served, "two") == 200
    assert await begin(served, "three") == 429


@requirement("quotas:rate")
async def test_a_message_that_is_sent_twice_at_once_is_one_new_run(serve: Serve) -> None:
    agent = Agent(ScriptedModel(lambda moment: "Hello."))
    served = await serve(agent, settings=Settings(limits=Limits(runs_per_min=3)))
    for chat in ("one", "two", "three"):
        assert set(await asyncio.gather(*(begin(served, chat) for _ in range(4)))) == {200}
    assert await begin(served, "four") == 429


@requirement("quotas:rate")
async def test_new_runs_a_minute_are_bounded_for_a_principal_and_for_its_tenant(serve: Serve) -> None:
    limits = Limits(runs_per_min=3, runs_per_min_of_tenant=5)
    agent = Agent(ScriptedModel(lambda moment: "Hello."))
    served = await serve(agent, settings=Settings(limits=limits), authenticate=by_header)
    counts = {}
    for name in ("acme/ann", "acme/bob", "other/ann"):
        statuses = [await begin(served, f"chat{number}", **{"x-who": name}) for number in range(5)]
        counts[name] = statuses.count(200)
    assert counts == {"acme/ann": 3, "acme/bob": 2, "other/ann": 3}
    served.http.headers["x-who"] = "acme/ann"
    regenerate = {"id": "chat0", "messages": [user_message("go", "chat0-m")], "trigger": "regenerate-message"}
    refused = await served.http.post("/api/chat", json=regenerate)
    assert refused.status_code == 429
    assert 1 <= int(refused.headers["retry-after"]) <= 60


@requirement("quotas:rate")
async def test_what_a_principal_stores_is_bounded_until_it_deletes_something(
    serve: Serve, store: str
) -> None:
    limits = Limits(stored_bytes=100_000)
    agent = Agent(ScriptedModel(lambda moment: "Hello."))
    served = await serve(agent, store=store, settings=Settings(limits=limits))
    statuses = [await begin(served, f"chat{number}", "x" * 30_000) for number in range(4)]
    assert statuses == [200, 200, 200, 429]
    await until(lambda: not served.service.context.quotas.at_work)
    refused = await served.http.post(
        "/api/chat",
        json={"id": "more", "messages": [user_message("x" * 30_000, "m9")], "trigger": "submit-message"},
    )
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "60")
    assert "Delete chats that are no longer needed" in refused.text
    assert (await served.http.delete("/api/chat/chat0")).status_code == 200
    assert await begin(served, "chat5", "x" * 30_000) == 200


async def test_a_program_is_not_limited_by_itself_but_those_it_works_for_are() -> None:
    agent = Agent(ScriptedModel(lambda moment: "Hello."), limits=Limits(runs_per_min=2))
    async with agent:
        for _ in range(5):
            assert (await agent.run("hi")).text == "Hello."
        ann = Owner("acme", "ann")
        for _ in range(2):
            await agent.run("hi", owner=ann)
        with pytest.raises(TooMany, match="You have started 2 runs within a minute") as refused:
            await agent.run("hi", owner=ann)
        assert 1 <= refused.value.retry_after <= 60
