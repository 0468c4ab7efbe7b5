"""A message that a page sends beside its answers: stored with them, and answered after them, whatever happens
to the response or the server."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncGenerator, Callable

import httpx2

from farhand import Agent, ScriptedModel, ask, tool
from farhand.models.scripted import Ask, Moment, Step
from tests.faces.agui.page import Json, Page, yes
from tests.faces.conftest import Serve
from tests.faces.files.uploads import NOTHING, kept
from tests.faces.ui_stream.agents import Scene, ask_text
from tests.requirement import requirement

OPEN = Ask("open_url", {"url": "a.example"})
DELETE = Ask("delete_file", {"path": "a.txt"})
DELETE_TOO = Ask("delete_file", {"path": "b.txt"})
NOTE = {
    "type": "document",
    "source": {"type": "data", "value": base64.b64encode(b"a note").decode(), "mimeType": "text/plain"},
}


class Slow:
    """Writes half of its answer, and the rest when the test says so."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()

    async def __call__(self, moment: Moment) -> AsyncGenerator[Step, None]:
        yield "Deleted, "
        await self.gate.wait()
        yield "all."


@requirement("agui:resume-and-message")
async def test_a_message_beside_the_answers_is_answered_in_the_same_response(
    serve: Serve, store: str
) -> None:
    """What a page sends whose user wrote while the approval was open: the client kept the message back."""
    scene = Scene([[DELETE], "Deleted.", "Next."])
    page = Page((await serve(scene.agent, store=store)).http)
    [asked] = (await page.send("go")).interrupts
    page.says("and then?")
    run = await page.resume(yes(asked))
    assert scene.ran == [("delete_file", "a.txt")]
    assert run.types.count("TEXT_MESSAGE_START") == 2
    assert run.text == "Deleted.Next."
    assert run.outcome == {"type": "success"}


@requirement("agui:resume-and-message")
async def test_such_a_message_stays_in_the_history_of_a_client_that_is_corrected(serve: Serve) -> None:
    scene = Scene([[DELETE], "Deleted.", "Next."])
    page = Page((await serve(scene.agent)).http)
    [asked] = (await page.send("go")).interrupts
    page.says("and then?")
    page.finds(asked["toolCallId"], '{"approved": true}')
    await page.resume(yes(asked))
    said = [(each["role"], each.get("content")) for each in page.messages if each["role"] != "tool"]
    assert said == [
        ("user", "go"),
        ("assistant", None),
        ("assistant", "Deleted."),
        ("user", "and then?"),
        ("assistant", "Next."),
    ]


@requirement("agui:resume-and-message")
async def test_what_a_run_asks_before_such_a_message_is_cancelled(serve: Serve, store: str) -> None:
    scene = Scene([[DELETE], [OPEN, DELETE_TOO], "Next."])
    page = Page((await serve(scene.agent, store=store)).http)
    [asked] = (await page.send("go")).interrupts
    page.says("and then?")
    run = await page.resume(yes(asked))
    assert run.text == "Next."
    assert [text for text in run.results.values() if "the user moved on" in text] != []
    assert page.shown.keys() == run.results.keys()
    assert scene.ran == [("delete_file", "a.txt")]


@requirement("agui:resume-and-message")
async def test_a_message_beside_an_old_resume_is_still_answered(serve: Serve, store: str) -> None:
    """Another tab answered and continued while this one's user wrote."""
    scene = Scene([[DELETE], "Deleted.", "Next.", "Last."])
    page = Page((await serve(scene.agent, store=store)).http)
    [asked] = (await page.send("go")).interrupts
    other = Page(page.http)
    await other.connect()
    await other.resume(yes(asked))
    await other.send("more")
    page.says("and this", "m9")
    assert (await page.resume(yes(asked))).text == "Next.Last."
    assert [each["id"] for each in page.messages if each["role"] == "user"] == ["m1", "m2", "m9"]
    assert scene.ran == [("delete_file", "a.txt")]


@requirement("agui:resume-and-message")
async def test_a_message_beside_a_resume_is_answered_though_the_events_of_its_run_were_removed(
    serve: Serve,
) -> None:
    server = await serve(Scene([[DELETE], "Deleted.", "Next."]).agent)
    page = Page(server.http)
    [asked] = (await page.send("go")).interrupts
    await page.resume(yes(asked))
    log = server.service.log
    await log.purge(before=log.now() + 1)
    page.says("and this")
    async with asyncio.timeout(20):
        assert (await page.resume(yes(asked))).text == "Next."


