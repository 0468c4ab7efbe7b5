"""Chats of one owner: listed, shown as a page needs them after a reload, renamed, deleted."""

from __future__ import annotations

from typing import Any

import pytest

from farhand.core.file import FileRules
from farhand.core.settings import Settings
from farhand.models.scripted import Ask, Fail, Moment, Step, Think
from farhand.store.open import open_store
from farhand.testing import FakeClock
from tests.faces.conftest import Serve
from tests.faces.ui_stream.agents import Scene, once
from tests.faces.ui_stream.header_auth import check, person
from tests.faces.ui_stream.page import Page, until
from tests.requirement import requirement

# Any: what comes over the wire is looked at by its fields, and a wrong one fails the test
Json = Any
OPEN = Ask("open_url", {"url": "u"})
DELETE = Ask("delete_file", {"path": "a"})
PHOTO = Ask("take_photo", {"camera": "front"})
NOT_FOUND = (404, "unknown")


async def get(page: Page, path: str) -> Json:
    response = await page.http.get(path)
    assert response.status_code == 200, response.text
    return response.json()


async def shown(page: Page) -> Json:
    return await get(page, f"/api/chat/{page.id}")


# ------------------------------------------------------------------------------------------------------- list


@requirement("threads:list")
async def test_where_nothing_was_said_there_are_no_chats(serve: Serve) -> None:
    page = Page((await serve(Scene(["x"]).agent)).http)
    assert await get(page, "/api/chat") == {"threads": []}


@requirement("threads:list")
async def test_chats_are_listed_the_last_used_first_with_their_state(serve: Serve, store: str) -> None:
    def script(moment: Moment) -> Step:
        answers: dict[str, Step] = {"open": [OPEN, PHOTO], "fail": Fail("no")}
        return answers.get(moment.text, "Hello.")

    scene = Scene(script)
    http = (await serve(scene.agent, store=store)).http
    for name, text in (
        ("one", "hi"),
        ("two", "open"),
        ("three", "fail"),
        ("four", "open"),
        ("one", "hi again"),
    ):
        await Page(http, name).say(text)
    await Page(http, "four").stop()
    listed = (await get(Page(http), "/api/chat"))["threads"]
    assert [(each["id"], each["title"], each["state"], each["openCalls"]) for each in listed] == [
        ("one", "hi", "done", 0),
        ("four", "open", "stopped", 0),
        ("three", "fail", "failed", 0),
        ("two", "open", "waiting", 2),
    ]
    assert all(each["updatedAt"].endswith("Z") for each in listed)


@requirement("threads:list")
async def test_a_running_chat_says_so(serve: Serve) -> None:
    scene = Scene(once(Ask("slow", {"subject": "tea"})))
    page = Page((await serve(scene.agent)).http)
    async with page.saying("tea") as live:
        await until(lambda: bool(scene.ran))
        assert (await get(page, "/api/chat"))["threads"][0]["state"] == "running"
        assert (await shown(page))["state"] == "running"
        scene.gate("tea").set()
        await live.rest()
    assert (await shown(page))["state"] == "done"


@requirement("threads:list")
async def test_pages_of_the_list_follow_on_each_other(serve: Serve, store: str) -> None:
    http = (await serve(Scene(lambda moment: "Hello.").agent, store=store)).http
    for number in range(5):
        await Page(http, f"chat{number}").say("hi")
    listed: Json = {"next": None}
    seen, after = [], ""
    while "next" in listed:
        listed = await get(Page(http), f"/api/chat?limit=2{after}")
        seen += [[each["id"] for each in listed["threads"]]]
        after = f"&after={listed.get('next')}"
    assert seen == [["chat4", "chat3"], ["chat2", "chat1"], ["chat0"]]


