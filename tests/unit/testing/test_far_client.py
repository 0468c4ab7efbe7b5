"""The scripted far hand, against a real server on loopback."""

from __future__ import annotations

import asyncio

import pytest
from starlette.types import Receive, Scope, Send

from farhand.agent.agent import Agent
from farhand.core.principal import Principal
from farhand.core.settings import Settings, Timeouts
from farhand.models.scripted import Ask, Fail, Moment, Say, ScriptedModel, Step
from farhand.models.scripted.model import Script
from farhand.server.app import create_app
from farhand.testing.far_client import CallHandler, FarClient, RequestRejected
from farhand.testing.running_app import serve_app, serve_on_loopback
from farhand.tools.decorate import tool
from tests.requirement import requirement
from tests.unit.agent.hands import ask_text, open_url, take_photo

pytestmark = [pytest.mark.timeout(30), requirement("testing:far-client")]

OPEN = Ask("open_url", {"url": "https://example.org"})
ASK = Ask("ask_text", {"question": "Who?"})
PHOTO = Ask("take_photo", {"camera": "front"})
VIEW = {"viewKey": "v1"}


@tool(needs_approval=True)
def delete_file(path: str) -> str:
    """Delete a file.

    Args:
        path: Which.
    """
    return f"deleted {path}"


def _agent(*steps: Step | Script) -> Agent:
    return Agent(
        ScriptedModel([*steps, _tell]),
        tools=[delete_file],
        frontend_tools=[open_url, ask_text, take_photo],
    )


def _tell(moment: Moment) -> Step:
    return " ".join(str(each.output) if each.kind == "success" else each.error for each in moment.last)


async def test_a_held_call_is_answered_and_the_answer_continues() -> None:
    async with FarClient(_agent(["I open it. ", OPEN])) as far:
        await far.chat("open it")
        call = await far.called("open_url")
        assert call.input == {"url": "https://example.org"}
        assert (await far.ack(call.call_id, VIEW)).body == {"ok": True}
        assert await far.text() == "I open it. {'viewKey': 'v1'}"
        assert not [chunk for chunk in far.chunks if chunk["type"] == "error"]


async def test_a_turn_that_pauses_is_taken_up_when_it_was_answered() -> None:
    async with FarClient(_agent([OPEN, ASK], OPEN)) as far:
        await far.chat("open it", wait="turn")
        await far.ack((await far.called("open_url")).call_id, VIEW)
        await far.ack((await far.called("ask_text")).call_id, "me")
        again = await far.called("open_url")
        await far.fail(again.call_id, "popup blocked")
        assert await far.text() == "popup blocked"


async def test_handlers_answer_by_themselves() -> None:
    async def slowly(input: dict[str, object]) -> str:
        await asyncio.sleep(0)
        return f"{input['question']} me"

    async with FarClient(_agent([OPEN, ASK])) as far:
        far.on("open_url", lambda input: VIEW)
        far.on("ask_text", slowly)
        await far.chat("both")
        assert await far.text() == "{'viewKey': 'v1'} Who? me"


async def test_what_a_handler_raises_is_reported_as_a_failure() -> None:
    def blocked(input: dict[str, object]) -> object:
        raise RuntimeError("popup blocked")

    async with FarClient(_agent(OPEN)) as far:
        far.on("open_url", blocked)
        await far.chat("open it")
        assert await far.text() == "RuntimeError: popup blocked"


async def test_of_two_tabs_with_the_same_handler_one_executes() -> None:
    opened: list[str] = []

    def open_page(tab: str) -> CallHandler:
        def handle(input: dict[str, object]) -> object:
            opened.append(tab)
            return {"viewKey": tab}

        return handle

    async with (
        serve_app(_agent([Say("soon ", delay=0.01), OPEN])) as running,
        FarClient(running.url, token=running.token or "", thread="t") as one,
        FarClient(running.url, token=running.token or "", thread="t") as other,
    ):
        one.on("open_url", open_page("one"))
        other.on("open_url", open_page("other"))
        await one.chat("open it")
        await other.join()
        assert await one.text() == await other.text()
    assert len(opened) == 1


async def test_who_joins_when_nobody_speaks_hears_nothing() -> None:
    async with FarClient(_agent()) as far:
        await far.join("empty")
        assert await far.text() == ""
        with pytest.raises(AssertionError, match=r"Nothing for 'open_url'.*Received: nothing"):
            await far.called("open_url")


async def test_a_stream_that_breaks_off_is_told() -> None:
    async def cut(scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b'data: {"type":"start"}\n\n', "more_body": True})
        raise ConnectionResetError

    async with serve_on_loopback(cut) as url, FarClient(url) as far:
        await far.chat("hi")
        with pytest.raises(AssertionError, match="the stream failed"):
            await far.called("open_url")


async def test_a_call_that_another_tab_has_taken_is_refused() -> None:
    agent = _agent(OPEN)
    async with serve_app(agent) as running, FarClient(running.url, token=running.token or "") as one:
        await one.chat("open it", thread="shared")
        call = await one.called("open_url")
        assert (await one.take(call.call_id)).accepted
        async with FarClient(running.url, token=running.token or "", thread="shared") as other:
            assert (await other.take(call.call_id)).status == 409
        await one.ack(call.call_id, VIEW)
        assert await one.text() == "{'viewKey': 'v1'}"