@requirement("agui:resume-and-message")
async def test_it_is_answered_though_the_response_was_dropped_before_the_run_ended(
    serve: Serve, store: str
) -> None:
    slow = Slow()
    scene = Scene([[DELETE], slow, "Next."])
    page = Page((await serve(scene.agent, store=store)).http)
    await _drop_the_response(page)
    slow.gate.set()
    record = await _record(page.http, until="Next.")
    assert [(each["role"], _text(each)) for each in record] == [
        ("user", "go"),
        ("assistant", "Deleted, all."),
        ("user", "and then?"),
        ("assistant", "Next."),
    ]
    assert scene.ran == [("delete_file", "a.txt")]


@requirement("agui:resume-and-message")
async def test_it_is_answered_after_a_restart_of_the_server(serve: Serve, file_store: str) -> None:
    server = await serve(Scene([[DELETE], Slow(), "Never."]).agent, store=file_store)
    page = Page(server.http)
    await _drop_the_response(page)
    await server.stop()
    scene = Scene(["Deleted.", "Next."])
    page.http = (await serve(scene.agent, store=file_store)).http
    record = await _record(page.http, until="Next.")
    assert [_text(each) for each in record] == ["go", "Deleted.", "and then?", "Next."]
    assert scene.ran == []


@requirement("agui:resume-and-message")
async def test_the_same_post_again_and_a_connect_follow_to_the_same_answer(serve: Serve, store: str) -> None:
    slow = Slow()
    scene = Scene([[DELETE], slow, "Next."])
    server = await serve(scene.agent, store=store)
    page = Page(server.http)
    asked = await _drop_the_response(page)
    other, third = Page(page.http), Page(page.http)
    again = asyncio.create_task(page.resume(yes(asked)))
    connected = asyncio.create_task(other.connect())
    third.says("and then?", "m2")
    repeated = asyncio.create_task(third.run())
    await _until(lambda: server.under_way >= 3)
    slow.gate.set()
    assert (await again).text.endswith("all.Next.")
    assert (await connected).text == "Deleted, all.Next."
    assert (await repeated).text == "Deleted, all.Next."
    assert [each["id"] for each in other.messages if each["role"] == "user"] == ["m1", "m2"]
    assert len(scene.model.prompts) == 3


async def test_a_stop_keeps_the_message_and_it_can_be_answered_later(serve: Serve, store: str) -> None:
    slow = Slow()
    scene = Scene([[DELETE], slow, "Next."])
    page = Page((await serve(scene.agent, store=store)).http)
    [asked] = (await page.send("go")).interrupts
    page.says("and then?")
    async with page.live(resume=[yes(asked)]) as live:
        await live.until("TEXT_MESSAGE_CONTENT")
        assert (await page.stop(page.run_id))["stopped"] is True
        run = await live.rest()
    run.check()
    assert run.outcome == {"type": "cancelled"}
    record = (await page.http.get("/api/chat/t1")).json()["messages"]
    assert [_text(each) for each in record] == ["go", "Deleted, ", "and then?"]
    page.apply(run)
    # a page that asks for the answer that it has not got
    page.messages.sort(key=lambda each: each["id"] == "m2")
    assert (await page.run()).text == "Next."


async def test_a_client_that_sent_it_again_stops_its_answer_by_the_newer_name(serve: Serve) -> None:
    slow, answer = Slow(), Slow()
    scene = Scene([[DELETE], slow, answer])
    page = Page((await serve(scene.agent)).http)
    asked = await _drop_the_response(page)
    async with page.live(resume=[yes(asked)]) as live:
        await live.until("TEXT_MESSAGE_CONTENT")
        slow.gate.set()
        await _until(lambda: len(scene.model.prompts) == 3)
        assert (await page.stop(page.run_id))["stopped"] is True
        run = await live.rest()
    run.check()
    assert run.outcome == {"type": "cancelled"}


