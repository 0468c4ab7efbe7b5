"""Runs and calls as the Inspector shows them: real runs over HTTP, on every store."""

from __future__ import annotations

import asyncio
import shutil
from time import process_time, thread_time
from typing import Any

import pytest

from farhand.models.scripted import Ask, Fail, Moment, Step
from tests.faces.ack.desk import held, opened
from tests.faces.client_tools.program import Program, asks, chat, ready
from tests.faces.conftest import Serve
from tests.faces.inspector.inspector_requests import ROOT, kinds, look, newest, titles
from tests.faces.ui_stream.agents import Scene, once
from tests.faces.ui_stream.page import Page, until
from tests.requirement import requirement

# Any: bodies of a wire
Json = Any
OPEN = Ask("open_url", {"url": "https://example.org"})
PHOTO = Ask("take_photo", {"camera": "front"})
DELETE = Ask("delete_file", {"path": "a"})
WEATHER = Ask("weather", {"city": "Oslo"})


def answers(moment: Moment) -> Step:
    said: dict[str, Step] = {
        "open a page": [OPEN],
        "break": Fail("the provider is away"),
        "weather": [WEATHER],
    }
    return said.get(moment.text, "Hello.") if moment.steps == 0 else "Done."


# ------------------------------------------------------------------------------------------------------- runs


async def test_runs_are_listed_the_last_begun_first_with_what_came_of_them(serve: Serve, store: str) -> None:
    http = (await serve(Scene(answers).agent, store=store)).http
    for number, text in enumerate(("hi", "open a page", "break", "weather")):
        await Page(http, f"chat{number}").say(text)
    listed = (await look(http, "/runs"))["runs"]
    shown = [(each["title"], each["state"], each["steps"], each["calls"], each["waiting"]) for each in listed]
    assert shown == [
        ("weather", "done", 2, 1, 0),
        ("break", "failed", 0, 0, 0),
        ("open a page", "parked", 1, 1, 1),
        ("hi", "done", 1, 0, 0),
    ]
    assert listed[1]["error"] == "The model failed. Try again later. The server's log has the details."
    broken = await http.get(f"/api/inspect/runs/{listed[1]['runId']}/events")
    assert "the provider is away" in broken.text, "those who inspect are told the rest"
    assert listed[2]["endedAt"] is None
    assert all(each["seconds"] >= 0 for each in listed)


async def test_a_held_run_is_listed_and_found_as_waiting(serve: Serve, store: str) -> None:
    http = (await serve(Scene(answers).agent, store=store)).http
    async with held(http).saying("open a page") as live:
        await opened(live)
        listed = (await look(http, "/runs?state=waiting"))["runs"]
        assert (await look(http, "/runs?state=running"))["runs"] == []
        [call] = (await look(http, "/inbox"))["calls"]
        await http.post("/api/tools/take", json={"toolCallId": call["callId"], "clientId": "tab-2"})
        [taken] = (await look(http, "/runs?state=waiting"))["runs"]
    shown = [(each["title"], each["state"], each["steps"], each["calls"], each["waiting"]) for each in listed]
    assert shown == [("open a page", "waiting", 1, 1, 1)]
    assert taken["waiting"] == 0, "a call that a browser has taken is no question"


async def test_two_runs_of_one_chat_have_each_their_own_title(serve: Serve, store: str) -> None:
    page = Page((await serve(Scene(lambda moment: "Hello.").agent, store=store)).http)
    await page.say("first words")
    await page.say("second words")
    listed = (await look(page.http, "/runs"))["runs"]
    assert [each["title"] for each in listed] == ["second words", "first words"]
    assert listed[0]["threadId"] == listed[1]["threadId"]


