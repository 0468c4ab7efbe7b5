"""GET /agent/{agent_uuid}/stream: continuing after a cut, replaying, and the gap signal."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from farhand.models.scripted import Ask, Moment, Step, Think
from tests.faces.awaiting.agents import agent_with
from tests.faces.awaiting.client import Page, result
from tests.faces.conftest import Serve
from tests.requirement import requirement

TALK: Step = [
    Think("Let me see what to ask."),
    "I will ask you <meta_init\nand wait \\ a bit. ",
    Ask("user_confirm", {"message": "Sure?"}),
    Ask("get_weather", {"city": "Oslo"}),
]


@requirement("awaiting:stream-resume")
@pytest.mark.parametrize("style", ["xml", "raw"])
async def test_after_every_frame_the_stream_gives_exactly_the_rest(
    serve: Serve, store: str, style: str
) -> None:
    server = await serve(agent_with([TALK]), store=store)
    page = Page(server.http, query=f"?format={style}")
    turn = await page.run("hi")
    whole = await page.stream()
    for number, frame in enumerate(turn.frames[:-1]):
        rest = await page.stream(frame.id)
        assert rest.datas[0] == turn.datas[0]
        assert rest.datas[-1] == "[DONE]"
        if style == "xml":
            assert "".join([*turn.datas[1 : number + 1], *rest.datas[1:]]) == "".join(whole.datas[1:])
    assert turn.pause == whole.pause


@requirement("awaiting:stream-resume")
async def test_a_dropped_stream_stops_nothing_and_is_resumed_in_mid_sentence(
    serve: Serve, store: str
) -> None:
    go_on = asyncio.Event()

    async def script(moment: Moment) -> AsyncGenerator[Step, None]:
        yield "One two "
        await go_on.wait()
        yield "three four."

    server = await serve(agent_with(script), store=store)
    page = Page(server.http)
    async with page.live("count") as live:
        before = await live.until("two ")
    async with page.live_stream(before.last_id) as again:
        await again.until("<meta_init ")
        go_on.set()
        after = await again.rest()
    said = "".join([*before.datas[1:], *after.datas[1:-1]])
    assert said == "<content-block-text>One two three four.</content-block-text>"
    assert (await page.stream()).text == "One two three four."


@requirement("awaiting:stream-resume")
async def test_a_run_whose_reader_left_pauses_and_can_be_answered(serve: Serve, store: str) -> None:
    go_on = asyncio.Event()

    async def script(moment: Moment) -> Step:
        await go_on.wait()
        return "Thanks." if moment.results else [Ask("user_confirm", {"message": "Sure?"})]

    server = await serve(agent_with(script), store=store)
    page = Page(server.http)
    async with page.live("hi"):
        pass
    go_on.set()
    replay = await page.stream()
    assert (await page.answer(result(replay.pause[0], "yes"))).text == "Thanks."


async def test_without_a_position_the_current_run_is_replayed_from_its_start_and_followed(
    serve: Serve, store: str
) -> None:
    go_on = asyncio.Event()

    async def script(moment: Moment) -> AsyncGenerator[Step, None]:
        if moment.text == "first":
            yield "The first answer."
            return
        yield "The second "
        await go_on.wait()
        yield "answer."

    server = await serve(agent_with(script), store=store)
    page = Page(server.http)
    await page.run("first")
    async with page.live("second") as live:
        await live.until("second ")
        async with page.live_stream() as replay:
            await replay.until("<content-block-text>")
            go_on.set()
            replayed = await replay.rest()
        followed = await live.rest()
    assert replayed.text == followed.text == "The second answer."
    assert replayed.meta["user_query"] == "second"


async def test_a_replay_shows_every_response_of_the_run_and_only_the_open_pause(
    serve: Serve, store: str
) -> None:
    steps: list[Step] = [[Ask("user_confirm", {"message": str(number)})] for number in range(2)]
    server = await serve(agent_with(["Hello.", *steps]), store=store)
    page = Page(server.http)
    await page.run("hi")
    first = await page.run("ask me")
    second = await page.answer(result(first.pause[0], "yes"))
    replay = await page.stream()
    assert replay.pause == second.pause
    assert replay.datas[-2] == second.datas[-2]
    assert sum(data.startswith("<content-block-tool_call ") for data in replay.datas) == 2
    assert replay.meta["user_query"] == "ask me"


@requirement("awaiting:stream-resume")
async def test_a_reader_that_has_everything_of_a_paused_run_gets_the_end(serve: Serve, store: str) -> None:
    server = await serve(agent_with([TALK]), store=store)
    page = Page(server.http)
    turn = await page.run("hi")
    rest = await page.stream(turn.last_id)
    assert [data.split(" ")[0] for data in rest.datas] == ["<meta_init", "[DONE]"]


@requirement("awaiting:stream-resume")
async def test_a_reader_that_has_everything_of_an_ended_run_gets_the_end(serve: Serve, store: str) -> None:
    server = await serve(agent_with(["Hi there."]), store=store)
    page = Page(server.http)
    turn = await page.run("hi")
    rest = await page.stream(turn.last_id)
    assert [data.split(" ")[0] for data in rest.datas] == ["<meta_init", "[DONE]"]


@pytest.mark.parametrize("position", ["9999.0", "4.9999", "2.1", "abc", "-1", "1.2.3", "", "x" * 500])
async def test_a_position_that_is_not_known_is_reported_and_answered_with_a_replay(
    serve: Serve, position: str
) -> None:
    server = await serve(agent_with([TALK]))
    page = Page(server.http)
    turn = await page.run("hi")
    again = await page.stream(position)
    assert again.datas[0] == turn.datas[0]
    assert again.control("stream_gap") == [{"last_event_id": position[:64]}]
    assert again.datas[1].startswith("<stream_gap ")
    assert "".join(again.datas[2:]) == "".join(turn.datas[1:])


async def test_a_position_in_an_older_run_is_not_known_in_the_current_one(serve: Serve) -> None:
    page = Page((await serve(agent_with(["Hi there.", "Hi again."]))).http)
    older = await page.run("hi")
    current = await page.run("once more")
    for last in dict.fromkeys(frame.id for frame in older.frames):
        again = await page.stream(last)
        assert again.control("stream_gap") == [{"last_event_id": last}]
        assert again.text == current.text


async def test_an_unknown_position_of_a_working_run_is_reported_too(serve: Serve) -> None:
    go_on = asyncio.Event()

    async def script(moment: Moment) -> str:
        await go_on.wait()
        return "Done."

    page = Page((await serve(agent_with(script))).http)
    async with page.live("hi"), page.live_stream("77.0") as again:
        await again.until("<stream_gap ")
        go_on.set()
        assert (await again.rest()).text == "Done."


@requirement("awaiting:run-error")
async def test_a_server_that_stops_ends_streams_resumably_and_the_next_one_continues(
    serve: Serve, file_store: str
) -> None:
    async def script(moment: Moment) -> AsyncGenerator[Step, None]:
        yield "One two "
        await asyncio.Event().wait()

    server = await serve(agent_with(script), store=file_store)
    page = Page(server.http)
    async with page.live("count") as live:
        await live.until("two ")
        async with asyncio.TaskGroup() as group:
            group.create_task(server.stop())
            cut = await live.rest()
    assert cut.errors[0][0] == "shutting_down"
    assert cut.datas[-1] == "[DONE]"
    assert cut.datas.count("[DONE]") == 1
    page.http = (await serve(agent_with(["One two three."]), store=file_store)).http
    rest = await page.stream(cut.last_id)
    # the step that was cut is closed for who saw it, and asked again
    assert "".join(rest.datas[1:-1]).startswith("</content-block-text>")
    assert rest.text == "One two three."
    assert (await page.stream()).text == "One two three."
