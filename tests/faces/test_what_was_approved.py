"""What runs is exactly what was approved, even if the server was restarted meanwhile with other tools.

The file between the two servers is altered as bytes, whatever tables it has.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing

import pytest

from farhand.agent.agent import Agent
from farhand.models.scripted import Ask, Moment, ScriptedModel, Step
from farhand.tools.decorate import tool
from tests.faces.ack.desk import OK, Hand
from tests.faces.conftest import Serve
from tests.faces.served import Served
from tests.faces.ui_stream.page import Page
from tests.requirement import requirement

NOT_RUN = "The tool changed since it was approved and was not run; ask again."

Declare = Callable[[list[str]], list[object]]
"""The tools of one version of the server, given the list of what ran."""


def as_it_was(ran: list[str]) -> list[object]:
    @tool(needs_approval=True)
    def delete_file(path: str) -> str:
        """Delete a file.

        Args:
            path: Which.
        """
        ran.append(path)
        return f"deleted {path}"

    return [delete_file]


def with_another_description(ran: list[str]) -> list[object]:
    @tool(needs_approval=True)
    def delete_file(path: str) -> str:
        """Delete a file and everything near it.

        Args:
            path: Which.
        """
        ran.append(path)
        return f"deleted {path}"

    return [delete_file]


def with_another_parameter(ran: list[str]) -> list[object]:
    @tool(needs_approval=True)
    def delete_file(path: str, forever: bool = True) -> str:
        """Delete a file.

        Args:
            path: Which.
            forever: Whether it is lost.
        """
        ran.append(f"{path} {forever}")
        return f"deleted {path}"

    return [delete_file]


def with_another_output(ran: list[str]) -> list[object]:
    @tool(needs_approval=True)
    def delete_file(path: str) -> dict[str, int]:
        """Delete a file.

        Args:
            path: Which.
        """
        ran.append(path)
        return {path: 1}

    return [delete_file]


def without_it(ran: list[str]) -> list[object]:
    return []


CHANGED = [with_another_description, with_another_parameter, with_another_output, without_it]


def version(declare: Declare, ran: list[str], *asks: Ask) -> Agent:
    """A server that asks for these calls and then says what came back, before a restart as after it."""

    def script(moment: Moment) -> Step:
        if moment.steps == 0:
            return list(asks)
        return " ".join(str(each.output) if each.kind == "success" else each.error for each in moment.results)

    return Agent(ScriptedModel(script), tools=declare(ran))


class Chat:
    """One chat on one file, while servers come and go."""

    def __init__(self, serve: Serve, store: str, *asks: Ask) -> None:
        self.ran: list[str] = []
        self._serve = serve
        self._store = store
        self._asks = asks
        self._served: Served | None = None

    async def start(self, declare: Declare) -> Served:
        """The next server, with these tools; the one before it has stopped."""
        if self._served is not None:
            await self._served.stop()
        self._served = await self._serve(version(declare, self.ran, *self._asks), store=self._store)
        return self._served

    async def asked(self) -> list[str]:
        """The approvals that the first server asks for."""
        served = await self.start(as_it_was)
        turn = await Page(served.http, "chat").say("delete")
        return [str(chunk["approvalId"]) for chunk in turn.of("tool-approval-request")]

    async def answer(self, approval_id: str, *, approved: bool = True, **more: object) -> None:
        assert self._served is not None
        assert await Hand(self._served.http).approve(approval_id, approved=approved, **more) == OK

    async def answer_last(self, approval_id: str, *, approved: bool = True, **more: object) -> None:
        """What the server accepts before it dies, and does not get to act on."""
        assert self._served is not None
        self._served.service.worker.stop()
        await self.answer(approval_id, approved=approved, **more)
        assert self.ran == []

    async def told(self) -> str:
        """What the model was told of its calls, in the words of its answer."""
        assert self._served is not None
        return (await Page(self._served.http, "chat").resume()).text

    async def alter(self, old: str, new: str) -> None:
        """With no server at work, every such text in the file becomes another."""
        assert self._served is not None
        await self._served.stop()
        path = self._store.removeprefix("sqlite:///")
        with closing(sqlite3.connect(path)) as file, file:
            assert sum(_replace(file, *column, old, new) for column in _columns(file)) > 0


def _columns(file: sqlite3.Connection) -> list[tuple[str, str]]:
    tables = file.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
    return [
        (table, column[1])
        for (table,) in tables
        for column in file.execute(f'PRAGMA table_info("{table}")').fetchall()
    ]


def _replace(file: sqlite3.Connection, table: str, column: str, old: str, new: str) -> int:
    """Bytes stay bytes and text stays text."""
    changed = file.execute(
        f"""
        UPDATE "{table}" SET "{column}" = CASE typeof("{column}")
            WHEN 'blob' THEN CAST(replace(CAST("{column}" AS TEXT), :old, :new) AS BLOB)
            ELSE replace("{column}", :old, :new) END
        WHERE instr(CAST("{column}" AS TEXT), :old) > 0
        """,
        {"old": old, "new": new},
    )
    return changed.rowcount


ONE = Ask("delete_file", {"path": "a.txt"})
OTHER = Ask("delete_file", {"path": "other.txt"})


@requirement("calls:what-was-approved")
async def test_a_tool_that_is_the_same_after_a_restart_runs(serve: Serve, file_store: str) -> None:
    chat = Chat(serve, file_store, ONE)
    [approval] = await chat.asked()
    await chat.start(as_it_was)
    await chat.answer(approval)
    assert await chat.told() == "deleted a.txt"
    assert chat.ran == ["a.txt"]


@requirement("calls:what-was-approved")
@pytest.mark.parametrize("changed", CHANGED)
async def test_a_tool_that_changed_between_the_question_and_the_approval_is_not_run(
    changed: Declare, serve: Serve, file_store: str
) -> None:
    chat = Chat(serve, file_store, ONE)
    [approval] = await chat.asked()
    await chat.start(changed)
    await chat.answer(approval)
    assert await chat.told() == NOT_RUN
    assert chat.ran == []


@requirement("calls:what-was-approved")
@pytest.mark.parametrize("changed", CHANGED)
async def test_a_tool_that_changed_between_the_approval_and_its_run_is_not_run(
    changed: Declare, serve: Serve, file_store: str
) -> None:
    chat = Chat(serve, file_store, ONE, OTHER)
    [approval, other] = await chat.asked()
    await chat.answer_last(approval)
    await chat.start(changed)
    await chat.answer(other, approved=False)
    assert (await chat.told()).startswith(NOT_RUN)
    assert chat.ran == []


@requirement("calls:what-was-approved")
async def test_an_input_that_changed_between_the_approval_and_its_run_is_not_run(
    serve: Serve, file_store: str
) -> None:
    chat = Chat(serve, file_store, ONE, OTHER)
    [approval, other] = await chat.asked()
    await chat.answer_last(approval)
    await chat.alter("a.txt", "b.txt")
    await chat.start(as_it_was)
    await chat.answer(other)
    assert await chat.told() == f"{NOT_RUN} deleted other.txt"
    assert chat.ran == ["other.txt"]


@requirement("calls:what-was-approved")
async def test_an_edited_input_that_changed_between_the_approval_and_its_run_is_not_run(
    serve: Serve, file_store: str
) -> None:
    chat = Chat(serve, file_store, ONE, OTHER)
    [approval, other] = await chat.asked()
    await chat.answer_last(approval, input={"path": "edited.txt"})
    await chat.alter("edited.txt", "elsewhere.txt")
    await chat.start(as_it_was)
    await chat.answer(other)
    assert await chat.told() == f"{NOT_RUN} deleted other.txt"
    assert chat.ran == ["other.txt"]


@requirement("calls:what-was-approved")
async def test_an_input_that_changed_between_the_question_and_the_approval_is_not_run(
    serve: Serve, file_store: str
) -> None:
    chat = Chat(serve, file_store, ONE)
    [approval] = await chat.asked()
    await chat.alter("a.txt", "b.txt")
    await chat.start(as_it_was)
    # whoever says yes has seen the question as it was asked
    await chat.answer(approval)
    assert await chat.told() == NOT_RUN
    assert chat.ran == []


@requirement("calls:what-was-approved")
async def test_an_edit_of_an_input_that_changed_since_the_question_is_what_runs(
    serve: Serve, file_store: str
) -> None:
    chat = Chat(serve, file_store, ONE)
    [approval] = await chat.asked()
    await chat.alter("a.txt", "b.txt")
    await chat.start(as_it_was)
    await chat.answer(approval, input={"path": "c.txt"})
    assert await chat.told() == "deleted c.txt"
    assert chat.ran == ["c.txt"]


@requirement("calls:what-was-approved")
@requirement("calls:always-in-thread")
@pytest.mark.parametrize("changed", [with_another_description, with_another_parameter, with_another_output])
async def test_an_approval_for_the_thread_is_for_this_version_of_the_tool_alone(
    changed: Declare, serve: Serve, file_store: str
) -> None:
    chat = Chat(serve, file_store, ONE)
    [approval] = await chat.asked()
    await chat.answer(approval, scope="thread")
    assert await chat.told() == "deleted a.txt"
    same = await chat.start(as_it_was)
    assert (await Page(same.http, "chat").say("again")).text == "deleted a.txt"
    other = await chat.start(changed)
    turn = await Page(other.http, "chat").say("again")
    assert turn.of("tool-approval-request") != []
    assert chat.ran == ["a.txt", "a.txt"]