@requirement("threads:list")
async def test_a_search_finds_words_of_titles_and_of_what_the_person_said(serve: Serve, store: str) -> None:
    http = (await serve(Scene(lambda moment: "Of bananas I say nothing.").agent, store=store)).http
    said = {"fruit": ["Apples and pears"], "tools": ["Hammer", "and PEARS, too"], "other": ["Nails"]}
    for chat, messages in said.items():
        for text in messages:
            await Page(http, chat).say(text)

    async def found(words: str) -> list[str]:
        listed = await get(Page(http), f"/api/chat?q={words}")
        assert "next" not in listed
        return [each["id"] for each in listed["threads"]]

    assert await found("pears") == ["tools", "fruit"]
    assert await found("pears%20hammer") == ["tools"]
    assert await found("apples") == ["fruit"]
    assert await found("bananas") == []
    assert await found("%20") == ["other", "tools", "fruit"]
    assert (await http.patch("/api/chat/other", json={"title": "Iron"})).status_code == 200
    assert await found("iron") == ["other"]
    assert (await http.get(f"/api/chat?q={'x' * 201}")).status_code == 400


@requirement("threads:list")
async def test_pages_of_a_search_follow_on_each_other(serve: Serve, store: str) -> None:
    http = (await serve(Scene(lambda moment: "Hello.").agent, store=store)).http
    for number in range(6):
        await Page(http, f"chat{number}").say("odd" if number % 2 else "even")
    listed: Json = {"next": None}
    seen, after = [], ""
    while "next" in listed:
        listed = await get(Page(http), f"/api/chat?q=odd&limit=2{after}")
        seen += [[each["id"] for each in listed["threads"]]]
        after = f"&after={listed.get('next')}"
    assert seen == [["chat5", "chat3"], ["chat1"]]


@requirement("threads:list")
async def test_a_chat_that_is_used_while_one_scrolls_repeats_no_row(serve: Serve, store: str) -> None:
    http = (await serve(Scene(lambda moment: "Hello.").agent, store=store)).http
    chats = [Page(http, f"chat{number}") for number in range(5)]
    for chat in chats:
        await chat.say("hi")
    first = await get(chats[0], "/api/chat?limit=2")
    # the last row of the first page moves to the top, and a row that was not shown yet leaves
    await chats[3].say("again")
    assert (await http.delete("/api/chat/chat2")).status_code == 200
    second = await get(chats[0], f"/api/chat?limit=10&after={first['next']}")
    shown = [[each["id"] for each in page["threads"]] for page in (first, second)]
    assert shown == [["chat4", "chat3"], ["chat1", "chat0"]]
    assert "next" not in second


@requirement("threads:list")
@pytest.mark.parametrize(
    "query",
    [
        *("limit=0", "limit=101", "limit=x", "limit=", "limit=٣"),
        *(
            "after=a b",
            "after=",
            "after=chat1",
            "after=nan:chat1",
            "after=1e9:chat1",
            "after=-1:chat1",
            "after=1:",
        ),
    ],
)
async def test_a_page_that_cannot_be_is_refused(serve: Serve, query: str) -> None:
    http = (await serve(Scene(["x"]).agent)).http
    response = await http.get(f"/api/chat?{query}")
    assert (response.status_code, response.json()["error"]["code"]) == (400, "invalid")


# ------------------------------------------------------------------------------------------------ one chat


@requirement("threads:messages")
async def test_a_chat_is_shown_as_the_page_had_it(serve: Serve, store: str) -> None:
    scene = Scene([[Think("Hm."), "Let me look. ", Ask("weather", {"city": "Oslo"})], "Sunny.", "Bye."])
    page = Page((await serve(scene.agent, store=store)).http)
    first = await page.say("weather?")
    second = await page.say("thanks")
    chat = await shown(page)
    assert (chat["id"], chat["title"], chat["state"], chat["openCalls"]) == (page.id, "weather?", "done", [])
    assert [(each["id"], each["role"]) for each in chat["messages"]] == [
        (page.messages[0]["id"], "user"),
        (first.message_id, "assistant"),
        (page.messages[2]["id"], "user"),
        (second.message_id, "assistant"),
    ]
    took = chat["messages"][1]["parts"][3].pop("tookMs")
    assert isinstance(took, int)
    assert chat["messages"][1]["parts"] == [
        {"type": "step-start"},
        {"type": "reasoning", "text": "Hm.", "state": "done"},
        {"type": "text", "text": "Let me look. ", "state": "done"},
        {
            "type": "tool-weather",
            "state": "output-available",
            "toolCallId": first.calls[0],
            "input": {"city": "Oslo"},
            "output": {"city": "Oslo", "sky": "sunny"},
            "outcome": "success",
        },
        {"type": "step-start"},
        {"type": "text", "text": "Sunny.", "state": "done"},
    ]