async def test_runs_are_found_by_state_and_by_words(serve: Serve, store: str) -> None:
    http = (await serve(Scene(answers).agent, store=store)).http
    for number, text in enumerate(("hi", "open a page", "weather", "hi there")):
        await Page(http, f"chat{number}").say(text)

    async def found(query: str) -> list[str]:
        return [each["title"] for each in (await look(http, f"/runs?{query}"))["runs"]]

    assert await found("state=parked") == ["open a page"]
    assert await found("state=done&search=HI") == ["hi there", "hi"]
    assert await found("search=open_url") == ["open a page"]
    assert await found("search=chat2") == ["weather"]
    assert await found("search=nowhere") == []
    run = (await look(http, "/runs?search=weather"))["runs"][0]
    assert await found(f"search={run['runId'][4:20]}") == ["weather"]


async def test_pages_of_a_search_follow_on_each_other(serve: Serve, store: str) -> None:
    http = (await serve(Scene(answers).agent, store=store)).http
    for number in range(7):
        await Page(http, f"chat{number}").say("weather" if number % 2 else "hi")
    listed: Json = {"next": None}
    seen, after = [], ""
    while "next" in listed:
        listed = await look(http, f"/runs?search=hi&limit=2{after}")
        seen.append([each["threadId"] for each in listed["runs"]])
        after = f"&after={listed.get('next')}"
    assert [thread for page in seen for thread in page] == ["chat6", "chat4", "chat2", "chat0"]
    assert all(len(page) <= 2 for page in seen)


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=101", "limit=x", "state=odd", "after=a b", f"search={'x' * 201}"]
)
async def test_a_search_that_cannot_be_is_refused(serve: Serve, query: str) -> None:
    http = (await serve(Scene(["x"]).agent)).http
    response = await http.get(f"{ROOT}/runs?{query}")
    assert (response.status_code, response.json()["error"]["code"]) == (400, "invalid")


async def test_a_run_is_shown_with_rows_figures_and_events(serve: Serve, store: str) -> None:
    scene = Scene([["Let me see. ", WEATHER, OPEN], "Done."])
    page = Page((await serve(scene.agent, store=store)).http)
    [_, opened] = (await page.say("both")).calls
    open_run = await newest(page.http)
    assert open_run["run"]["state"] == "parked"
    assert "end" not in open_run["rows"][2]["segments"][-1], "still going"
    page.output(opened, {"url": "u", "viewKey": "v"})
    await page.send()
    shown = await newest(page.http)
    rows = [(row.get("tool"), row["step"], kinds(row), row.get("outcome")) for row in shown["rows"]]
    assert rows == [
        (None, 1, ["model"], "success"),
        ("weather", 1, ["server"], "success"),
        ("open_url", 1, ["person"], "success"),
        (None, 2, ["model"], "success"),
    ]
    figures = shown["figures"]
    assert sum(figures[name] for name in ("model", "person", "client", "way", "server")) == figures["whole"]
    assert (shown["parks"], shown["kept"], shown["store"]) == (1, True, store.partition(":")[0])
    events = await look(page.http, f"/runs/{shown['run']['runId']}/events")
    told = {event["type"]: event["told"] for event in events["events"]}
    assert told["text-added"] == "Done."
    assert told["call-settled"] == "open_url, success"
    assert events["total"] == len(events["events"])
    last = await look(page.http, f"/runs/{shown['run']['runId']}/events?limit=2")
    assert [event["seq"] for event in last["events"]] == [event["seq"] for event in events["events"][-2:]]


async def test_an_active_run_is_shown_as_far_as_it_is(serve: Serve) -> None:
    scene = Scene(once(Ask("slow", {"subject": "tea"})))
    page = Page((await serve(scene.agent)).http)
    async with page.saying("tea") as live:
        await until(lambda: bool(scene.ran))
        shown = await newest(page.http)
        assert shown["run"]["state"] == "running"
        assert [kinds(row) for row in shown["rows"]] == [["model"], ["server"]]
        assert "end" not in shown["rows"][1]
        scene.gate("tea").set()
        await live.rest()


# ------------------------------------------------------------------------------------------------------ calls


