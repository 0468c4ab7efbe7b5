"""Resume: which part of an answer a reload, a second tab and a cut connection get."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from starlette.types import Message

from farhand.core.principal import LOCAL
from farhand.models.scripted import Ask, Moment, Step
from farhand.store.open import open_store
from farhand.testing import FakeClock
from tests.faces.conftest import Serve
from tests.faces.served import Served
from tests.faces.ui_stream.agents import Scene, once, told
from tests.faces.ui_stream.page import Page, until
from tests.requirement import requirement

OPEN = Ask("open_url", {"url": "u"})
DELETE = Ask("delete_file", {"path": "a"})
PHOTO = Ask("take_photo", {"camera": "front"})
TEXT = ["start-step", "text-start", "text-delta", "text-end", "finish-step"]
WRITTEN = ["tool-input-start", "tool-input-delta"]


def slow_scene() -> Scene:
    """Text, a gate, text."""

    async def script(moment: Moment) -> AsyncGenerator[Step, None]:
        yield "Once "
        await scene.gate("go").wait()
        yield "upon a time."

    scene = Scene(script)
    return scene


# --------------------------------------------------------------------------------------------- while it runs


@requirement("ui-stream:resume")
async def test_a_reload_in_mid_answer_shows_all_of_it_and_continues_live(serve: Serve, store: str) -> None:
    scene = slow_scene()
    page = Page((await serve(scene.agent, store=store)).http)
    async with page.saying("tell") as live:
        await live.until("text-delta")
        async with Page(page.http, page.id).resuming() as reload:
            await reload.until("text-delta")
            scene.gate("go").set()
            second = await reload.rest()
        first = await live.rest()
    assert (first.text, second.text) == ("Once upon a time.", "Once upon a time.")
    assert (first.message_id, first.kinds) == (second.message_id, second.kinds)


@requirement("ui-stream:dropped")
async def test_a_dropped_connection_does_not_stop_the_run(serve: Serve, store: str) -> None:
    scene = slow_scene()
    page = Page((await serve(scene.agent, store=store)).http)
    async with page.saying("tell") as live:
        await live.until("text-delta")
    scene.gate("go").set()
    assert (await page.resume()).text == "Once upon a time."
    assert len(scene.model.prompts) == 1


@requirement("ui-stream:resume")
async def test_a_reload_in_the_middle_of_a_continuation_shows_the_first_step_and_its_tool(
    serve: Serve,
) -> None:
    async def script(moment: Moment) -> AsyncGenerator[Step, None]:
        if moment.steps == 0:
            yield "I will open it."
            yield OPEN
            return
        yield "Opened. "
        await scene.gate("go").wait()
        yield "Enjoy."

    scene = Scene(script)
    page = Page((await serve(scene.agent)).http)
    first = await page.say("open")
    page.output(first.calls[0], {"viewKey": "v"})
    async with page.sending() as live:
        await live.until("text-delta")
        async with Page(page.http, page.id).resuming() as reload:
            await reload.until("tool-output-available")
            scene.gate("go").set()
            turn = await reload.rest()
        await live.rest()
    assert turn.message_id == first.message_id
    assert turn.kinds == [
        "start",
        *TEXT[:-1],
        *WRITTEN,
        "finish-step",
        "tool-output-available",
        *TEXT,
        "finish",
    ]
    assert turn.text == "I will open it.Opened. Enjoy."


@requirement("ui-stream:resume")
async def test_two_tabs_see_the_same_answer_of_a_held_run(serve: Serve) -> None:
    scene = Scene(once(OPEN))
    page = Page((await serve(scene.agent)).http, wait="hold")
    async with page.saying("open") as live:
        call = (await live.until("tool-input-available"))["toolCallId"]
        async with Page(page.http, page.id).resuming() as reload:
            shown = await reload.until("tool-input-available")
            assert shown["toolCallId"] == call
            ack = {"toolCallId": call, "status": "success", "output": {"n": 1}}
            assert (await page.http.post("/api/tools/ack", json=ack)).json() == {"ok": True}
            first, second = await live.rest(), await reload.rest()
    assert first.kinds == second.kinds
    assert first.text == second.text == "open_url: success {'n': 1}."


# --------------------------------------------------------------------------------------------- while it waits


@requirement("ui-stream:resume")
async def test_a_reload_of_a_parked_run_shows_the_open_call_to_be_run(serve: Serve, store: str) -> None:
    scene = Scene(once("I will open it.", OPEN))
    page = Page((await serve(scene.agent, store=store)).http)
    first = await page.say("open")
    again = await page.resume()
    assert (again.kinds, again.message_id, again.finish) == (first.kinds, first.message_id, "tool-calls")
    page.output(again.calls[0], {"viewKey": "v"})
    assert (await page.send()).finish == "stop"


@requirement("ui-stream:resume")
async def test_a_settled_call_is_shown_again_without_making_a_client_run_it(serve: Serve) -> None:
    def script(moment: Moment) -> Step:
        return [OPEN] if moment.steps < 2 else "Done."

    scene = Scene(script)
    page = Page((await serve(scene.agent)).http)
    [one] = (await page.say("open twice")).calls
    page.output(one, {"n": 1})
    second = await page.send()
    again = await page.resume()
    runnable = [chunk["toolCallId"] for chunk in again.of("tool-input-available")]
    assert runnable == [each for each in second.calls if each != one]
    assert again.one("tool-output-available")["toolCallId"] == one
    assert (
        "".join(
            chunk["inputTextDelta"] for chunk in again.of("tool-input-delta") if chunk["toolCallId"] == one
        ).replace(" ", "")
        == '{"url":"u"}'
    )


@requirement("ui-stream:resume")
async def test_a_reload_while_a_person_is_asked_shows_the_question_again(serve: Serve) -> None:
    scene = Scene(once(DELETE, PHOTO))
    page = Page((await serve(scene.agent)).http)
    first = await page.say("both")
    again = await page.resume()
    assert again.of("tool-approval-request") == first.of("tool-approval-request")
    photo = again.calls[1]
    assert photo not in [chunk["toolCallId"] for chunk in again.of("tool-input-available")]


@requirement("ui-stream:resume")
async def test_a_reload_after_the_approval_hands_the_frontend_call_out_and_asks_no_more(serve: Serve) -> None:
    scene = Scene(once(PHOTO))
    page = Page((await serve(scene.agent)).http)
    [call] = (await page.say("photo")).calls
    page.approve(call)
    await page.send()
    again = await page.resume()
    assert "tool-approval-request" not in again.kinds
    assert again.one("tool-input-available")["input"] == {"camera": "front"}
    page.output(call, {"name": "p"})
    assert (await page.send()).finish == "stop"


@requirement("ui-stream:resume")
async def test_a_reload_after_edited_approval_shows_what_will_run(serve: Serve) -> None:
    scene = Scene(once(PHOTO))
    page = Page((await serve(scene.agent)).http)
    approval = (await page.say("photo")).one("tool-approval-request")["approvalId"]
    given = {"approvalId": approval, "approved": True, "input": {"camera": "back"}}
    await page.http.post("/api/tools/approve", json=given)
    assert (await page.resume()).one("tool-input-available")["input"] == {"camera": "back"}


# -------------------------------------------------------------------------------------------- after its end


async def test_there_is_nothing_to_resume_in_an_unknown_chat(serve: Serve) -> None:
    page = Page((await serve(Scene(["x"]).agent)).http, "never-seen")
    response = await page.http.get(f"/api/chat/{page.id}/stream")
    assert (response.status_code, response.content) == (204, b"")


@pytest.mark.parametrize("address", ["memory:", "sqlite"])
async def test_an_answer_stays_replayable_for_a_minute_and_no_longer(
    serve: Serve, tmp_path: Path, address: str
) -> None:
    clock = FakeClock()
    kept = await open_store(f"sqlite:///{tmp_path}/f.db" if address == "sqlite" else address, clock)
    page = Page((await serve(Scene(["Hello."]).agent, store=kept)).http)
    first = await page.say("hi")
    clock.advance(59)
    assert (await page.resume()).chunks == first.chunks
    assert (await page.resume()).text == "Hello."
    clock.advance(2)
    assert await page.resume_status() == 204


@pytest.mark.parametrize("address", ["memory:", "sqlite"])
async def test_an_answer_that_ended_unheard_waits_for_its_reader_and_is_delivered_once(
    serve: Serve, tmp_path: Path, address: str
) -> None:
    clock = FakeClock()
    kept = await open_store(f"sqlite:///{tmp_path}/f.db" if address == "sqlite" else address, clock)
    scene = slow_scene()
    served = await serve(scene.agent, store=kept)
    page = Page(served.http)
    async with page.saying("tell") as live:
        await live.until("text-delta")
    await _nobody_reads(served, page)
    scene.gate("go").set()
    await _ended(served, page)
    clock.advance(3600)
    assert (await page.resume()).text == "Once upon a time."
    async with asyncio.timeout(20):
        # noted right after it was delivered: that note has no event to wait for
        while await page.resume_status() != 204:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_an_answer_whose_reader_was_gone_at_its_last_word_is_still_unheard(serve: Serve) -> None:
    clock = FakeClock()
    scene = slow_scene()
    served = await serve(scene.agent, store=await open_store("memory:", clock))
    page = Page(served.http)
    async with page.saying("tell") as live:
        await live.until("text-delta")
    await _nobody_reads(served, page)
    scene.gate("go").set()
    await _ended(served, page)
    clock.advance(3600)
    await _read_and_leave(served, page)
    assert (await page.resume()).text == "Once upon a time."


@requirement("ack:across")
async def test_a_post_after_the_deadline_shows_the_timeout_and_the_rest(serve: Serve) -> None:
    clock = FakeClock()
    scene = Scene(once(Ask("pick_quickly", {"label": "a color"})))
    served = await serve(scene.agent, store=await open_store("memory:", clock))
    page = Page(served.http)
    [call] = (await page.say("pick")).calls
    clock.advance(2)
    page.output(call, "red")
    turn = await page.send()
    assert turn.kinds == ["start", "tool-output-error", *TEXT, "finish"]
    assert turn.one("tool-output-error")["errorText"] == "Nobody answered within 1 s."
    assert scene.seen[0].seen == '{"status":"timeout"}'


@pytest.mark.slow
@requirement("ack:across")
async def test_a_deadline_resumes_the_run_though_nobody_reads(serve: Serve) -> None:
    scene = Scene(once(Ask("pick_quickly", {"label": "a color"})))
    served = await serve(scene.agent)
    page = Page(served.http)
    await page.say("pick")
    await _ended(served, page)
    assert (await page.resume()).text.startswith("pick_quickly: timed_out")


# ------------------------------------------------------------------------------------------ over a restart


async def test_a_parked_run_is_answered_and_resumed_after_a_restart(serve: Serve, tmp_path: Path) -> None:
    scene = Scene(once("I will open it.", OPEN))
    address = f"sqlite:///{tmp_path}/f.db"
    served = await serve(scene.agent, store=address)
    page = Page(served.http)
    first = await page.say("open")
    await served.stop()
    page.http = (await serve(scene.agent, store=address)).http
    again = await page.resume()
    assert (again.chunks[0], again.kinds) == (first.chunks[0], first.kinds)
    page.output(first.calls[0], {"n": 1})
    assert (await page.send()).finish == "stop"
    assert len(scene.model.prompts) == 2


async def test_a_held_response_ends_resumably_when_the_server_drains(serve: Serve, tmp_path: Path) -> None:
    scene = Scene(once(OPEN))
    address = f"sqlite:///{tmp_path}/f.db"
    served = await serve(scene.agent, store=address)
    page = Page(served.http, wait="hold")
    async with page.saying("open") as live:
        call = (await live.until("tool-input-available"))["toolCallId"]
        async with asyncio.TaskGroup() as group:
            group.create_task(served.stop())
            cut = await live.rest()
    assert cut.chunks[-1]["type"] in ("error", "finish")
    page.http = (await serve(scene.agent, store=address)).http
    ack = {"toolCallId": call, "status": "success", "output": {"n": 1}}
    assert (await page.http.post("/api/tools/ack", json=ack)).json() == {"ok": True}
    assert (await page.resume()).text == "open_url: success {'n': 1}."


async def test_a_step_that_a_restart_cut_is_asked_again_and_a_replay_omits_it(
    serve: Serve, tmp_path: Path
) -> None:
    async def script(moment: Moment) -> AsyncGenerator[Step, None]:
        if moment.steps == 0:
            yield Ask("weather", {"city": "Oslo"})
        elif not scene.gate("again").is_set():
            yield "Half an ans"
            await scene.gate("never").wait()
        else:
            yield told(moment.results)

    scene = Scene(script)
    address = f"sqlite:///{tmp_path}/f.db"
    served = await serve(scene.agent, store=address)
    page = Page(served.http)
    async with page.saying("weather") as live:
        await live.until("text-delta")
        async with asyncio.TaskGroup() as group:
            group.create_task(served.stop())
            cut = await live.rest()
    assert "resume" in cut.one("error")["errorText"]
    scene.gate("again").set()
    page.http = (await serve(scene.agent, store=address)).http
    turn = await page.resume()
    assert "Half" not in turn.text
    assert turn.text.startswith("weather: success")
    assert scene.ran == [("weather", "Oslo")]


async def _nobody_reads(served: Served, page: Page) -> None:
    """The server has noticed that the connection is gone."""
    run = await served.service.last_run(LOCAL, page.id)
    await until(lambda: served.service.log.broker.count(run.run_id) == 0)


async def _ended(served: Served, page: Page) -> None:
    async with asyncio.timeout(20):
        # looked at again and again: the end of a run that nobody reads has no event to wait for
        while (await served.service.last_run(LOCAL, page.id)).active:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def _read_and_leave(served: Served, page: Page) -> None:
    """A reader whose connection breaks when the last words are written to it."""

    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError("never set")

    async def send(message: Message) -> None:
        if b"[DONE]" in message.get("body", b""):
            raise BrokenPipeError

    headers = [(b"host", b"127.0.0.1"), (b"authorization", f"Bearer {served.token}".encode())]
    path = f"/api/chat/{page.id}/stream"
    scope = {"type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "query_string": b""}
    await served.app({**scope, "headers": headers, "client": ("127.0.0.1", 1)}, receive, send)