@requirement("threads:messages")
async def test_open_calls_are_parts_in_their_stored_states(serve: Serve, store: str) -> None:
    scene = Scene(once(OPEN, PHOTO, DELETE))
    page = Page((await serve(scene.agent, store=store)).http)
    opened, photo, delete = (await page.say("all")).calls
    page.approve(photo)
    await page.send()
    chat = await shown(page)
    states = {part["toolCallId"]: part["state"] for part in chat["messages"][-1]["parts"][1:]}
    assert states == {opened: "input-available", photo: "approval-responded", delete: "approval-requested"}
    approvals = {part["toolCallId"]: part.get("approval") for part in chat["messages"][-1]["parts"][1:]}
    assert approvals[opened] is None
    assert approvals[photo]["approved"] is True
    assert approvals[delete].keys() == {"id"}
    assert [(each["callId"], each["phase"]) for each in chat["openCalls"]] == [
        (opened, "ready"),
        (photo, "ready"),
        (delete, "asking"),
    ]


@requirement("threads:messages")
async def test_a_page_that_was_loaded_again_can_answer_what_is_open(serve: Serve, store: str) -> None:
    scene = Scene(once(OPEN, DELETE))
    page = Page((await serve(scene.agent, store=store)).http)
    opened, delete = (await page.say("both")).calls
    fresh = Page(page.http, page.id)
    fresh.messages = (await shown(page))["messages"]
    fresh.output(opened, {"n": 1})
    fresh.approve(delete)
    assert (await fresh.send()).finish == "stop"
    assert scene.ran == [("delete_file", "a")]


@requirement("threads:messages")
@pytest.mark.parametrize("later", [False, True], ids=["of the last run", "of an earlier run"])
async def test_ended_calls_keep_their_states(serve: Serve, later: bool) -> None:
    def script(moment: Moment) -> Step:
        asks: list[Step] = [[DELETE], [Ask("broken", {"subject": "x"})], [Ask("nothing", {})], "Done."]
        return asks[moment.steps] if moment.text == "all" else "Later."

    scene = Scene(script)
    page = Page((await serve(scene.agent)).http)
    [call] = (await page.say("all")).calls
    page.approve(call, approved=False, reason="mine")
    await page.send()
    if later:
        await page.say("and?")
    parts = (await shown(page))["messages"][1]["parts"]
    tools = [part for part in parts if part["type"].startswith("tool-")]
    assert [(part["type"], part["state"]) for part in tools] == [
        ("tool-delete_file", "output-denied"),
        ("tool-broken", "output-error"),
        ("tool-nothing", "output-error"),
    ]
    # a client's type for a denied part has its approval, with the answer
    assert (tools[0]["approval"]["approved"], tools[0]["approval"]["reason"]) == (False, "mine")
    assert "out of order" in tools[1]["errorText"]
    assert all("input" in part for part in tools)


@requirement("threads:messages")
@pytest.mark.parametrize("later", [False, True], ids=["of the last run", "of an earlier run"])
async def test_an_edited_call_shows_what_ran(serve: Serve, later: bool) -> None:
    def script(moment: Moment) -> Step:
        if moment.text != "delete":
            return "Later."
        return DELETE if moment.steps == 0 else "Done."

    scene = Scene(script)
    page = Page((await serve(scene.agent)).http)
    approval = (await page.say("delete")).one("tool-approval-request")["approvalId"]
    body = {"approvalId": approval, "approved": True, "input": {"path": "b"}}
    assert (await page.http.post("/api/tools/approve", json=body)).json() == {"ok": True}
    await page.resume()
    if later:
        await page.say("and?")
    parts = (await shown(page))["messages"][1]["parts"]
    assert parts[1]["input"] == {"path": "b"}
    assert parts[1]["output"] == {"deleted": "b"}


