"""The SDK against a real server: handlers run once, answers arrive, and it stops cleanly."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from typing import Any

import pytest

from farhand.client import Client, current
from farhand.client.connection import ServerConnection
from farhand.client.executor import CLIENT_STOPPED, INTERRUPTED
from farhand.core.call import Call
from farhand.core.outcome import Cancelled, Failure, Success, TimedOut
from farhand.core.principal import LOCAL
from farhand.errors import BadSetting, BadTool, Misuse, Rejected, Superseded
from tests.faces.client_tools.program import Program
from tests.faces.served import Served
from tests.requirement import requirement
from tests.unit.client.served_clients import call, eventually, house, running


def notes(server: Served, **more: object) -> Client:
    # each value is one of the client's own
    return Client(server.url, "notes", token=server.token, **more)  # type: ignore[arg-type]


def with_echo(client: Client) -> Client:
    @client.tool
    def echo(text: str) -> str:
        """Say it again.

        Args:
            text: What to say.
        """
        return text

    return client


async def test_a_tool_is_offered_with_its_time_its_title_and_the_wish_to_ask_first() -> None:
    async with house() as server:
        client = notes(server)

        @client.tool(timeout_sec=300, needs_approval=True, title="Run the tests")
        def run_tests(path: str) -> str:
            """Run the tests.

            Args:
                path: Where.
            """
            return f"{path} passed"

        client.add("count", "Counts.", {"type": "object"}, lambda: 3, timeout_sec=5)
        async with running(client):
            tools = {tool.name: tool for tool in server.app.sessions.registry.tools(LOCAL)}
            asked, plain = tools["client_notes_run_tests"], tools["client_notes_count"]
            assert (asked.timeout_sec, asked.needs_approval, asked.title) == (300.0, True, "Run the tests")
            assert (plain.timeout_sec, plain.needs_approval, plain.title) == (5.0, False, None)


async def test_the_return_type_is_the_output_schema_that_the_server_checks() -> None:
    async with house() as server:
        client = notes(server)

        @client.tool
        def count(text: str) -> dict[str, int]:
            """Count the words of a text.

            Args:
                text: The text.
            """
            # wrong on purpose for one text, as a program without a type checker may be
            return {"words": len(text.split()) if text else "none"}  # type: ignore[dict-item]

        async with running(client):
            [tool] = server.app.sessions.registry.tools(LOCAL)
            assert tool.output_schema is not None
            assert tool.output_schema["additionalProperties"] == {"type": "integer"}
            assert await call(server, "count", {"text": "a b"}) == Success({"words": 2})
            refused = await call(server, "count", {"text": ""})
            assert isinstance(refused, Failure)
            assert "does not fit its schema" in refused.error


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"timeout_sec": 0}, "must be a number of seconds from 1 to 86400"),
        ({"needs_approval": lambda input: True}, "must be True or False"),
        ({"title": " "}, "must be a title"),
        ({"executor": "frontend"}, "has no option `executor`"),
    ],
)
def test_an_option_that_cannot_be_is_reported_at_once(options: dict[str, object], words: str) -> None:
    client = Client("http://127.0.0.1:1", "notes")

    def read() -> str:
        """Read."""
        return ""

    with pytest.raises(BadTool, match=words):
        # wrong on purpose, as from a program without a type checker
        client.tool(**options)(read)  # type: ignore[call-overload]
    with pytest.raises(BadTool, match=words):
        client.add("read", "Reads.", {"type": "object"}, read, **options)  # type: ignore[arg-type]


def test_a_handler_has_the_schema_of_its_signature_and_stays_a_function() -> None:
    client = Client("http://127.0.0.1:1", "notes")

    @client.tool(name="read-note")
    def read(name: str, lines: int = 10) -> str:
        """Read a note.

        Args:
            name: Which one.
            lines: How much of it.
        """
        return f"{name}:{lines}"

    assert read("a") == "a:10"
    assert read.tool.name == "read-note"
    assert read.tool.input_schema["required"] == ["name"]


@pytest.mark.parametrize("client_id", ["", "a.b", "a b", "x" * 65])
def test_a_client_needs_a_name_that_the_wire_takes(client_id: str) -> None:
    with pytest.raises(BadSetting, match="is not a valid client id"):
        Client("http://127.0.0.1:1", client_id)


def test_at_least_one_handler_runs_at_a_time() -> None:
    with pytest.raises(BadSetting, match="at_once"):
        Client("http://127.0.0.1:1", "notes", at_once=0)


def test_current_is_for_handlers_alone() -> None:
    with pytest.raises(Misuse, match="outside of a handler"):
        current()


@pytest.mark.slow
def test_the_sdk_loads_no_server() -> None:
    code = (
        "import sys, farhand.client;"
        "print([m for m in sys.modules if m.split('.')[0] in {'starlette', 'uvicorn', 'sqlite3', 'typer'}"
        " or m.startswith(('farhand.server', 'farhand.store', 'farhand.agent', 'farhand.faces'))])"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "[]"


async def test_sync_and_async_handlers_bring_their_results() -> None:
    async with house() as server:
        client = with_echo(notes(server))
        client.add("sum", "Add up.", {"type": "object"}, lambda **numbers: sum(numbers.values()))

        @client.tool
        async def later(text: str) -> dict[str, str]:
            """Say it later.

            Args:
                text: What to say.
            """
            await asyncio.sleep(0)
            return {"said": text}

        async with running(client):
            assert await call(server, "echo", {"text": "hey"}) == Success("hey")
            assert await call(server, "later", {"text": "hey"}) == Success({"said": "hey"})
            assert await call(server, "sum", {"a": 1, "b": 2}) == Success(3)


async def test_whatever_a_handler_raises_is_a_failure() -> None:
    async with house() as server:
        client = notes(server)

        @client.tool
        def broken(text: str) -> str:
            """Break.

            Args:
                text: Whatever.
            """
            raise ValueError(f"no {text}")

        async with running(client):
            assert await call(server, "broken", {"text": "way"}) == Failure("ValueError: no way")


async def test_a_result_that_the_server_does_not_take_is_told_as_a_failure() -> None:
    async with house() as server:
        client = notes(server)

        @client.tool
        def huge(size: int) -> str:
            """Return a lot.

            Args:
                size: How much.
            """
            return "x" * size

        async with running(client):
            outcome = await call(server, "huge", {"size": 1_048_560})
    assert isinstance(outcome, Failure)
    assert "could not be sent" in outcome.error


async def test_a_handler_may_say_what_people_are_shown() -> None:
    async with house() as server:
        client = notes(server)

        @client.tool
        def read(text: str) -> str:
            """Read.

            Args:
                text: What.
            """
            now = current()
            now.title, now.metadata = f"Reading {now.tool}", {"thread": now.thread_id}
            return text

        program = Program(server.http)
        async with running(client):
            shown = (await program.execute("read", {"text": "a"}, sessionID="s9")).json()
    assert shown == {
        "status": "success",
        "title": "Reading read",
        "output": "a",
        "metadata": {"thread": "s9"},
    }


async def test_only_so_many_handlers_run_at_a_time() -> None:
    async with house() as server:
        client = notes(server, at_once=3)
        running_now, most = 0, 0

        @client.tool
        async def slow(text: str) -> str:
            """Be slow.

            Args:
                text: Whatever.
            """
            nonlocal running_now, most
            running_now += 1
            most = max(most, running_now)
            await asyncio.sleep(0.02)
            running_now -= 1
            return text

        async with running(client):
            outcomes = await asyncio.gather(*(call(server, "slow", {"text": str(n)}) for n in range(12)))
    assert outcomes == [Success(str(n)) for n in range(12)]
    assert most == 3


async def test_progress_tells_the_server_that_the_call_is_worked_on() -> None:
    async with house() as server:
        client = notes(server)
        begun, report, go_on = threading.Event(), threading.Event(), threading.Event()

        @client.tool
        def work(text: str) -> str:
            """Work.

            Args:
                text: Whatever.
            """
            begun.set()
            assert report.wait(10)
            current().progress("half of it")
            assert go_on.wait(10)
            return text

        async with running(client), asyncio.TaskGroup() as group:
            outcome = group.create_task(call(server, "work", {"text": "a"}))
            await asyncio.to_thread(begun.wait, 10)
            [open_call] = await server.service.log.open_calls(LOCAL)
            assert open_call.take is not None
            first = open_call.take.until
            report.set()

            async def renewed() -> bool:
                [now] = await server.service.log.open_calls(LOCAL)
                return now.take is not None and now.take.until > first

            await eventually(renewed)
            go_on.set()
            assert await outcome == Success("a")


@pytest.mark.slow
async def test_a_handler_is_cancelled_when_its_call_is_over() -> None:
    async with house() as server:
        client = notes(server)
        began, ended = asyncio.Event(), asyncio.Event()

        @client.tool
        async def forever(text: str) -> str:
            """Never end.

            Args:
                text: Whatever.
            """
            began.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()
            return text

        async with running(client):
            assert await call(server, "forever", {"text": "a"}, within=1) == TimedOut(1.0)
            await ended.wait()
            began.clear()
            ended.clear()
            async with asyncio.TaskGroup() as group:
                outcome = group.create_task(call(server, "forever", {"text": "b"}))
                # one that is cancelled before it begins is never begun
                await began.wait()
                await server.service.desk.cancel([await _taken(server)], "stopped by the user")
                assert await outcome == Cancelled("stopped by the user")
            await ended.wait()


async def _taken(server: Served) -> Call:
    """The one call that is open, once the client has it."""

    async def look() -> list[Call]:
        return [found for found in await server.service.log.open_calls(LOCAL) if found.take is not None]

    [taken] = await eventually(look)
    return taken


async def test_a_stopped_client_finishes_its_work_and_withdraws_its_tools() -> None:
    async with house() as server:
        client = notes(server)
        begun, go_on = asyncio.Event(), asyncio.Event()

        @client.tool
        async def slow(text: str) -> str:
            """Be slow.

            Args:
                text: Whatever.
            """
            begun.set()
            await go_on.wait()
            return text

        async with running(client) as run, asyncio.TaskGroup() as group:
            outcome = group.create_task(call(server, "slow", {"text": "a"}))
            await begun.wait()
            client.stop()
            go_on.set()
            assert await outcome == Success("a")
            await run
        assert await Program(server.http).tools() == []


async def test_what_is_not_finished_in_time_is_answered_as_stopped() -> None:
    async with house() as server:
        client = notes(server, finish_within=0.1)
        begun = asyncio.Event()

        @client.tool
        async def forever(text: str) -> str:
            """Never end.

            Args:
                text: Whatever.
            """
            begun.set()
            await asyncio.Event().wait()
            return text

        async with running(client), asyncio.TaskGroup() as group:
            outcome = group.create_task(call(server, "forever", {"text": "a"}))
            await begun.wait()
            client.stop()
            assert await outcome == CLIENT_STOPPED


async def test_a_cancelled_client_withdraws_its_tools_as_well() -> None:
    async with house() as server:
        async with running(with_echo(notes(server))) as run:
            assert len(await Program(server.http).tools()) == 1
            run.cancel()
            await asyncio.wait([run])
        assert await Program(server.http).tools() == []


async def test_a_client_can_run_again() -> None:
    async with house() as server:
        client = with_echo(notes(server))
        for text in "ab":
            async with running(client):
                assert await call(server, "echo", {"text": text}) == Success(text)


async def test_another_program_of_the_same_name_takes_over_and_the_first_one_ends() -> None:
    async with house() as server:
        first, second = with_echo(notes(server)), with_echo(notes(server))
        with pytest.raises(ExceptionGroup) as faults:
            async with running(first), running(second):
                await asyncio.Event().wait()
        assert isinstance(faults.value.exceptions[0], ExceptionGroup | Superseded)
        assert faults.group_contains(Superseded)


async def test_who_is_superseded_takes_nothing_with_it() -> None:
    async with house() as server:
        first, second = with_echo(notes(server)), with_echo(notes(server))
        async with asyncio.TaskGroup() as group:
            ended = group.create_task(_fault_of(first))
            await first.connected.wait()
            async with running(second):
                assert isinstance(await ended, Superseded)
                assert await call(server, "echo", {"text": "second"}) == Success("second")


async def test_who_stops_while_another_takes_over_fails_none_of_its_calls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    unregister, leaving, leave = ServerConnection.unregister, asyncio.Event(), asyncio.Event()

    async def unregister_late(link: ServerConnection, tool_ids: list[str] | None = None) -> None:
        leaving.set()
        await leave.wait()
        await unregister(link, tool_ids)

    async with house() as server, asyncio.TaskGroup() as group:
        first, second = with_echo(notes(server)), notes(server)
        begun, go_on = asyncio.Event(), asyncio.Event()

        @second.tool
        async def echo(text: str) -> str:
            """Say it again, slowly.

            Args:
                text: What to say.
            """
            begun.set()
            await go_on.wait()
            return text

        monkeypatch.setattr(ServerConnection, "unregister", unregister_late)
        async with running(first) as ended:
            first.stop()
            await leaving.wait()
            async with running(second):
                outcome = group.create_task(call(server, "echo", {"text": "second"}))
                await begun.wait()
                leave.set()
                await ended
                go_on.set()
                assert await outcome == Success("second")


async def _fault_of(client: Client) -> Exception | None:
    try:
        await client.run()
    except (Superseded, Rejected) as fault:
        return fault
    return None


async def test_a_server_that_says_no_ends_the_run_with_its_words() -> None:
    async with house() as server:
        stranger = with_echo(Client(server.url, "notes", token="wrong"))
        fault = await _fault_of(stranger)
        assert isinstance(fault, Rejected)
        assert (fault.status, fault.answered) == (401, "UNAUTHENTICATED")
        await Program(server.http, "a").register("b_echo")
        clash = with_echo(Client(server.url, "a_b", token=server.token))
        fault = await _fault_of(clash)
        assert isinstance(fault, Rejected)
        assert (fault.status, fault.answered) == (409, "CONFLICT")


@requirement("client:once")
async def test_a_call_that_a_program_before_had_is_a_failure_and_not_run_again() -> None:
    async with house() as server:
        client = with_echo(notes(server))
        program = Program(server.http)
        await program.register("echo")
        async with asyncio.TaskGroup() as group:
            outcome = group.create_task(call(server, "echo", {"text": "a"}))
            # a program of the same client that crashed right after it got the request
            async with program.listen(holder="notes.crashed") as stream:
                await stream.request()
            async with running(client):
                assert await outcome == INTERRUPTED
                assert await call(server, "echo", {"text": "b"}) == Success("b")


async def test_tools_that_a_program_before_had_and_this_one_has_not_are_withdrawn() -> None:
    async with house() as server:
        await Program(server.http).register("old", "echo")
        async with running(with_echo(notes(server))):
            assert [tool["id"] for tool in await Program(server.http).tools()] == ["client_notes_echo"]


@pytest.mark.slow
@pytest.mark.parametrize("library", ["httpx2", "stamina"])
def test_a_missing_library_is_one_line_that_says_what_to_install(library: str) -> None:
    program = f"import sys; sys.modules[{library!r}] = None; import farhand.client"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    last = ran.stderr.strip().splitlines()[-1]
    assert last.endswith("is not installed. Install it: pip install 'farhand[client]'.")


@pytest.mark.slow
def test_a_program_that_waits_for_its_server_says_so_once() -> None:
    program = """