async def test_the_life_of_a_call_is_told_in_sentences(serve: Serve, store: str) -> None:
    page = Page((await serve(Scene([[PHOTO], "Done."]).agent, store=store)).http)
    [call_id] = (await page.say("photo")).calls
    waiting = await look(page.http, f"/calls/{call_id}")
    assert titles(waiting)[-1] == "Waiting for a person to allow or deny it"
    assert waiting["outcome"] is None
    page.approve(call_id)
    await page.send()
    assert titles(await look(page.http, f"/calls/{call_id}"))[-1] == (
        "Waiting for a person, or a page that runs it"
    )
    await page.http.post("/api/tools/take", json={"toolCallId": call_id, "clientId": "tab-2"})
    assert titles(await look(page.http, f"/calls/{call_id}"))[-1] == "Running in tab-2"
    page.output(call_id, {"name": "lamp.jpg"})
    await page.send()
    shown = await look(page.http, f"/calls/{call_id}")
    assert titles(shown) == [
        "Asked by the model",
        "Needs approval first",
        "Run saved while waiting",
        "Allowed by a person",
        "Offered to open browsers of this chat",
        "Taken by tab-2",
        "Answer stored (exactly once)",
        "Model continued",
    ]
    assert [sentence["at"] for sentence in shown["life"]] == sorted(each["at"] for each in shown["life"])
    assert shown["outcome"] == {"kind": "success", "output": {"name": "lamp.jpg"}}
    assert (shown["input"], shown["phase"]) == ({"camera": "front"}, "settled")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ask", "last", "tone"),
    [
        (Ask("nothing", {}), "Rejected; reported to the model only", "bad"),
        (Ask("broken", {"subject": "x"}), "Failed; reported to the model", "bad"),
        (Ask("pick_quickly", {"label": "x"}), "Timed out", "care"),
        (WEATHER, "Done on the server", "good"),
    ],
)
async def test_every_end_has_its_own_words(serve: Serve, ask: Ask, last: str, tone: str) -> None:
    page = Page((await serve(Scene([[ask], "Done."]).agent)).http, wait="hold")
    [call_id] = (await page.say("go")).calls
    told = (await look(page.http, f"/calls/{call_id}"))["life"]
    assert [(each["title"], each["tone"]) for each in told][-2:] == [
        (last, tone),
        ("Model continued", "good"),
    ]


async def test_a_denial_and_a_stop_are_told(serve: Serve) -> None:
    page = Page((await serve(Scene([[DELETE, OPEN], "Done."]).agent)).http)
    [delete, opened] = (await page.say("go")).calls
    page.approve(delete, approved=False, reason="mine")
    await page.send()
    await page.stop()
    denied = (await look(page.http, f"/calls/{delete}"))["life"][-1]
    assert (denied["title"], denied["detail"], denied["tone"]) == ("Denied by a person", "mine", "care")
    stopped = (await look(page.http, f"/calls/{opened}"))["life"][-1]
    assert (stopped["title"], stopped["detail"]) == ("Cancelled", "Stopped by the user.")


async def test_each_face_tells_the_call_in_its_own_frames(serve: Serve, store: str) -> None:
    page = Page((await serve(Scene([[OPEN], "Done."]).agent, store=store)).http, wait="hold")
    async with page.saying("open") as live:
        call_id = (await live.until("tool-input-available"))["toolCallId"]
        await page.http.post("/api/tools/ack", json={"toolCallId": call_id, "status": "success", "output": 7})
        await live.rest()
    wires = {each["name"]: each for each in (await look(page.http, f"/calls/{call_id}"))["wires"]}
    chunks = "".join(frame["text"] for frame in wires["ui-stream"]["frames"])
    assert f'"type":"tool-input-available","toolCallId":"{call_id}"' in chunks
    assert f'data: {{"type":"tool-output-available","toolCallId":"{call_id}","output":7}}\n' in chunks
    assert ["x-vercel-ai-ui-message-stream", "v1"] in wires["ui-stream"]["headers"]
    tags = "".join(frame["text"] for frame in wires["awaiting, xml"]["frames"])
    assert "<content-block-tool_call" in tags
    assert "event: call-settled\n" in "".join(frame["text"] for frame in wires["events"]["frames"])
    assert "tool_use" in "".join(frame["text"] for frame in wires["awaiting, raw"]["frames"])
    shown = "".join(frame["text"] for frame in wires["ag-ui"]["frames"])
    assert f'data: {{"type":"TOOL_CALL_RESULT","messageId":"{call_id}:result"' in shown
    assert wires["client-tools"]["frames"] == [], "no registered client was asked"


