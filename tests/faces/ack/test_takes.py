"""Takes: of two tabs one executes, and either may answer."""

from __future__ import annotations

import pytest

from farhand.models.scripted import Ask
from farhand.store.open import open_store
from farhand.testing import FakeClock
from tests.faces.ack.desk import OK, OPEN, Hand
from tests.faces.conftest import Serve
from tests.faces.ui_stream.agents import Scene, once
from tests.faces.ui_stream.page import Page
from tests.requirement import requirement

TAKEN = (200, {"ok": True, "expiresInSec": 30})
BY_ANOTHER = (409, {"ok": False, "reason": "taken"})


@requirement("calls:take")
async def test_of_two_tabs_one_takes_the_call(serve: Serve, store: str) -> None:
    served = await serve(Scene(once(OPEN)).agent, store=store)
    hand = Hand(served.http)
    [call] = (await Page(served.http).say("open")).calls
    assert await hand.take(call, "tab-1") == TAKEN
    assert await hand.take(call, "tab-2") == BY_ANOTHER
    assert await hand.take(call, "tab-1") == TAKEN


@requirement("calls:take")
async def test_a_take_decides_who_executes_and_not_who_answers(serve: Serve) -> None:
    served = await serve(Scene(once(OPEN)).agent)
    hand = Hand(served.http)
    page = Page(served.http)
    [call] = (await page.say("open")).calls
    assert await hand.take(call, "tab-1") == TAKEN
    page.output(call, {"from": "another tab"})
    assert (await page.send()).finish == "stop"


@requirement("calls:take")
async def test_a_take_lapses_unless_it_is_renewed(serve: Serve) -> None:
    clock = FakeClock()
    served = await serve(Scene(once(OPEN)).agent, store=await open_store("memory:", clock))
    hand = Hand(served.http)
    [call] = (await Page(served.http).say("open")).calls
    assert await hand.take(call, "tab-1") == TAKEN
    clock.advance(29)
    assert await hand.take(call, "tab-1") == TAKEN
    clock.advance(29)
    assert await hand.take(call, "tab-2") == BY_ANOTHER
    clock.advance(1)
    assert await hand.take(call, "tab-2") == TAKEN
    assert await hand.take(call, "tab-1") == BY_ANOTHER


@requirement("calls:take")
async def test_a_settled_call_is_not_taken(serve: Serve) -> None:
    served = await serve(Scene(once(OPEN)).agent)
    hand = Hand(served.http)
    [call] = (await Page(served.http).say("open")).calls
    assert await hand.ack(call, output=1) == OK
    status, body = await hand.take(call)
    assert (status, body["reason"], body["status"]) == (409, "conflict", "success")


@requirement("calls:take")
async def test_a_cancelled_call_is_not_taken(serve: Serve) -> None:
    served = await serve(Scene(once(OPEN)).agent)
    page = Page(served.http)
    [call] = (await page.say("open")).calls
    await page.stop()
    gone = (410, {"ok": False, "reason": "cancelled", "status": "cancelled"})
    assert await Hand(served.http).take(call) == gone


@requirement("calls:take")
async def test_a_take_extends_no_deadline(serve: Serve) -> None:
    clock = FakeClock()
    scene = Scene(once(Ask("pick_quickly", {"label": "?"})))
    served = await serve(scene.agent, store=await open_store("memory:", clock))
    hand = Hand(served.http)
    [call] = (await Page(served.http).say("pick")).calls
    assert await hand.take(call) == TAKEN
    clock.advance(1)
    assert (await hand.take(call))[0] == 410


@requirement("ack:refusals")
@pytest.mark.parametrize("client_id", ["", "x" * 129, None, 1])
async def test_a_take_without_a_proper_client_id_is_refused(serve: Serve, client_id: object) -> None:
    served = await serve(Scene(once(OPEN)).agent)
    [call] = (await Page(served.http).say("open")).calls
    status, body = await Hand(served.http).post(
        "/api/tools/take", {"toolCallId": call, "clientId": client_id}
    )
    assert (status, body["ok"], body["reason"]) == (400, False, "invalid")