@requirement("threads:messages")
async def test_what_regenerate_and_edit_cut_is_gone(serve: Serve, store: str) -> None:
    scene = Scene(["One.", "Two.", "Three."])
    page = Page((await serve(scene.agent, store=store)).http)
    await page.say("a")
    page.messages.pop()
    await page.send(trigger="regenerate-message")
    texts = [
        part["text"] for each in (await shown(page))["messages"] for part in each["parts"] if "text" in part
    ]
    assert texts == ["a", "Two."]


# ------------------------------------------------------------------------------------------------ changes


@requirement("threads:rename")
async def test_a_chat_is_renamed(serve: Serve, store: str) -> None:
    page = Page((await serve(Scene(lambda moment: "Hello.").agent, store=store)).http)
    await page.say("  a   first\nmessage ")
    assert (await shown(page))["title"] == "a first message"
    response = await page.http.patch(f"/api/chat/{page.id}", json={"title": " Träume \n der  Nacht "})
    assert (response.status_code, response.json()) == (200, {"ok": True})
    assert (await shown(page))["title"] == "Träume der Nacht"
    await page.say("more")
    assert (await get(page, "/api/chat"))["threads"][0]["title"] == "Träume der Nacht"


@requirement("threads:rename")
@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"title": ""}, 400, "invalid"),
        ({"title": " \n"}, 400, "invalid"),
        ({"title": None}, 400, "invalid"),
        ({}, 400, "invalid"),
        ([], 400, "invalid"),
        ({"title": "é" * 129}, 413, "too_large"),
        ({"title": "x" * 5000}, 413, "too_large"),
    ],
    ids=lambda value: str(value)[:20],
)
async def test_a_title_that_cannot_be_is_refused(serve: Serve, body: object, status: int, code: str) -> None:
    page = Page((await serve(Scene(["x"]).agent)).http)
    await page.say("hi")
    response = await page.http.patch(f"/api/chat/{page.id}", json=body)
    assert (response.status_code, response.json()["error"]["code"]) == (status, code)
    assert (await shown(page))["title"] == "hi"


@requirement("threads:delete")
async def test_a_deleted_chat_is_gone_with_all_that_was_in_it(serve: Serve, store: str) -> None:
    scene = Scene([OPEN, "Hello again."])
    page = Page((await serve(scene.agent, store=store)).http)
    [call] = (await page.say("open")).calls
    response = await page.http.delete(f"/api/chat/{page.id}")
    assert (response.status_code, response.json()) == (200, {"ok": True})
    assert await get(page, "/api/chat") == {"threads": []}
    assert await get(page, "/api/inbox") == {"calls": []}
    assert await page.resume_status() == 204
    late = await page.http.post("/api/tools/ack", json={"toolCallId": call, "status": "success"})
    assert late.status_code == 404
    page.messages = []
    assert (await page.say("hi")).text == "Hello again."
    assert len(scene.model.prompts[-1].messages) == 1


@requirement("threads:delete")
async def test_deleting_stops_what_runs_and_ends_its_response(serve: Serve, store: str) -> None:
    scene = Scene(once(Ask("slow", {"subject": "tea"})))
    page = Page((await serve(scene.agent, store=store)).http)
    async with page.saying("tea") as live:
        await until(lambda: bool(scene.ran))
        assert (await page.http.delete(f"/api/chat/{page.id}")).json() == {"ok": True}
        turn = await live.rest()
    assert turn.chunks[-1]["type"] in ("finish", "error")
    assert len(scene.model.prompts) == 1