async def test_the_frames_of_a_registered_client_are_shown_to_the_run_and_without_one(serve: Serve) -> None:
    http = (await serve(asks(Ask("client_notes_read", {"text": "a"})))).http
    async with ready(Program(http), "read") as notes:
        talking = asyncio.gather(chat(http), notes.answer(status="success", output="b", title="t"))
        request = (await talking)[1]
        calling = asyncio.gather(
            notes.program.execute("read", {"text": "b"}),
            notes.answer(status="success", output="c", title="t"),
        )
        alone = (await calling)[1]
    for asked in (request, alone):
        shown = await look(http, f"/calls/{asked['requestID']}")
        frames = "".join(
            frame["text"]
            for wire in shown["wires"]
            if wire["name"] == "client-tools"
            for frame in wire["frames"]
        )
        assert "event: tool-request\n" in frames
        assert "event: tool-settled\n" in frames
    shown = await look(http, f"/calls/{alone['requestID']}")
    assert titles(shown) == ["Asked by a program", "Answer stored (exactly once)"]
    assert shown["runId"] is None


@requirement("inspector:masks")
async def test_no_path_of_the_inspector_shows_a_secret(serve: Serve, store: str) -> None:
    secret = "hunter2hunter2"
    page_of = Ask("open_url", {"url": f"https://ann:{secret}@example.org/?token={secret}"})
    scene = Scene(
        [
            [f"password: {secret} ", page_of, Ask("weather", {"city": f"Bearer {secret}"})],
            f"The api_key={secret} it is.",
        ]
    )
    page = Page((await serve(scene.agent, store=store)).http)
    calls = (await page.say(f"my password is password={secret}")).calls
    seen = [(await page.http.get(f"{ROOT}/inbox")).text]
    page.output(calls[0], {"password": secret, "note": [f"secret={secret}"]})
    await page.send()
    run = f"/runs/{(await look(page.http, '/runs'))['runs'][0]['runId']}"
    paths = ["/runs", run, f"{run}/events", f"{run}/test", "/events", "/tools", "/clients"]
    paths += [f"/calls/{call}" for call in calls]
    seen += [(await page.http.get(f"{ROOT}{path}")).text for path in paths]
    assert all(secret not in text for text in seen)
    masked = [path for path, text in zip(["/inbox", *paths], seen, strict=True) if "••••" in text]
    assert {"/inbox", "/runs", f"{run}/events", f"{run}/test", "/events", *paths[-2:]} <= set(masked)


@pytest.mark.parametrize("path", ["/test", "", "/events"])
@pytest.mark.slow
async def test_long_texts_are_masked_beside_the_event_loop(serve: Serve, path: str) -> None:
    hostile = "eyJ-password " * 80_000
    page = Page((await serve(Scene([hostile, "Hello."]).agent)).http)
    await page.say(hostile)
    run = f"/runs/{(await look(page.http, '/runs'))['runs'][0]['runId']}{path}"
    here, everywhere = thread_time(), process_time()
    shown = await page.http.get(f"{ROOT}{run}")
    here, everywhere = thread_time() - here, process_time() - everywhere
    assert shown.status_code == 200
    # this thread runs the server's loop: the work was done in another one, if there was any to speak of
    assert here < max(0.5, everywhere / 3)


