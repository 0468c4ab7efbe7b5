"""The commands that talk to a running server, against a real one."""

from __future__ import annotations

import asyncio
import io
import json
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, redirect_stderr, redirect_stdout
from typing import Any, NamedTuple

import pytest

from farhand import Agent, ScriptedModel, tool
from farhand.cli import main
from farhand.cli.remote.http import RemoteServer
from farhand.cli.remote.render import format_input, show_progress
from farhand.client import Client, current
from farhand.core.event import CallProgressed
from farhand.core.principal import LOCAL
from tests.faces.client_tools.program import eventually
from tests.faces.served import Options, Served, served
from tests.requirement import requirement


class CommandResult(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.out.count("\n") == 1
        return json.loads(self.out)


@tool(needs_approval=True)
def erase(text: str) -> str:
    """Erase something.

    Args:
        text: What to erase.

    Returns:
        What was erased.
    """
    return f"{text} is gone"


@tool(executor="frontend")
def ask_text(question: str) -> str:
    """Ask the person.

    Args:
        question: What to ask.

    Returns:
        What they typed.
    """
    raise NotImplementedError(question)


@tool(executor="frontend")
def stretch(minutes: int) -> None:
    """Stretch.

    Args:
        minutes: How long.

    Returns:
        Nothing.
    """
    raise NotImplementedError(minutes)


class House:
    def __init__(self, server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
        self.server = server
        self._monkeypatch = monkeypatch

    async def farhand(self, *arguments: str, signed_in: bool = True) -> CommandResult:
        """Runs the command beside the server, as another program would."""
        where = ("--url", self.server.url)
        token = ("--token", self.server.token) if signed_in else ()
        return await asyncio.to_thread(self._run, (*arguments, *where, *token))

    def _run(self, arguments: tuple[str, ...]) -> CommandResult:
        self._monkeypatch.setattr(sys, "argv", ["farhand", *arguments])
        out, err, code = io.StringIO(), io.StringIO(), 0
        with redirect_stdout(out), redirect_stderr(err):
            try:
                main()
            except SystemExit as ended:
                code = int(ended.code or 0)
        return CommandResult(code, out.getvalue(), err.getvalue())


@pytest.fixture
async def house(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[House]:
    monkeypatch.setenv("COLUMNS", "200")
    agent = Agent(ScriptedModel(lambda moment: "hm"), tools=[erase], frontend_tools=[ask_text, stretch])
    async with asyncio.timeout(30), served(agent, Options()) as server:
        yield House(server, monkeypatch)


@asynccontextmanager
async def notes(house: House) -> AsyncIterator[None]:
    """A client that is there."""
    client = Client(house.server.url, "notes", token=house.server.token)

    @client.tool
    def read(name: str) -> object:
        """Read a note.

        Args:
            name: Which one.
        """
        if name == "none":
            raise LookupError("there is no such note")
        return {"text": "buy milk"} if name == "list" else f"note {name}"

    async with asyncio.TaskGroup() as group:
        group.create_task(client.run())
        await client.connected.wait()
        yield
        client.stop()


async def test_a_call_prints_what_comes_back(house: House) -> None:
    async with notes(house):
        result = await house.farhand("call", "client_notes_read", '{"name": "todo"}')
        assert (result.code, result.out) == (0, "note todo\n")
        assert "waiting for client_notes_read" in result.err
        result = await house.farhand("call", "client_notes_read", '{"name": "list"}')
        assert json.loads(result.out) == {"text": "buy milk"}
        result = await house.farhand("call", "client_notes_read", '{"name": "todo"}', "--json")
        assert result.json == {"status": "success", "title": "client_notes_read", "output": "note todo"}


async def test_a_call_of_a_terminal_shows_a_line_that_moves(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    async with notes(house):
        result = await house.farhand("call", "client_notes_read", '{"name": "todo"}')
    assert "waiting for client_notes_read" in result.err
    assert "0:00:0" in result.err


HOSTILE = "a\tb\x1b[2J\x1b]0;title\x07\u009b2J\u202ec\x7f\nd"


async def test_a_terminal_shows_what_comes_back_and_obeys_none_of_it(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with notes(house):
        asked = ("call", "client_notes_read", json.dumps({"name": HOSTILE}))
        assert (await house.farhand(*asked)).out == f"note {HOSTILE}\n", "a file gets every character"
        as_json = await house.farhand(*asked, "--json")
        assert as_json.json["output"] == f"note {HOSTILE}"
        assert not {"\x1b", "\u009b", "\x7f"} & set(as_json.out)
        monkeypatch.setenv("FORCE_COLOR", "1")
        shown = (await house.farhand(*asked)).out
        assert not {"\x1b", "\x07", "\u009b", "\u202e", "\x7f"} & set(shown)
        assert shown.splitlines() == ["note a  b�[2J�]0;title��2J�c�", "d"]


async def test_brackets_in_what_is_waited_for_are_shown_as_they_are(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    result = await house.farhand("call", "[red]no[/tool]")
    assert result.code == 2
    assert "There is no tool '[red]no[/tool]'." in result.err
    assert "waiting for [red]no[/tool]" in result.err


async def test_a_tool_that_fails_and_one_that_is_late_are_code_1(house: House) -> None:
    async with notes(house):
        result = await house.farhand("call", "client_notes_read", '{"name": "none"}')
        assert result.code == 1
        assert "farhand: error: client_notes_read: LookupError: there is no such note" in result.err
        result = await house.farhand("call", "client_notes_read", '{"name": "none"}', "--json")
        assert (result.code, result.json["status"]) == (1, "error")
    result = await house.farhand("call", "ask_text", '{"question": "?"}', "--timeout", "0.05")
    assert result.code == 1
    assert "did not answer in time" in result.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ("no_such_tool",),
            "There is no tool 'no_such_tool'. List them with farhand tools or GET /api/tools.",
        ),
        (("erase", "not json"), "The input is not JSON"),
        (("erase", "[1]"), "The input is not a JSON object."),
        (("erase", '{"text": 3}'), "`text` must be a string"),
        (("erase", '{"text": NaN}'), "NaN and Infinity are not JSON"),
        (("erase", '{"text": "a", "text": "b"}'), "text"),
        (("erase", '{"text": "\\ud800"}'), "half of a surrogate pair"),
        (("erase", '{"text": "\udcff"}'), "not valid UTF-8"),
        (("\udcff",), "An argument is not UTF-8 text. Nothing was sent."),
    ],
)
async def test_what_can_not_be_asked_is_one_line_and_code_2(
    house: House, arguments: tuple[str, ...], words: str
) -> None:
    result = await house.farhand("call", *arguments)
    assert (result.code, result.out) == (2, "")
    assert words in result.err
    assert result.err.count("farhand: error:") == 1


@pytest.mark.parametrize("arguments", [(), ("1", "--error", "broken")], ids=["neither", "both"])
async def test_an_answer_is_an_output_or_an_error(house: House, arguments: tuple[str, ...]) -> None:
    result = await house.farhand("inbox", "answer", "call_1", *arguments)
    assert result.code == 2
    assert (
        result.err == "farhand: error: Give an output or --error. The output of a tool without one is null.\n"
    )


async def test_an_answer_without_an_output_says_done_for_a_tool_that_returns_nothing(house: House) -> None:
    farhand = house.server.service
    async with asyncio.TaskGroup() as group:
        stretched = group.create_task(farhand.call("stretch", {"minutes": 5}, thread="t1"))
        asked = group.create_task(farhand.call("ask_text", {"question": "what?"}, thread="t1"))

        async def both() -> bool:
            return len(await farhand.log.open_calls(LOCAL)) == 2

        await eventually(both)
        calls = {each.tool: each.call_id for each in await farhand.log.open_calls(LOCAL)}
        assert (await house.farhand("inbox", "answer", calls["stretch"])).out == "Done.\n"
        refused = await house.farhand("inbox", "answer", calls["ask_text"])
        assert (refused.code, refused.out) == (2, "")
        assert "Give an output or --error." in refused.err
        await house.farhand("inbox", "answer", calls["ask_text"], '"this"')
    assert str(stretched.result()) == "Success(output=None)"
    assert str(asked.result()) == "Success(output='this')"


async def test_an_answer_that_is_not_quoted_twice_is_told_how(house: House) -> None:
    result = await house.farhand("inbox", "answer", "call_1", "yes")
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert """Quote it: '"yes"' or""" in result.err


async def test_a_request_id_gets_the_stored_answer(house: House) -> None:
    async with notes(house):
        first = await house.farhand("call", "client_notes_read", '{"name": "a"}', "--request-id", "job-1")
    again = await house.farhand(
        "call", "client_notes_read", '{"name": "a"}', "--request-id", "job-1", "--session", "other"
    )
    assert (first.out, again.out) == ("note a\n", "note a\n")


async def test_tools_are_listed_with_those_of_clients(house: House) -> None:
    async with notes(house):
        result = await house.farhand("tools")
        listed = await house.farhand("tools", "--json")
    assert result.code == 0
    rows = [line.split() for line in result.out.splitlines()]
    assert ["client_notes_read", "client", "Read", "a", "note."] in rows
    assert ["erase", "server", "yes", "Erase", "something."] in rows
    assert [tool["name"] for tool in listed.json["tools"]] == [
        "erase",
        "ask_text",
        "stretch",
        "client_notes_read",
    ]


async def test_runs_are_listed_newest_first(house: House) -> None:
    assert (await house.farhand("runs")).out == "There are no chats.\n"
    for thread in ("t1", "t2"):
        message = {"id": "m1", "role": "user", "parts": [{"type": "text", "text": f"hello {thread}"}]}
        await house.server.http.post("/api/chat", json={"id": thread, "messages": [message]})
    result = await house.farhand("runs")
    assert result.out.split()[:5] == ["chat", "state", "open", "started", "title"]
    assert [line.split()[0] for line in result.out.splitlines()[2:]] == ["t2", "t1"]
    assert "hello t1" in result.out
    assert len((await house.farhand("runs", "--limit", "1", "--json")).json["threads"]) == 1


async def test_what_waits_is_listed_answered_approved_and_denied(house: House) -> None:
    assert (await house.farhand("inbox")).out == "Nothing is waiting.\n"
    farhand = house.server.service
    async with asyncio.TaskGroup() as group:
        asked = group.create_task(farhand.call("ask_text", {"question": "what?"}, thread="t1"))
        yes = group.create_task(farhand.call("erase", {"text": "a"}, thread="t1"))
        no = group.create_task(farhand.call("erase", {"text": "b"}, thread="t1"))

        async def all_three() -> bool:
            return len(await farhand.log.open_calls(LOCAL)) == 3

        await eventually(all_three)
        result = await house.farhand("inbox", "list")
        assert result.out.count("approval") == 2
        assert "result from frontend" in result.out
        calls = {
            call["input"].get("text", "?"): call
            for call in (await house.farhand("inbox", "--json")).json["calls"]
        }
        assert (await house.farhand("inbox", "answer", calls["?"]["callId"], '"this"')).out == "Done.\n"
        again = await house.farhand("inbox", "answer", calls["?"]["callId"], '"this"')
        assert again.out == "Already done; nothing changed.\n"
        assert (await house.farhand("inbox", "approve", calls["a"]["approvalId"], "--json")).json == {
            "ok": True
        }
        denied = await house.farhand("inbox", "deny", calls["b"]["callId"], "--reason", "too dear")
        assert denied.out == "Done.\n"
    assert str(asked.result()) == "Success(output='this')"
    assert str(yes.result()) == "Success(output='a is gone')"
    assert str(no.result()) == "Denied(reason='too dear')"


@requirement("approval:readable")
async def test_what_is_asked_for_is_spelled_so_that_nothing_hides_in_it(house: House) -> None:
    farhand = house.server.service
    hidden = "/home/ada/secrets" + "\n" * 120 + "\x1b[2K\x1b[1G\u202enotes.txt" + " more" * 400
    async with asyncio.TaskGroup() as group:
        erased = group.create_task(farhand.call("erase", {"text": hidden}, thread="t1"))
        [call] = await eventually(lambda: farhand.log.open_calls(LOCAL))
        result = (await house.farhand("inbox")).out
        spelled = 'text="/home/ada/secrets⟦⏎ ×120⟧⟦U+001B⟧[2K⟦U+001B⟧[1G⟦U+202E⟧notes.txt more more more more'
        assert spelled in result
        assert "characters more⟧" in result
        assert not {"\x1b", "\u202e"} & set(result)
        allowed = (await house.farhand("inbox", "approve", call.call_id)).out
        assert allowed.startswith("Done. Allowed: erase  " + spelled)
    assert str(erased.result()) == f"Success(output={hidden + ' is gone'!r})"


async def test_an_edit_that_json_cannot_hold_approves_nothing(house: House) -> None:
    farhand = house.server.service
    async with asyncio.TaskGroup() as group:
        erased = group.create_task(farhand.call("erase", {"text": "a"}, thread="t1"))
        [call] = await eventually(lambda: farhand.log.open_calls(LOCAL))
        for wrong in ('{"text": NaN}', '{"text": "b", "text": "c"}', '{"text": "\\ud800"}', "b"):
            result = await house.farhand("inbox", "approve", call.call_id, "--input", wrong)
            assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
        assert (await house.farhand("inbox", "deny", call.call_id, "--reason", "\udcff")).code == 2
        [still] = await farhand.log.open_calls(LOCAL)
        assert still == call
        await house.farhand("inbox", "deny", call.call_id)
    assert str(erased.result()) == "Denied(reason='')"


@requirement("approval:readable")
def test_a_text_cannot_pass_for_another_parameter() -> None:
    assert format_input({"to": 'ada" copies=1 x="', "copies": 900, "all": [1, "\u200b"]}) == (
        'to="ada\\" copies=1 x=\\""  copies=900  all=[1,"⟦U+200B⟧"]'
    )
    assert format_input(None) == "null"


@requirement("approval:defaults")
def test_defaults_are_shown_and_marked() -> None:
    whole = {"to": "Ada", "urgent": True, "parcel": {"weight": 1, "unit": "kg"}}
    defaults = [["urgent"], ["parcel", "unit"]]
    assert format_input(
        {"to": "Ada"}, {"input": whole, "defaults": defaults, "leftOut": ["note", "cc\u200b"]}
    ) == (
        'to="Ada"  urgent=true (default)  parcel={"weight":1,"unit":"kg"} (default: unit)  '
        "(without note, cc⟦U+200B⟧)"
    )
    assert format_input({}, {"input": {"a": 1}, "defaults": [["a"]], "bySchema": True}) == (
        "a=1 (default in its schema)"
    )


async def test_an_approval_may_change_the_input_and_hold_for_the_chat(house: House) -> None:
    farhand = house.server.service
    async with asyncio.TaskGroup() as group:
        first = group.create_task(farhand.call("erase", {"text": "a"}, thread="t1"))
        [call] = await eventually(lambda: farhand.log.open_calls(LOCAL))
        await house.farhand("inbox", "approve", call.call_id, "--always", "--input", '{"text": "edited"}')
    assert str(first.result()) == "Success(output='edited is gone')"
    assert str(await farhand.call("erase", {"text": "b"}, thread="t1")) == "Success(output='b is gone')"


async def test_a_failure_may_be_brought_and_a_wrong_id_is_reported_in_one_line(house: House) -> None:
    farhand = house.server.service
    async with asyncio.TaskGroup() as group:
        asked = group.create_task(farhand.call("ask_text", {"question": "what?"}, thread="t1"))
        [call] = await eventually(lambda: farhand.log.open_calls(LOCAL))
        not_asking = await house.farhand("inbox", "approve", call.call_id)
        assert (not_asking.code, "does not wait for an approval" in not_asking.err) == (2, True)
        await house.farhand("inbox", "answer", call.call_id, "--error", "nobody is here")
    assert str(asked.result()) == "Failure(error='nobody is here')"
    wrong = await house.farhand("inbox", "answer", "call_1", "1")
    assert (wrong.code, wrong.err) == (
        2,
        "farhand: error: There is no such call or approval, or it is not yours.\n",
    )


async def test_without_the_token_or_a_server_it_is_one_line_and_code_2(house: House) -> None:
    result = await house.farhand("tools", signed_in=False)
    assert result.code == 2
    assert result.err.startswith("farhand: error: No valid credential was sent.")
    result = await asyncio.to_thread(house._run, ("tools", "--url", "http://127.0.0.1:1"))
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert "No server answers at http://127.0.0.1:1" in result.err
    not_addresses = ("nowhere", "http://", "http://127.0.0.1:99999", "http://[::1")
    for wrong in (*not_addresses, f"http://{'long' * 20}.example", "http://127.0.0.1/ä"):
        result = await asyncio.to_thread(house._run, ("tools", "--url", wrong))
        assert (result.code, "is not an address" in result.err) == (2, True)
    for wrong in ("sixteen-letters-€", "sixteen-letters\n", "sixteen letters."):
        result = await asyncio.to_thread(house._run, ("tools", "--token", wrong))
        assert (result.code, result.err.count("\n")) == (2, 1)
        assert "The token contains characters that are not allowed in a header." in result.err


async def test_what_a_tool_says_of_its_progress_is_shown_while_one_waits(house: House) -> None:
    client = Client(house.server.url, "notes", token=house.server.token)

    @client.tool
    async def slow(name: str) -> str:
        """Take a while.

        Args:
            name: Which one.
        """
        current().progress(f"half of {name}")
        await reported.wait()
        return "all of it"

    async def watch() -> None:
        with house.server.service.feed(LOCAL, 0) as feed:
            while not any(isinstance(news.event, CallProgressed) for news in await feed.next(5) or ()):
                pass
        reported.set()

    reported = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(client.run())
        group.create_task(watch())
        await client.connected.wait()
        result = await house.farhand("call", "client_notes_slow", '{"name": "it"}')
        client.stop()
    assert result.out == "all of it\n"
    assert "farhand: client_notes_slow: half of it\n" in result.err


class LateEvents(RemoteServer):
    """All events of the call arrive after its answer."""

    def __init__(self) -> None:
        super().__init__("http://127.0.0.1:1", None)
        self.answered = threading.Event()

    def events(self) -> Iterator[dict[str, object]]:
        yield {}
        self.answered.wait()
        yield {"type": "call-opened", "callId": "call_1", "tool": "slow"}
        yield {"type": "call-settled", "callId": "call_2", "tool": "other"}
        yield {"type": "call-progressed", "callId": "call_1", "requestId": "cli_1", "text": "half of it"}
        yield {"type": "call-settled", "callId": "call_1", "tool": "slow"}


def test_a_report_that_arrives_after_the_answer_is_shown_in_a_pipe(
    capsys: pytest.CaptureFixture[str],
) -> None:
    server = LateEvents()
    with show_progress("slow", server, "cli_1"):
        server.answered.set()
    assert capsys.readouterr().err == "farhand: waiting for slow …\nfarhand: slow: half of it\n"


async def test_ids_can_be_copied_from_a_narrow_terminal(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    farhand = house.server.service
    async with asyncio.TaskGroup() as group:
        group.create_task(farhand.call("ask_text", {"question": "what? " * 20}, thread="t1"))
        [call] = await eventually(lambda: farhand.log.open_calls(LOCAL))
        assert call.call_id in (await house.farhand("inbox")).out
        await house.farhand("inbox", "answer", call.call_id, "1")


async def test_options_in_front_of_a_subcommand_are_refused_instead_of_lost(house: House) -> None:
    result = await asyncio.to_thread(house._run, ("inbox", "--url", house.server.url, "approve", "apr_1"))
    assert (result.code, "Options come after the subcommand" in result.err) == (2, True)


async def test_a_refusal_is_json_for_programs(house: House) -> None:
    result = await house.farhand("inbox", "answer", "call_1", "1", "--json")
    assert (result.code, result.json["error"]["code"]) == (2, "unknown")


async def test_a_time_limit_is_reported_in_the_unit_it_was_given(house: House) -> None:
    result = await house.farhand("call", "ask_text", "{}", "--timeout", "0")
    assert (result.code, "--timeout must be a number of seconds" in result.err) == (2, True)