@requirement("agui:resume-and-message")
async def test_its_files_stay_while_it_waits(serve: Serve, store: str) -> None:
    slow = Slow()
    scene = Scene([[DELETE], slow, "Next."])
    server = await serve(scene.agent, store=store)
    page = Page(server.http)
    [asked] = (await page.send("go")).interrupts
    page.says([{"type": "text", "text": "and this"}, NOTE])
    async with page.live(resume=[yes(asked)]) as live:
        await live.until("TEXT_MESSAGE_CONTENT")
        log = server.service.log
        await log.purge(before=log.now() + 1)
        slow.gate.set()
        assert (await live.rest()).text == "Deleted, all.Next."
    [file] = (scene.model.prompts[-1].files or {}).values()
    assert file is not None
    assert file.size == len(b"a note")


@requirement("files:in-messages")
async def test_the_files_of_a_message_beside_an_edit_that_does_not_fit_are_not_kept(
    serve: Serve, store: str
) -> None:
    scene = Scene([[DELETE], "Deleted.", "Next."])
    server = await serve(scene.agent, store=store)
    page = Page(server.http)
    [asked] = (await page.send("go")).interrupts
    page.says([{"type": "text", "text": "and this"}, NOTE])
    assert (await page.resume(yes(asked, editedArgs={"path": 7}))).code == "invalid"
    assert await kept(server) == NOTHING
    assert (await page.resume(yes(asked))).text == "Deleted.Next."
    assert (await kept(server)).files == 1


async def test_another_message_beside_a_resume_is_refused_while_one_is_queued(serve: Serve) -> None:
    slow = Slow()
    scene = Scene([[DELETE], slow, "Next."])
    page = Page((await serve(scene.agent)).http)
    asked = await _drop_the_response(page)
    other = Page(page.http)
    other.says("and this", "m9")
    assert (await other.resume(yes(asked))).code == "busy"
    slow.gate.set()
    await _record(page.http, until="Next.")
    assert len(scene.model.prompts) == 3


async def test_what_was_approved_runs_though_its_page_has_moved_on_from_the_rest(
    serve: Serve, store: str
) -> None:
    scene = Scene([[DELETE, OPEN], "Deleted.", "Next."])
    page = Page((await serve(scene.agent, store=store)).http)
    [asked] = (await page.send("go")).interrupts
    page.says("and then?")
    run = await page.resume(yes(asked))
    assert scene.ran == [("delete_file", "a.txt")]
    assert run.text == "Deleted.Next."
    assert [text for text in run.results.values() if "the user moved on" in text] != []


@tool(needs_approval=True)
async def clean_up() -> str:
    """Delete old files once the user has confirmed, twice."""
    return f"told {await ask('ask_text', {'question': 'Really?'})}"


async def test_what_an_approved_tool_asks_before_it_is_cancelled_with_the_tool(
    serve: Serve, store: str
) -> None:
    agent = Agent(
        ScriptedModel([[Ask("clean_up", {})], "Next."]), tools=[clean_up], frontend_tools=[ask_text]
    )
    page = Page((await serve(agent, store=store)).http)
    [asked] = (await page.send("go")).interrupts
    page.says("and then?")
    run = await page.resume(yes(asked))
    assert run.text == "Next."
    assert run.outcome == {"type": "success"}
    [result] = run.results.values()
    assert "the user moved on" in result
    assert (await page.http.get("/api/inbox")).json()["calls"] == []


async def _drop_the_response(page: Page) -> Json:
    """A page that answers and says more, and is gone before the run has said all; gives what was asked."""
    [asked] = (await page.send("go")).interrupts
    page.says("and then?")
    async with page.live(resume=[yes(asked)]) as live:
        await live.until("TEXT_MESSAGE_CONTENT")
    return asked


async def _until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        # the server says nothing about requests that it has begun to answer
        while not is_so():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def _record(http: httpx2.AsyncClient, *, until: str) -> list[Json]:
    """The messages of the thread, once one of them has this text."""
    async with asyncio.timeout(30):
        while True:
            messages: list[Json] = (await http.get("/api/chat/t1")).json()["messages"]
            if any(_text(each) == until for each in messages):
                return messages
            await asyncio.sleep(0.02)


def _text(message: Json) -> str:
    return "".join(part["text"] for part in message["parts"] if part["type"] == "text")
