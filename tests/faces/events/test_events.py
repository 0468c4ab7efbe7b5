"""The feed of an owner: its events about runs, calls and clients, and how it is resumed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest
from starlette.requests import HTTPConnection

from farhand import Agent, Principal, ScriptedModel, Settings, Timeouts
from farhand.core.call import Call
from farhand.core.principal import LOCAL, SCOPES, Owner
from farhand.errors import StoreDown, Unreadable
from farhand.eventlog.pubsub import feed_topic
from farhand.models.scripted import Ask
from farhand.store.base import FeedRow
from farhand.wire.sse import Event, Parser
from tests.faces.client_tools.program import Json, Program, asks, chat, ready
from tests.faces.conftest import Serve
from tests.faces.served import Served
from tests.requirement import requirement

READ = Ask("client_notes_read", {"text": "a"}, id="call_0")
WITHIN_SEC = 20.0


class Feed:
    def __init__(self, response: httpx2.Response) -> None:
        self.headers = response.headers
        self.parser = Parser()
        self._chunks = response.aiter_bytes()
        self._waiting: list[Event] = []

    async def next(self) -> Event | None:
        async with asyncio.timeout(WITHIN_SEC):
            while not self._waiting:
                try:
                    self._waiting += self.parser.feed(await anext(self._chunks))
                except StopAsyncIteration:
                    return None
        return self._waiting.pop(0)

    async def until(self, kind: str) -> list[Event]:
        """Everything up to the first event of this type."""
        found: list[Event] = []
        while not found or found[-1].event != kind:
            event = await self.next()
            assert event is not None, f"the feed ended after {[each.event for each in found]}"
            found.append(event)
        return found

    async def position(self, wanted: str = "") -> str:
        """Where it stands at its start, told before any event; or this position, once it stands there."""
        async with asyncio.timeout(WITHIN_SEC):
            while not self.parser.last_id or self.parser.last_id != (wanted or self.parser.last_id):
                self._waiting += self.parser.feed(await anext(self._chunks))
        return self.parser.last_id


@asynccontextmanager
async def following(
    server: Served, after: str | None = None, thread: str | None = None, **headers: str
) -> AsyncIterator[Feed]:
    wanted = {"after": after, "thread": thread}
    params = {name: value for name, value in wanted.items() if value is not None}
    async with server.http.stream("GET", "/api/events", params=params, headers=headers) as response:
        assert response.status_code == 200
        yield Feed(response)


def read(event: Event) -> Json:
    return json.loads(event.data)


async def _one_call(server: Served) -> None:
    """A client comes, is asked by the model, answers and leaves."""
    async with ready(Program(server.http), "read") as notes, asyncio.TaskGroup() as group:
        group.create_task(chat(server.http))
        await notes.answer(status="success", output="the note")
    await Program(server.http).unregister()


@requirement("events:told")
async def test_a_call_of_a_client_is_told_from_its_registration_to_its_end(serve: Serve, store: str) -> None:
    server = await serve(asks(READ), store=store)
    async with following(server) as feed:
        await feed.position()
        await _one_call(server)
        told = await feed.until("client-tool.unregistered")
    assert [event.event for event in told] == [
        "client-tool.registered",
        "run-started",
        "call-opened",
        "client-tool.request",
        "call-taken",
        "client-tool.executing",
        "call-settled",
        "client-tool.completed",
        "run-finished",
        "client-tool.unregistered",
    ]
    assert all(read(event)["type"] == event.event for event in told)
    assert feed.headers["content-type"] == "text/event-stream"
    assert feed.headers["cache-control"] == "no-cache"


async def test_the_six_events_of_clients_have_their_fields(serve: Serve) -> None:
    server = await serve(asks(READ))
    async with following(server) as feed:
        await feed.position()
        await _one_call(server)
        told = {event.event: read(event) for event in await feed.until("client-tool.unregistered")}
    run = await server.service.last_run(LOCAL, "t1")
    [call] = await server.service.calls(run)
    names = {"clientID": "notes", "toolIDs": ["client_notes_read"]}
    assert told["client-tool.registered"] == {"type": "client-tool.registered", **names}
    assert told["client-tool.unregistered"] == {"type": "client-tool.unregistered", **names}
    ids = {
        "requestID": call.call_id,
        "sessionID": "t1",
        "messageID": f"{run.run_id}:1",
        "callID": "call_0",
        "tool": "read",
    }
    assert told["client-tool.request"] == {
        "type": "client-tool.request",
        "clientID": "notes",
        "request": {"type": "client-tool-request", **ids, "input": {"text": "a"}},
    }
    status = {**ids, "clientID": "notes"}
    assert told["client-tool.executing"] == {"type": "client-tool.executing", **status}
    assert told["client-tool.completed"] == {"type": "client-tool.completed", **status, "success": True}


async def test_a_failure_is_told_with_its_words(serve: Serve) -> None:
    server = await serve(asks(READ))
    async with following(server) as feed, asyncio.TaskGroup() as group:
        await feed.position()
        async with ready(Program(server.http), "read") as notes:
            group.create_task(chat(server.http))
            await notes.answer(status="error", error="no such note")
            told = await feed.until("client-tool.failed")
    failed = read(told[-1])
    assert (failed["error"], failed["success"], failed["tool"]) == ("no such note", False, "read")


@requirement("events:told")
async def test_events_of_runs_and_calls_are_told_in_our_own_words(serve: Serve) -> None:
    server = await serve(asks(READ))
    async with following(server) as feed:
        await feed.position()
        await _one_call(server)
        told = {event.event: read(event) for event in await feed.until("run-finished")}
    opened, settled = told["call-opened"], told["call-settled"]
    assert (opened["threadId"], opened["executor"], opened["phase"]) == ("t1", "client", "ready")
    assert opened["input"] == {"text": "a"}
    assert opened["callId"] == settled["callId"]
    assert settled["outcome"] == {"kind": "success", "output": "the note"}
    assert told["run-started"]["runId"] == opened["runId"]
    assert told["run-finished"]["state"] == "done"


@requirement("events:told")
async def test_a_call_without_a_run_is_told_as_well(serve: Serve, store: str) -> None:
    server = await serve(asks(READ), store=store)
    async with following(server) as feed, asyncio.TaskGroup() as group:
        await feed.position()
        async with ready(Program(server.http), "read") as notes:
            group.create_task(notes.program.execute("read", {"text": "b"}, sessionID="s1", messageID="m1"))
            await notes.answer(status="success", output=1)
            told = {event.event: read(event) for event in await feed.until("client-tool.completed")}
    assert told["call-opened"]["runId"] is None
    assert told["call-opened"]["threadId"] == "s1"
    assert told["client-tool.completed"]["messageID"] == "m1"


@requirement("events:position")
async def test_a_reader_without_a_position_hears_what_happens_from_now_on(serve: Serve) -> None:
    server = await serve(asks(READ))
    await Program(server.http).register("read")
    async with following(server) as feed:
        assert await feed.position() == "1.0"
        await Program(server.http, "mail").register("send")
        event = await feed.next()
        assert event is not None
        assert read(event)["clientID"] == "mail"


@requirement("events:position")
async def test_whoever_was_cut_anywhere_gets_exactly_the_rest(serve: Serve, store: str) -> None:
    server = await serve(asks(READ), store=store)
    await _one_call(server)
    async with following(server, "0") as feed:
        uncut = await feed.until("client-tool.unregistered")
    assert len({event.id for event in uncut}) == len(uncut)
    for heard, event in enumerate(uncut[:-1], 1):
        async with following(server, event.id) as by_address:
            assert await by_address.until("client-tool.unregistered") == uncut[heard:]
        async with following(server, "0", **{"last-event-id": event.id}) as by_header:
            assert await by_header.until("client-tool.unregistered") == uncut[heard:]


@requirement("events:position")
@pytest.mark.parametrize("position", ["999", "12345.3", "0.7", "nonsense", "-1", ""])
async def test_an_unknown_position_is_a_gap_and_a_replay(serve: Serve, position: str) -> None:
    server = await serve(asks(READ))
    await Program(server.http).register("read")
    async with following(server, position) as feed:
        gap, event = await feed.next(), await feed.next()
    assert gap is not None
    assert event is not None
    assert (gap.event, read(gap)) == ("gap", {"type": "gap", "after": position})
    assert event.event == "client-tool.registered"


@requirement("events:position")
async def test_a_feed_continues_after_a_restart_where_it_was(serve: Serve, file_store: str) -> None:
    first = await serve(asks(READ), store=file_store)
    async with following(first) as feed:
        await feed.position()
        await Program(first.http).register("read", graceSec=60)
        event = await feed.next()
        assert event is not None
        await first.stop()
        assert await feed.next() is None
    second = await serve(asks(READ), store=file_store)
    async with following(second, event.id) as feed:
        await Program(second.http, "mail").register("send")
        later = await feed.next()
        assert later is not None
        assert read(later)["clientID"] == "mail"


@requirement("attack:who-you-are")
async def test_nobody_hears_of_anothers(serve: Serve, store: str) -> None:
    def someone(request: HTTPConnection) -> Principal | None:
        name = request.headers.get("authorization", "").removeprefix("Bearer ")
        return Principal("acme", name, SCOPES) if name else None

    server = await serve(asks(READ), store=store, authenticate=someone)
    ann, bob = {"authorization": "Bearer ann"}, {"authorization": "Bearer bob"}
    async with following(server, **ann) as feed:
        await feed.position()
        for headers, client_id in ((bob, "bobs"), (ann, "anns")):
            body = {"clientID": client_id, "tools": []}
            await server.http.post("/client-tools/register", json=body, headers=headers)
        event = await feed.next()
        assert event is not None
        assert read(event)["clientID"] == "anns"
    refused = await server.stranger.get("/api/events")
    assert (refused.status_code, refused.json()["error"]["code"]) == (401, "unauthenticated")


@requirement("events:told")
@pytest.mark.parametrize(
    ("own", "query"),
    [(0.05, ""), (0.05, "?keepAlive=never"), (0.05, "?keepAlive=60"), (600.0, "?keepAlive=0")],
)
@pytest.mark.slow
async def test_a_silent_feed_is_kept_alive_and_sooner_for_who_wishes_so(
    serve: Serve, own: float, query: str
) -> None:
    quiet = Agent(ScriptedModel(lambda moment: "hm"))
    server = await serve(quiet, settings=Settings(timeouts=Timeouts(keep_alive=own)))
    async with server.http.stream("GET", f"/api/events{query}") as response:
        chunks, text = response.aiter_text(), ""
        async with asyncio.timeout(WITHIN_SEC):
            while text.count(": keep-alive") < 2:
                text += await anext(chunks)
    assert text.startswith("id: 0.0\n\n")


async def _call_in(server: Served, thread: str) -> None:
    """A call without a run, made and answered in this thread."""
    async with ready(Program(server.http), "read") as notes, asyncio.TaskGroup() as group:
        group.create_task(notes.program.execute("read", {"text": thread}, sessionID=thread))
        await notes.answer(status="success", output=thread)


async def test_a_reader_of_one_thread_hears_of_that_thread_alone(serve: Serve, store: str) -> None:
    server = await serve(asks(READ), store=store)
    async with following(server, thread="mine") as feed:
        await feed.position()
        for thread in ("other", "mine", "other"):
            await _call_in(server, thread)
        told = await feed.until("client-tool.completed")
    assert [event.event for event in told] == [
        "call-opened",
        "client-tool.request",
        "call-taken",
        "client-tool.executing",
        "call-settled",
        "client-tool.completed",
    ]
    assert {read(event).get("threadId", "mine") for event in told} == {"mine"}


async def test_a_reader_of_one_thread_resumes_at_positions_that_all_readers_share(serve: Serve) -> None:
    server = await serve(asks(READ))
    for thread in ("other", "mine", "other"):
        await _call_in(server, thread)
    async with following(server, "0", "mine") as feed:
        uncut = await feed.until("client-tool.completed")
    async with following(server, "0") as feed:
        everything = [event for _ in range(3) for event in await feed.until("client-tool.completed")]
    assert [event for event in everything if event in uncut] == uncut
    for heard, event in enumerate(uncut[:-1], 1):
        async with following(server, event.id, "mine") as feed:
            assert await feed.until("client-tool.completed") == uncut[heard:]


async def test_the_position_of_a_silent_thread_moves_on_with_the_others(serve: Serve) -> None:
    server = await serve(asks(READ))
    async with following(server, thread="mine") as feed:
        start = await feed.position()
        await _call_in(server, "other")
        async with following(server, "0") as all_threads:
            last = (await all_threads.until("client-tool.completed"))[-1].id
        assert start != await feed.position(last)


@pytest.mark.parametrize("thread", ["", "a b", "x" * 129, "a/b"])
async def test_a_thread_that_cannot_be_is_refused_with_the_reason(serve: Serve, thread: str) -> None:
    server = await serve(asks(READ))
    answer = await server.http.get("/api/events", params={"thread": thread})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid")
    assert "`thread` is not the id of a thread" in answer.json()["error"]["message"]


async def test_an_open_stream_stays_open_while_the_store_is_down(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = await serve(Agent(ScriptedModel(["Hello."])))
    store = server.service.log.store
    feed, refused = store.feed, asyncio.Event()

    async def away(owner: Owner, *, after: int, limit: int) -> list[FeedRow]:
        refused.set()
        raise StoreDown("The store is away.")

    monkeypatch.setattr("farhand.eventlog.feed.STORE_RETRY_SEC", 0.01)
    async with following(server) as stream:
        await stream.position()
        monkeypatch.setattr(store, "feed", away)
        server.service.log.broker.publish(feed_topic(LOCAL), None)
        await asyncio.wait_for(refused.wait(), WITHIN_SEC)
        monkeypatch.setattr(store, "feed", feed)
        await chat(server.http)
        assert (await stream.until("run-finished"))[0].event == "run-started"


async def test_entries_whose_call_cannot_be_read_yet_are_sent_once_it_can(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = await serve(asks(READ))
    await _one_call(server)
    eventlog = server.service.log
    get_call, errors = eventlog.get_call, [StoreDown("The store is away.")] * 2

    async def away(owner: Owner, call_id: str) -> Call | None:
        if errors:
            raise errors.pop()
        return await get_call(owner, call_id)

    monkeypatch.setattr("farhand.faces.events.STORE_RETRY_SEC", 0.01)
    monkeypatch.setattr(eventlog, "get_call", away)
    # from the first frame of the call's opening
    async with following(server, after="2.1") as feed:
        told = [event.event for event in await feed.until("client-tool.completed")]
    assert told == [
        "client-tool.request",
        "call-taken",
        "client-tool.executing",
        "call-settled",
        "client-tool.completed",
    ]
    assert errors == []


async def test_a_stream_ends_at_a_shutdown_though_the_store_is_down(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = await serve(asks(READ))
    await _one_call(server)
    asked = asyncio.Event()

    async def away(owner: Owner, call_id: str) -> Call | None:
        asked.set()
        raise StoreDown("The store is away.")

    monkeypatch.setattr("farhand.faces.events.STORE_RETRY_SEC", 0.01)
    monkeypatch.setattr(server.service.log, "get_call", away)
    async with following(server, after="2") as feed:
        await asyncio.wait_for(asked.wait(), WITHIN_SEC)
        server.service.log.broker.close()
        assert await feed.next() is None


async def test_entries_whose_call_can_never_be_read_are_sent_without_it(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = await serve(asks(READ))
    await _one_call(server)

    async def unreadable(owner: Owner, call_id: str) -> Call | None:
        raise Unreadable("Row 1 of a thread's log cannot be read.")

    monkeypatch.setattr(server.service.log, "get_call", unreadable)
    async with following(server, after="2") as feed:
        told = [event.event for event in await feed.until("call-settled")]
    assert told == ["call-opened", "call-taken", "call-settled"]