async def test_a_yes_a_no_and_an_edit_answer_a_question() -> None:
    ask = Ask("delete_file", {"path": "a.txt"})
    async with FarClient(_agent(ask, ask, ask)) as far:
        await far.chat("delete it")
        first = await far.asked("delete_file")
        assert first.input == {"path": "a.txt"}
        assert (await far.approve(first.approval_id)).accepted
        assert (await far.deny((await far.asked("delete_file")).approval_id, "enough")).accepted
        await far.approve((await far.asked("delete_file")).approval_id, input={"path": "b.txt"})
        assert await far.text() == "deleted b.txt"


async def test_an_approval_for_the_thread_is_not_asked_again() -> None:
    ask = Ask("delete_file", {"path": "a.txt"})
    async with FarClient(_agent(ask, ask)) as far:
        await far.chat("delete it")
        await far.approve((await far.asked("delete_file")).approval_id, scope="thread")
        assert await far.text() == "deleted a.txt"
        with pytest.raises(AssertionError, match="Nothing for 'delete_file'"):
            await far.asked("delete_file")


@pytest.mark.parametrize("wait", ["hold", "turn"])
async def test_a_far_tool_behind_an_approval_is_called_after_it(wait: str) -> None:
    async with FarClient(_agent(PHOTO)) as far:
        await far.chat("photo", wait="hold" if wait == "hold" else "turn")
        asked = await far.asked("take_photo")
        assert asked.input == {"camera": "front"}
        await far.approve(asked.approval_id)
        await far.ack((await far.called("take_photo")).call_id, "a photo")
        assert await far.text() == "a photo"


async def test_the_server_tells_the_truth_to_a_second_answer() -> None:
    async with FarClient(_agent(ASK)) as far:
        await far.chat("ask")
        call = await far.called("ask_text")
        await far.ack(call.call_id, "me")
        again = await far.ack(call.call_id, "me")
        assert (again.status, again.accepted, again.body["ignored"]) == (200, False, True)
        assert (await far.ack(call.call_id, "you")).status == 409
        assert (await far.ack("call_" + "0" * 32, "me")).status == 404


async def test_a_stop_ends_the_answer() -> None:
    async with FarClient(_agent(OPEN)) as far:
        await far.chat("open it")
        await far.called("open_url")
        assert (await far.stop()).body == {"ok": True}
        assert await far.text() == ""


async def test_a_message_that_is_not_taken_says_why() -> None:
    async with FarClient(_agent([Say(["a"]), Say(["b"], delay=60)])) as far:
        await far.chat("speak")
        with pytest.raises(RequestRejected, match="409") as turned:
            await far.chat("hurry")
        assert turned.value.status == 409


async def test_a_far_hand_without_the_token_is_turned_away() -> None:
    async with serve_app(_agent()) as running, FarClient(running.url) as far:
        with pytest.raises(RequestRejected, match="401"):
            await far.chat("hi")


async def test_a_wait_that_fails_says_what_was_received() -> None:
    async with FarClient(_agent(OPEN)) as far:
        await far.chat("open it")
        await far.called("open_url")
        # only now: what has come may have taken longer
        far._timeout_sec = 0.2
        with pytest.raises(AssertionError, match="No call of 'ask_text' within") as vain:
            await far.called("ask_text")
        assert "tool-input-available × 1" in str(vain.value)
        with pytest.raises(AssertionError, match="No end of the answer within"):
            await far.text()


async def test_an_answer_that_fails_is_over() -> None:
    async with FarClient(_agent(Fail("Overloaded."))) as far:
        await far.chat("hi")
        assert await far.text() == ""
        assert [chunk["errorText"] for chunk in far.chunks if chunk["type"] == "error"] == [
            "The model failed. Try again later. The server's log has the details."
        ]


async def test_a_server_that_goes_away_ends_the_answer() -> None:
    async with serve_app(_agent([Say(["a"]), Say(["b"], delay=60)])) as running:
        far = FarClient(running.url, token=running.token or "")
        async with far:
            await far.chat("speak")
            await running.app.drain()
            assert await far.text() in ("", "a")


async def test_one_far_hand_speaks_in_several_threads() -> None:
    agent = Agent(ScriptedModel(lambda moment: f"{moment.text} {len(moment.messages)}"))
    async with FarClient(agent) as far:
        for thread, text in [("a", "x 1"), ("b", "x 1"), ("a", "x 3")]:
            await far.chat("x", thread=thread)
            assert await far.text() == text


async def test_an_app_with_its_own_store_and_hook_is_served_as_it_is() -> None:
    def authenticate(request: object) -> Principal:
        return Principal("acme", "ann")

    settings = Settings(timeouts=Timeouts(hold_for=5.0))
    app = create_app(_agent("Hello."), store="memory:", authenticate=authenticate, settings=settings)
    async with FarClient(app) as far:
        await far.chat("hi")
        assert await far.text() == "Hello."


async def test_an_app_that_runs_already_is_left_running() -> None:
    app = create_app(_agent("Hello.", "Again."), store="memory:")
    async with app.lifespan():
        for text in ("Hello.", "Again."):
            async with FarClient(app) as far:
                await far.chat("hi")
                assert await far.text() == text


async def test_what_goes_wrong_in_the_test_is_told_as_it_is() -> None:
    async def broken() -> None:
        async with FarClient(_agent(OPEN)) as far:
            await far.chat("open it")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await broken()
