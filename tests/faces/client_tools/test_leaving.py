"""Disconnect, unregister, restart: when tools are removed, and how their calls end."""

from __future__ import annotations

import asyncio

import pytest

from farhand import Agent, ClientTools, ScriptedModel, Timeouts
from farhand.agent import direct_calls
from farhand.core.outcome import Cancelled, Failure, Outcome, Success
from farhand.core.principal import LOCAL
from farhand.store.base import CallFilter
from farhand.store.open import open_store
from tests.faces.client_tools.program import Json, Program, eventually, ready, soon
from tests.faces.conftest import Serve
from tests.faces.served import Served
from tests.requirement import requirement

QUIET = ScriptedModel(lambda moment: "hm")


async def _without_tools(program: Program) -> None:
    async def look() -> bool:
        return not await program.tools()

    await eventually(look)


@requirement("client-tools:grace")
async def test_tools_leave_after_the_grace_from_the_loss_of_the_last_stream(serve: Serve, store: str) -> None:
    server = await serve(Agent(QUIET), store=store, settings=soon())
    notes = Program(server.http)
    async with ready(notes, "read"):
        assert len(await notes.tools()) == 1
    assert len(await notes.tools()) == 1
    await _without_tools(notes)


@requirement("client-tools:grace")
async def test_who_comes_back_within_the_grace_has_lost_nothing(serve: Serve) -> None:
    server = await serve(Agent(QUIET), settings=soon())
    notes = Program(server.http)
    async with asyncio.TaskGroup() as group:
        async with ready(notes, "read", graceSec=60) as first:
            executed = group.create_task(notes.execute("read", {"text": "a"}))
            request = await first.stream.request()
        async with notes.listen() as stream:
            assert await stream.request() == request
            await notes.result(request["requestID"], status="success", output="kept")
    assert executed.result().json()["output"] == "kept"


@requirement("client-tools:grace")
async def test_a_result_may_come_without_a_stream_within_the_grace(serve: Serve) -> None:
    server = await serve(Agent(QUIET), settings=soon())
    notes = Program(server.http)
    async with asyncio.TaskGroup() as group:
        async with ready(notes, "read", graceSec=60) as first:
            executed = group.create_task(notes.execute("read", {"text": "a"}))
            request = await first.stream.request()
        await notes.result(request["requestID"], status="success", output="kept")
    assert executed.result().json()["output"] == "kept"


@requirement("client-tools:grace")
async def test_a_grace_of_nothing_ends_with_the_stream(serve: Serve) -> None:
    server = await serve(Agent(QUIET), settings=soon(client_grace=60.0))
    notes = Program(server.http)
    async with ready(notes, "read", graceSec=0):
        pass
    await _without_tools(notes)


@requirement("client-tools:grace")
async def test_registering_again_does_not_extend_the_grace_and_may_shorten_it(serve: Serve) -> None:
    server = await serve(Agent(QUIET), settings=soon(client_first=60.0))
    notes = Program(server.http)
    async with ready(notes, "read", graceSec=60):
        pass
    await notes.register("read", graceSec=0)
    await _without_tools(notes)


@requirement("client-tools:grace")
async def test_a_registration_that_never_had_a_stream_gets_its_own_time(serve: Serve) -> None:
    server = await serve(Agent(QUIET), settings=soon(client_first=0.2, client_grace=60.0))
    notes = Program(server.http)
    await notes.register("read")
    await _without_tools(notes)


@requirement("client-tools:grace")
def test_the_times_are_5_and_60_seconds_unless_they_are_set_otherwise() -> None:
    assert (Timeouts().client_grace, Timeouts().client_first) == (5.0, 60.0)


@requirement("client-tools:grace")
async def test_a_stream_that_was_there_before_the_registration_counts(serve: Serve) -> None:
    server = await serve(Agent(QUIET), settings=soon(client_first=60.0, client_grace=0.1))
    notes = Program(server.http)
    async with notes.listen() as stream, asyncio.TaskGroup() as group:
        await notes.register("read")
        group.create_task(notes.execute("read", {"text": "a"}))
        request = await stream.request()
        await notes.result(request["requestID"], status="success", output=1)
    await _without_tools(notes)


@requirement("client-tools:grace")
async def test_open_calls_of_a_lost_client_fail_and_say_so(serve: Serve, store: str) -> None:
    server = await serve(Agent(QUIET), store=store, settings=soon(client_grace=0.1))
    async with ready(Program(server.http), "read", "search") as notes, asyncio.TaskGroup() as group:
        calls = [
            group.create_task(server.service.call("client_notes_read", {"text": "a"}, thread="t1")),
            group.create_task(server.service.call("client_notes_search", {"text": "b"}, thread="t1")),
        ]
        for _ in calls:
            await notes.stream.request()
        group.create_task(_cut(server))
    assert [call.result() for call in calls] == [Failure("client disconnected")] * 2


async def _cut(server: Served) -> None:
    """The connection breaks, as seen from the server."""
    for inbox in list(server.app.sessions.presence._here.values()):
        inbox.leave()


