"""One record that cannot be read does not take a whole list with it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from farhand.models.scripted import Ask
from tests.faces.conftest import Serve
from tests.faces.ui_stream.agents import Scene
from tests.faces.ui_stream.page import Page

SPOIL = tuple(
    f"UPDATE {what} = x'00' WHERE {whose} = (SELECT no FROM threads WHERE thread_id = '{chat}')"
    for what, whose, chat in (
        ("threads SET record", "no", "chat-1"),
        ("runs SET record", "thread_no", "chat-2"),
        ("calls SET record", "thread_no", "chat-3"),
        ("log SET body", "version = 1 AND thread_no", "chat-4"),
    )
)


async def test_every_list_is_answered_without_what_cannot_be_read(serve: Serve, tmp_path: Path) -> None:
    path = tmp_path / "spoiled.db"
    agent = Scene(lambda moment: [Ask("open_url", {"url": "u"})]).agent
    first = await serve(agent, store=f"sqlite:///{path}")
    for number in range(6):
        await Page(first.http, f"chat-{number}").say("open")
    await first.stop()
    with sqlite3.connect(path) as db:
        for statement in SPOIL:
            assert db.execute(statement).rowcount == 1
    db.close()
    http = (await serve(agent, store=f"sqlite:///{path}")).http
    answers = {
        where: await http.get(where)
        for where in (
            "/api/chat", "/api/inbox", "/api/tools", "/api/inspect/runs", "/api/inspect/inbox",
            "/api/inspect/clients", "/api/inspect/tools", "/client-tools/tools",
        )
    }  # fmt: skip
    assert {where: answer.status_code for where, answer in answers.items()} == dict.fromkeys(answers, 200)
    shown = {each["id"] for each in answers["/api/chat"].json()["threads"]}
    assert shown == {"chat-0", "chat-2", "chat-3", "chat-4", "chat-5"}
    waiting = answers["/api/inbox"].text
    assert [f"chat-{number}" in waiting for number in range(6)] == [True, True, True, False, True, True]
    runs = {each["threadId"] for each in answers["/api/inspect/runs"].json()["runs"]}
    assert runs == {"chat-0", "chat-1", "chat-3", "chat-5"}
    # what cannot be read can be deleted, once
    assert [(await http.delete("/api/chat/chat-4")).status_code for _ in range(2)] == [200, 404]
    shown = {each["id"] for each in (await http.get("/api/chat")).json()["threads"]}
    assert shown == {"chat-0", "chat-2", "chat-3", "chat-5"}
