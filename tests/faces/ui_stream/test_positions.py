"""`?after=seq.offset`: a reader that presents its position gets exactly the rest, wherever it was cut."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path

import httpx2
import pytest

from farhand.core.event import StepStarted
from farhand.core.principal import LOCAL
from farhand.models.scripted import Ask, Moment, Step, Think
from farhand.store.open import open_store
from farhand.testing import FakeClock
from tests.faces.conftest import Serve
from tests.faces.served import Served
from tests.faces.ui_stream.agents import Scene, told
from tests.faces.ui_stream.page import Page
from tests.requirement import requirement
from tests.stream_checker import Chunk, SseFrame, StreamChecker, read_sse


async def frames_after(http: httpx2.AsyncClient, chat: str, position: str) -> list[SseFrame]:
    response = await http.get(f"/api/chat/{chat}/stream?after={position}")
    assert response.status_code == 200
    assert b"keep-alive" not in response.content, "nothing here has to be waited for"
    return read_sse(response.content)


def joined(frames: list[SseFrame]) -> list[Chunk]:
    """The chunks of a whole response, checked, with neighbouring deltas of one block as one."""
    checker = StreamChecker()
    for frame in frames:
        checker.read_data(frame.data)
    whole: list[Chunk] = []
    for chunk in checker.finished():
        last = whole[-1] if whole else {"type": ""}
        field = {"tool-input-delta": "inputTextDelta"}.get(chunk["type"], "delta")
        if chunk["type"].endswith("-delta") and {**chunk, field: ""} == {**last, field: ""}:
            whole[-1] = {**chunk, field: last[field] + chunk[field]}
        else:
            whole.append(chunk)
    return whole


def rich() -> Scene:
    """Everything that a message can hold, with a gate before the last words."""

    async def script(moment: Moment) -> AsyncGenerator[Step, None]:
        if moment.steps == 0:
            yield Think("Let me think about it for a while.")
            yield "First the weather, then the rest. "
            yield Ask("weather", {"city": "Oslo"})
            yield Ask("broken", {"subject": "tea"})
        elif moment.steps == 1:
            yield Ask("make_coffee", {})
        elif moment.steps == 2:
            yield Ask("open_url", {"url": "u"})
            yield Ask("take_photo", {"camera": "front"})
            yield Ask("delete_file", {"path": "a"})
        else:
            await scene.gate("end").wait()
            yield "Now I have it all: " + told(moment.results)

    scene = Scene(script)
    return scene


async def answered(page: Page) -> None:
    """The rich run up to its last step."""
    opened, photo, delete = (await page.say("everything")).calls[-3:]
    page.output(opened, {"n": 1})
    page.approve(photo)
    page.output(photo, {"name": "p"})
    page.approve(delete, approved=False, reason="no")


async def test_a_stored_answer_cut_at_every_position_is_completed_exactly(serve: Serve, store: str) -> None:
    scene = rich()
    page = Page((await serve(scene.agent, store=store)).http)
    await answered(page)
    scene.gate("end").set()
    await page.send()
    uncut = await frames_after(page.http, page.id, "0.0")
    whole = joined(uncut)
    positions = [(index, frame.id) for index, frame in enumerate(uncut) if frame.id is not None]
    assert len(positions) > 20
    # with the last one a reader has all of it
    for index, position in positions[:-1]:
        rest = await frames_after(page.http, page.id, position)
        assert joined([*uncut[: index + 1], *rest]) == whole, f"cut at {position}"


async def test_a_parked_answer_cut_at_every_position_is_completed_exactly(serve: Serve) -> None:
    scene = rich()
    page = Page((await serve(scene.agent)).http)
    await page.say("everything")
    uncut = await frames_after(page.http, page.id, "0.0")
    whole = joined(uncut)
    for index, frame in enumerate(uncut):
        if frame.id is not None:
            rest = await frames_after(page.http, page.id, frame.id)
            assert joined([*uncut[: index + 1], *rest]) == whole, f"cut at {frame.id}"


async def test_words_heard_live_and_cut_at_every_delta_are_completed_from_the_store(
    serve: Serve, store: str
) -> None:
    scene = rich()
    served = await serve(scene.agent, store=store)
    page = Page(served.http)
    await answered(page)
    async with page.sending() as live:
        await live.until("tool-output-denied")
        async with page.http.stream("GET", f"/api/chat/{page.id}/stream?after=0.0") as response:
            pieces = response.aiter_bytes()
            received = b""
            while b"tool-output-denied" not in received:
                received += await anext(pieces)
            await _last_step_begun(served, page)
            # it has caught up with the journal: the last words reach it as they are said
            scene.gate("end").set()
            uncut = read_sse(received + b"".join([piece async for piece in pieces]))
        await live.rest()
    whole = joined(uncut)
    for index, frame in enumerate(uncut[:-1]):
        if frame.id is not None:
            rest = await frames_after(page.http, page.id, frame.id)
            assert joined([*uncut[: index + 1], *rest]) == whole, f"cut at {frame.id}"


async def test_a_position_may_lie_in_the_middle_of_a_text(serve: Serve, store: str) -> None:
    scene = Scene(["Hello there, what a fine day."])
    page = Page((await serve(scene.agent, store=store)).http)
    await page.say("hi")
    uncut = await frames_after(page.http, page.id, "0.0")
    whole = joined(uncut)
    for index, frame in enumerate(uncut):
        if frame.id is None or "text-delta" not in frame.data:
            continue
        seq, rest_of_id = frame.id.split(".")
        length, mark = rest_of_id.split("~")
        chunk = json.loads(frame.data)
        assert len(chunk["delta"]) == int(length)
        for cut in range(1, int(length)):
            half = SseFrame(json.dumps({**chunk, "delta": chunk["delta"][:cut]}))
            rest = await frames_after(page.http, page.id, f"{seq}.{cut}~{mark}")
            assert joined([*uncut[:index], half, *rest]) == whole, f"cut after {cut} characters"


async def test_a_reader_that_is_cut_again_and_again_misses_nothing_and_hears_nothing_twice(
    serve: Serve,
) -> None:
    async def script(moment: Moment) -> AsyncGenerator[Step, None]:
        for number in range(12):
            await scene.gate(str(number)).wait()
            yield f"word {number} and "
        yield "the end."

    scene = Scene(script)
    page = Page((await serve(scene.agent)).http)
    heard: list[SseFrame] = []
    async with page.saying("count") as live:
        position = "0.0"
        for number in range(12):
            address = f"/api/chat/{page.id}/stream?after={position}"
            async with page.http.stream("GET", address) as response:
                scene.gate(str(number)).set()
                heard += await _until_words(response)
            position = next(frame.id for frame in reversed(heard) if frame.id is not None)
        await live.rest()
    heard += await frames_after(page.http, page.id, position)
    text = "".join(chunk["delta"] for chunk in joined(heard) if chunk["type"] == "text-delta")
    assert text == "".join(f"word {number} and " for number in range(12)) + "the end."


async def test_a_position_holds_over_a_restart(serve: Serve, tmp_path: Path) -> None:
    scene = rich()
    address = f"sqlite:///{tmp_path}/f.db"
    served = await serve(scene.agent, store=address)
    page = Page(served.http)
    await answered(page)
    uncut = await frames_after(page.http, page.id, "0.0")
    cut = [index for index, frame in enumerate(uncut) if frame.id is not None][5]
    await served.stop()
    page.http = (await serve(scene.agent, store=address)).http
    rest = await frames_after(page.http, page.id, str(uncut[cut].id))
    assert joined([*uncut[: cut + 1], *rest]) == joined(uncut)


@requirement("streams:position")
@pytest.mark.parametrize("position", ["999.0", "3.999", "2.5", "123456789012345.0"])
async def test_a_position_that_nobody_can_have_is_told_so_and_gets_all(serve: Serve, position: str) -> None:
    page = Page((await serve(Scene(["Hello there."]).agent)).http)
    first = await page.say("hi")
    frames = await frames_after(page.http, page.id, position)
    whole = joined(frames)
    assert whole[1] == {"type": "data-gap", "data": {"replay": True}, "transient": True}
    assert [whole[0], *whole[2:]] == joined(await frames_after(page.http, page.id, "0.0"))
    assert whole[0] == first.chunks[0]


@requirement("streams:position")
@pytest.mark.parametrize(
    "position",
    [
        "",
        "abc",
        "1.",
        "-1.0",
        "1.0.0",
        "1.0&after=2.0",
        "%ff",
        "1e3",
        "٣.0",
        "3.0~",
        "3.0~a/b",
        "3.0~123456789",
    ],
)
async def test_what_is_no_position_is_refused(serve: Serve, position: str) -> None:
    page = Page((await serve(Scene(["Hello."]).agent)).http)
    await page.say("hi")
    response = await page.http.get(f"/api/chat/{page.id}/stream?after={position}")
    assert (response.status_code, response.json()["error"]["code"]) == (400, "invalid")


async def test_a_reader_without_a_position_gets_no_ids(serve: Serve) -> None:
    page = Page((await serve(Scene(["Hello."]).agent)).http)
    assert set((await page.say("hi")).ids) == {None}
    assert set((await page.resume()).ids) == {None}


@pytest.mark.parametrize("address", ["memory:", "sqlite"])
async def test_who_was_cut_gets_the_rest_however_late_and_who_was_not_gets_nothing(
    serve: Serve, tmp_path: Path, address: str
) -> None:
    clock = FakeClock()
    kept = await open_store(f"sqlite:///{tmp_path}/f.db" if address == "sqlite" else address, clock)
    scene = rich()
    page = Page((await serve(scene.agent, store=kept)).http)
    await answered(page)
    scene.gate("end").set()
    await page.send()
    uncut = await frames_after(page.http, page.id, "0.0")
    clock.advance(3_600)
    ids = [(index, frame.id) for index, frame in enumerate(uncut) if frame.id is not None]
    for index, position in ids[:-1]:
        rest = await frames_after(page.http, page.id, position)
        assert joined([*uncut[: index + 1], *rest]) == joined(uncut), f"cut at {position}"
    for query in ("", "?after=0.0", f"?after={ids[-1][1]}"):
        response = await page.http.get(f"/api/chat/{page.id}/stream{query}")
        assert (response.status_code, response.content) == (204, b""), query


async def test_who_had_the_end_is_told_at_once_that_there_is_no_more(serve: Serve) -> None:
    page = Page((await serve(Scene(["Hello."]).agent)).http)
    await page.say("hi")
    [last] = [frame.id for frame in await frames_after(page.http, page.id, "0.0") if frame.data == "[DONE]"]
    response = await page.http.get(f"/api/chat/{page.id}/stream?after={last}")
    assert (response.status_code, response.content) == (204, b"")


@pytest.mark.parametrize("position", ["3.0", "999.0"])
async def test_of_an_answer_that_was_removed_there_is_no_rest(serve: Serve, position: str) -> None:
    clock = FakeClock()
    kept = await open_store("memory:", clock)
    served = await serve(Scene(["Hello."]).agent, store=kept)
    page = Page(served.http)
    await page.say("hi")
    clock.advance(3_600)
    await served.service.log.purge(before=clock.now())
    response = await page.http.get(f"/api/chat/{page.id}/stream?after={position}")
    assert (response.status_code, response.content) == (204, b"")


@pytest.mark.parametrize("query", ["", "?after=0.0", "?after=3.0"])
async def test_an_answer_that_was_removed_as_soon_as_it_ended_is_not_told_as_one_that_waits(
    serve: Serve, query: str
) -> None:
    clock = FakeClock()
    kept = await open_store("memory:", clock)
    served = await serve(Scene(["Hello."]).agent, store=kept)
    page = Page(served.http)
    await page.say("hi")
    clock.advance(1)
    await served.service.log.purge(before=clock.now())
    response = await page.http.get(f"/api/chat/{page.id}/stream{query}")
    assert (response.status_code, response.content) == (204, b"")


async def test_a_position_in_an_older_answer_is_none_in_the_current_one(serve: Serve) -> None:
    page = Page((await serve(Scene(["Hello there.", "Hello again."]).agent)).http)
    await page.say("hi")
    older = await frames_after(page.http, page.id, "0.0")
    await page.say("once more")
    current = await frames_after(page.http, page.id, "0.0")
    for frame in older:
        if frame.id is None:
            continue
        whole = joined(await frames_after(page.http, page.id, frame.id))
        assert whole[1]["type"] == "data-gap", f"{frame.id} is in another answer"
        assert [whole[0], *whole[2:]] == joined(current)
    marks = [{str(frame.id).partition("~")[2] for frame in each if frame.id} for each in (older, current)]
    assert [len(each) for each in marks] == [1, 1]
    assert marks[0] != marks[1]


async def _until_words(response: httpx2.Response) -> list[SseFrame]:
    """What was received up to and with the first words that name a position."""
    received = b""
    async for piece in response.aiter_bytes():
        received += piece
        frames = read_sse(received[: received.rfind(b"\n\n") + 2]) if b"\n\n" in received else []
        ends = [i for i, frame in enumerate(frames) if "text-delta" in frame.data and frame.id is not None]
        if ends:
            return frames[: ends[-1] + 1]
    raise AssertionError(f"the response ended: {received!r}")


async def _last_step_begun(served: Served, page: Page) -> None:
    run = await served.service.last_run(LOCAL, page.id)
    async with asyncio.timeout(20):
        while True:
            events = await served.service.log.entries(run)
            if events[-1].event == StepStarted(4):
                return
            await asyncio.sleep(0.01)