@requirement("client-tools:unregister")
async def test_unregistering_a_tool_fails_its_open_calls_at_once_and_no_others(
    serve: Serve, store: str
) -> None:
    server = await serve(Agent(QUIET), store=store)
    async with ready(Program(server.http), "read", "search") as notes, asyncio.TaskGroup() as group:
        lost = group.create_task(server.service.call("client_notes_read", {"text": "a"}, thread="t1"))
        await notes.stream.request()
        kept = group.create_task(server.service.call("client_notes_search", {"text": "b"}, thread="t1"))
        request = await notes.stream.request()
        await notes.program.unregister(toolIDs=["read"])
        assert await lost == Failure("the client unregistered this tool")
        await notes.program.result(request["requestID"], status="success", output="kept")
        assert await kept == Success("kept")


@requirement("client-tools:grace")
async def test_what_waits_for_an_approval_is_cancelled_with_its_client(serve: Serve, store: str) -> None:
    server = await serve(Agent(QUIET), store=store, client_tools=ClientTools(approval="always"))
    notes = Program(server.http)
    await notes.register("read")
    async with asyncio.TaskGroup() as group:
        call = group.create_task(server.service.call("client_notes_read", {"text": "a"}, thread="t1"))
        await eventually(lambda: server.service.log.open_calls(LOCAL))
        await notes.unregister()
    assert call.result() == Cancelled("the client unregistered this tool")


async def test_a_result_that_races_the_end_of_its_client_has_one_outcome(serve: Serve, store: str) -> None:
    server = await serve(Agent(QUIET), store=store)
    for number in range(10):
        notes = Program(server.http, f"c{number}")
        async with ready(notes, "read") as here, asyncio.TaskGroup() as group:
            call = group.create_task(
                server.service.call(f"client_c{number}_read", {"text": "a"}, thread="t1")
            )
            request = await here.stream.request()
            racing = [
                group.create_task(notes.result(request["requestID"], status="success", output="won")),
                group.create_task(notes.unregister()),
            ]
        outcome = call.result()
        result, left = (task.result() for task in racing)
        assert left.json()["unregistered"] == [f"client_c{number}_read"]
        if outcome == Success("won"):
            assert result.json() is True
        else:
            assert outcome == Failure("the client unregistered this tool")
            assert result.status_code == 409
        stored = await server.service.log.get_call(LOCAL, request["requestID"])
        assert stored is not None
        assert stored.outcome == outcome


async def test_a_call_opened_while_its_tool_leaves_does_not_wait_for_its_deadline(
    serve: Serve, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = await serve(Agent(QUIET), store=store)
    notes = Program(server.http)
    await notes.register("read")
    decide = direct_calls._decide

    async def leaving_first(*arguments: Json, **options: Json) -> Json:
        await notes.unregister()
        return await decide(*arguments, **options)

    monkeypatch.setattr(direct_calls, "_decide", leaving_first)
    async with asyncio.timeout(10):
        outcome = await server.service.call("client_notes_read", {"text": "a"}, thread="t1")
    assert outcome == Failure("client disconnected")


@requirement("client-tools:restart")
async def test_a_shutdown_is_nobodys_disconnect(serve: Serve, file_store: str) -> None:
    server = await serve(Agent(QUIET), store=file_store)
    async with asyncio.TaskGroup() as group:
        async with ready(Program(server.http), "read", graceSec=0) as notes:
            # the caller goes with its server; the call does not
            cut = group.create_task(_execute_until_cut(notes.program))
            request = await notes.stream.request()
            await server.stop()
        assert await cut == 503
    left = await open_store(file_store)
    assert [client.client_id for client in await left.clients.all()] == ["notes"]
    open_calls = await left.open_calls(CallFilter(owner=LOCAL, client_id="notes"))
    assert [each.call.call_id for each in open_calls] == [request["requestID"]]
    await left.close()


async def _execute_until_cut(program: Program) -> int:
    return (await program.execute("read", {"text": "a"}, requestID="job-1")).status_code


@requirement("client-tools:restart")
@pytest.mark.parametrize("comes_back", [True, False])
async def test_after_a_restart_the_grace_counts_from_readiness(
    serve: Serve, file_store: str, comes_back: bool
) -> None:
    first = await serve(Agent(QUIET), store=file_store)
    async with asyncio.TaskGroup() as group:
        # it has time to come back; the one that does not is waited for
        grace = 60 if comes_back else 1
        async with ready(Program(first.http), "read", graceSec=grace) as notes:
            cut = group.create_task(_execute_until_cut(notes.program))
            request = await notes.stream.request()
            await first.stop()
        assert await cut == 503
    second = await serve(Agent(QUIET), store=file_store)
    again = Program(second.http)
    assert [tool["id"] for tool in await again.tools()] == ["client_notes_read"]
    if not comes_back:
        await _without_tools(again)
        # the second step of a withdrawal
        outcome = await eventually(lambda: _outcome_of(second, request["requestID"]))
        assert outcome == Failure("client disconnected")
        return
    async with again.listen() as stream:
        assert await stream.request() == request
        assert (await again.result(request["requestID"], status="success", output="kept")).json() is True
    executed = await again.execute("read", {"text": "a"}, requestID="job-1")
    assert executed.json()["output"] == "kept"


async def _outcome_of(server: Served, call_id: str) -> Outcome | None:
    call = await server.service.log.get_call(LOCAL, call_id)
    return None if call is None else call.outcome