# ------------------------------------------------------------------------------------------- again and curl


async def test_an_answer_that_is_sent_again_is_repeated(serve: Serve, store: str) -> None:
    page = Page((await serve(Scene([[OPEN, DELETE, WEATHER], "Done."]).agent, store=store)).http)
    calls = (await page.say("all")).calls
    by_tool = {page.part(call)["type"].removeprefix("tool-"): call for call in calls}
    early = await page.http.post(f"{ROOT}/calls/{by_tool['open_url']}/again", json={})
    assert (early.status_code, early.json()["error"]["code"]) == (400, "invalid")
    page.output(by_tool["open_url"], {"password": "hunter2"})
    page.approve(by_tool["delete_file"], approved=False, reason="mine")
    await page.send()
    for tool in ("open_url", "delete_file"):
        shown = await look(page.http, f"/calls/{by_tool[tool]}")
        again = await page.http.post(f"{ROOT}/calls/{by_tool[tool]}/again", json={})
        assert (again.status_code, again.json()["receipt"], shown["again"]) == (200, "repeated", True)
    assert not (await look(page.http, f"/calls/{by_tool['weather']}"))["again"]
    own = await page.http.post(f"{ROOT}/calls/{by_tool['weather']}/again", json={})
    assert own.status_code == 400
    assert (await page.http.post(f"{ROOT}/calls/{calls[0]}/again", content=b"{}")).status_code == 415


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl on this machine")
async def test_the_copied_command_brings_the_answer_when_a_shell_runs_it(serve: Serve) -> None:
    served = await serve(Scene([[Ask("open_url", {"url": "it's $HOME"})], "Done."]).agent)
    page = Page(served.http)
    [call_id] = (await page.say("open")).calls
    command = (await look(page.http, f"/calls/{call_id}"))["curl"]
    assert served.token not in command
    assert await shell(command, served.token) == b'{"ok":true}'
    again = (await look(page.http, f"/calls/{call_id}"))["curl"]
    assert await shell(again, served.token) == b'{"ok":true,"ignored":true}'


async def shell(command: str, token: str) -> bytes:
    process = await asyncio.create_subprocess_shell(
        command.replace("curl ", "curl -s ", 1),
        stdout=asyncio.subprocess.PIPE,
        env={"FARHAND_TOKEN": token, "PATH": "/usr/bin:/bin"},
    )
    async with asyncio.timeout(20):
        return (await process.communicate())[0]


# ----------------------------------------------------------------------------------------------------- around


async def test_what_waits_who_is_here_and_what_there_is_are_listed(serve: Serve) -> None:
    http = (await serve(Scene([[OPEN, DELETE], "Done."]).agent)).http
    await Page(http, "mine").say("go")
    waiting = (await look(http, "/inbox"))["calls"]
    assert [(each["tool"], each["phase"], each["title"]) for each in waiting] == [
        ("open_url", "ready", "go"),
        ("delete_file", "asking", "go"),
    ]
    assert waiting[1]["approvalId"].startswith("apr_")
    async with ready(Program(http), "read"):
        [client] = (await look(http, "/clients"))["clients"]
        assert (client["clientId"], client["here"], client["tools"]) == ("notes", True, ["client_notes_read"])
        tools = {each["name"]: each for each in (await look(http, "/tools"))["tools"]}
        assert (tools["client_notes_read"]["clientId"], tools["delete_file"]["asks"]) == ("notes", True)
    events = await look(http, "/events")
    assert [each["type"] for each in events["events"]][:2] == ["run-started", "call-opened"]
    assert "client-registered" in [each["type"] for each in events["events"]]
    assert len((await look(http, "/events?limit=2"))["events"]) == 2
    about = await look(http)
    assert (about["model"], about["store"]) == ("scripted", "memory")