@requirement("attack:who-you-are")
async def test_unknown_and_anothers_are_the_same_404(serve: Serve, store: str) -> None:
    served = await serve(Scene(once(OPEN)).agent, store=store, authenticate=check)
    async with person(served, "ada") as ada, person(served, "eve") as eve:
        await Page(ada, "diary").say("open")
        for http, chat in ((eve, "diary"), (ada, "never-seen")):
            answers = [
                await http.get(f"/api/chat/{chat}"),
                await http.patch(f"/api/chat/{chat}", json={"title": "x"}),
                await http.delete(f"/api/chat/{chat}"),
            ]
            bodies = [answer.json() for answer in answers]
            assert [(a.status_code, b["error"]["code"]) for a, b in zip(answers, bodies, strict=True)] == [
                NOT_FOUND
            ] * 3
            assert bodies[0] == {"error": {"code": "unknown", "message": "There is no such chat."}}
        assert (await eve.get("/api/chat")).json() == {"threads": []}
        assert (await eve.get("/api/inbox")).json() == {"calls": []}
        assert len((await ada.get("/api/chat")).json()["threads"]) == 1


# ------------------------------------------------------------------------------------- inbox, tools, health


@requirement("threads:inbox")
async def test_the_inbox_has_every_open_question_the_oldest_first(serve: Serve) -> None:
    clock = FakeClock(1_800_000_000.0)

    def script(moment: Moment) -> Step:
        asks: dict[str, Step] = {
            "one": OPEN,
            "two": DELETE,
            "three": [Ask("ask_text", {"question": "?"}), PHOTO],
        }
        return asks[moment.text]

    served = await serve(Scene(script).agent, store=await open_store("memory:", clock))
    turns = {}
    for name in ("one", "two", "three"):
        turns[name] = await Page(served.http, f"chat-{name}").say(name)
        clock.advance(1)
    calls = (await get(Page(served.http), "/api/inbox"))["calls"]
    asked = [
        ("chat-one", "one", "open_url", "ready", "frontend"),
        ("chat-two", "two", "delete_file", "asking", "server"),
        ("chat-three", "three", "ask_text", "ready", "frontend"),
        ("chat-three", "three", "take_photo", "asking", "frontend"),
    ]
    assert [(c["threadId"], c["title"], c["tool"], c["phase"], c["executor"]) for c in calls] == asked
    approval = turns["two"].one("tool-approval-request")["approvalId"]
    assert [c.get("approvalId") is not None for c in calls] == [False, True, False, True]
    assert calls[1]["approvalId"] == approval
    assert calls[0] == {
        "callId": turns["one"].calls[0],
        "threadId": "chat-one",
        "title": "one",
        "tool": "open_url",
        "input": {"url": "u"},
        "phase": "ready",
        "executor": "frontend",
        "deadline": "2027-01-18T08:00:00.000Z",
        "card": "open_page",
        "openedAt": "2027-01-15T08:00:00.000Z",
    }