import asyncio, logging
from contextlib import suppress
from farhand.client import Client

async def main():
    said = asyncio.Event()
    logging.getLogger("farhand.client").addFilter(lambda record: said.set() is None)
    running = asyncio.create_task(Client("http://127.0.0.1:9", "office").run())
    await said.wait()
    # it tries several times more
    with suppress(TimeoutError):
        await asyncio.wait_for(running, 1.0)

asyncio.run(main())
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    [line] = ran.stderr.splitlines()
    assert line.startswith("client office cannot reach http://127.0.0.1:9, retrying: ")


# Any: what a program without a type checker may pass
@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("url", 5),
        ("url", "127.0.0.1:8787"),
        ("client_id", 5),
        ("client_id", "my notes"),
        ("token", 5),
        ("token", "secret\n"),
        ("at_once", "two"),
        ("at_once", 0),
        ("grace_sec", "5"),
        ("finish_within", -1),
        ("finish_within", "5"),
    ],
)
def test_an_argument_that_cannot_be_used_is_refused_when_the_client_is_made(
    argument: str, value: Any
) -> None:
    arguments: dict[str, Any] = {"url": "http://127.0.0.1:8787", "client_id": "notes"}
    with pytest.raises(BadSetting):
        Client(**arguments | {argument: value})