@requirement("threads:inbox")
async def test_the_inbox_of_one_thread_has_the_questions_of_that_thread(serve: Serve) -> None:
    served = await serve(Scene(once(OPEN)).agent)
    for name in ("chat-one", "chat-two"):
        await Page(served.http, name).say("open")
    calls = (await get(Page(served.http), "/api/inbox?thread=chat-two"))["calls"]
    assert [call["threadId"] for call in calls] == ["chat-two"]
    assert await get(Page(served.http), "/api/inbox?thread=chat-nine") == {"calls": []}
    refused = await served.http.get("/api/inbox", params={"thread": "a b"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "invalid")


@requirement("threads:inbox")
async def test_what_is_answered_leaves_the_inbox(serve: Serve, store: str) -> None:
    scene = Scene(once(OPEN))
    page = Page((await serve(scene.agent, store=store)).http)
    [call] = (await page.say("open")).calls
    assert len((await get(page, "/api/inbox"))["calls"]) == 1
    await page.http.post("/api/tools/ack", json={"toolCallId": call, "status": "success"})
    assert (await get(page, "/api/inbox")) == {"calls": []}


@requirement("threads:inbox")
async def test_the_inbox_is_for_those_who_may_answer(serve: Serve) -> None:
    served = await serve(Scene(once(OPEN)).agent, authenticate=check)
    async with person(served, "ada", "chat") as ada:
        await Page(ada).say("open")
        response = await ada.get("/api/inbox")
        assert (response.status_code, response.json()["error"]["code"]) == (403, "forbidden")


async def test_the_tools_are_those_a_run_would_see(serve: Serve) -> None:
    scene = Scene(["Hello."])
    page = Page((await serve(scene.agent)).http)
    await page.say("hi")
    tools = {each["name"]: each for each in (await get(page, "/api/tools"))["tools"]}
    assert set(tools) == {each.name for each in scene.model.prompts[0].tools}
    photo = tools["take_photo"]
    assert (photo["executor"], photo["approval"]) == ("frontend", True)
    assert photo["inputSchema"]["properties"]["camera"] == {"type": "string", "description": "Which one."}
    assert photo["version"] == next(t for t in scene.model.prompts[0].tools if t.name == "take_photo").version
    assert (tools["weather"]["executor"], tools["weather"]["approval"]) == ("server", False)
    assert tools["ask_text"]["outputSchema"] == {"type": "string"}


async def test_a_page_can_say_which_model_it_talks_to_and_how_large_a_file_may_be(serve: Serve) -> None:
    scene = Scene(["Hello."])
    settings = Settings(files=FileRules(size=5_000))
    answer = await (await serve(scene.agent, settings=settings)).http.get("/api/about")
    about = answer.json()
    assert (about["model"], about["largestFile"]) == (scene.agent.spec.model.name, 5_000)


async def test_a_call_says_which_outcome_it_came_to_and_how_long_it_took(serve: Serve, store: str) -> None:
    scene = Scene(once(OPEN, DELETE))
    page = Page((await serve(scene.agent, store=store)).http)
    await page.say("both")
    await page.http.post(f"/api/chat/{page.id}/stop")
    parts = (await shown(page))["messages"][-1]["parts"][1:]
    assert [(part["state"], part["outcome"]) for part in parts] == [("output-error", "cancelled")] * 2
    assert all(part["tookMs"] >= 0 for part in parts)


async def test_health_and_readiness_need_no_credential(serve: Serve) -> None:
    served = await serve(Scene(["x"]).agent)
    for path in ("/healthz", "/readyz"):
        response = await served.stranger.get(path)
        assert (response.status_code, response.json()) == (200, {"ok": True})
    await served.app.drain()
    assert (await served.stranger.get("/healthz")).status_code == 200
    gone = await served.stranger.get("/readyz")
    assert (gone.status_code, gone.headers["retry-after"]) == (503, "1")


@requirement("attack:who-you-are")
@pytest.mark.parametrize(
    "path", ["/api/chat", "/api/chat/x", "/api/inbox", "/api/tools", "/api/chat/x/stream"]
)
async def test_without_a_credential_nothing_is_shown(serve: Serve, path: str) -> None:
    response = await (await serve(Scene(["x"]).agent)).stranger.get(path)
    assert (response.status_code, response.json()["error"]["code"]) == (401, "unauthenticated")


async def test_a_failed_chat_says_its_run_its_cause_and_its_code_after_a_reload_too(
    serve: Serve, store: str
) -> None:
    def script(moment: Moment) -> Step:
        return Fail("the line is down") if moment.text == "fail" else "Hello."

    page = Page((await serve(Scene(script).agent, store=store)).http)
    await page.say("fail")
    told = await shown(page)
    assert told["state"] == "failed"
    assert told["runId"].startswith("run_")
    assert told["failure"]["code"] == "model_fault"
    assert (
        told["failure"]["message"] == "The model failed. Try again later. The server's log has the details."
    )
    await page.say("hi")
    assert "failure" not in await shown(page)
