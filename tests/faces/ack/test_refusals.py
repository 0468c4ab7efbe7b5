"""What the ack wire refuses before it looks up any call, in its own format."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from farhand.errors import StoreDown
from farhand.store.base import Append, AppendResult
from farhand.store.memory import MemoryStore
from tests.faces.ack.desk import OK, OPEN, PHOTO, UNKNOWN, Hand
from tests.faces.conftest import Serve
from tests.faces.ui_stream.agents import Scene, once
from tests.faces.ui_stream.header_auth import check, person
from tests.faces.ui_stream.page import Page
from tests.requirement import requirement

PATHS = ["/api/tools/ack", "/ai/tools/ack", "/api/tools/take", "/api/tools/approve"]


@requirement("ack:refusals")
@pytest.mark.parametrize(
    "wrong",
    [
        {"toolCallId": None},
        {"toolCallId": 5},
        {"status": "done"},
        {"status": None},
        {"errorText": 1},
        {"requestedAt": "yesterday"},
        {"requestedAt": ""},
        {"requestedAt": 1763208896},
        {"requestedAt": "2026-13-01T00:00:00Z"},
    ],
    ids=str,
)
async def test_a_malformed_ack_is_refused_and_the_call_stays_open(
    serve: Serve, wrong: dict[str, object]
) -> None:
    served = await serve(Scene(once(OPEN)).agent)
    hand = Hand(served.http)
    [call] = (await Page(served.http).say("open")).calls
    status, body = await hand.post("/api/tools/ack", {"toolCallId": call, "status": "success", **wrong})
    assert (status, body["ok"], body["reason"]) == (400, False, "invalid")
    assert body["detail"]
    assert await hand.ack(call, output=1) == OK


@requirement("ack:refusals")
@pytest.mark.parametrize("missing", ["toolCallId", "status"])
async def test_an_ack_without_what_it_needs_is_refused(serve: Serve, missing: str) -> None:
    served = await serve(Scene(once(OPEN)).agent)
    [call] = (await Page(served.http).say("open")).calls
    body = {"toolCallId": call, "status": "success"}
    del body[missing]
    status, told = await Hand(served.http).post("/api/tools/ack", body)
    assert (status, told["reason"]) == (400, "invalid")
    assert missing in told["detail"]


@requirement("ack:refusals")
@pytest.mark.parametrize(
    "at",
    ["2025-02-01T12:34:56.789Z", "2025-02-01T12:34:56+01:00", "2099-01-01", "1999-12-31T23:59:59Z", None],
)
async def test_the_time_of_the_request_and_extra_fields_change_nothing(serve: Serve, at: str | None) -> None:
    served = await serve(Scene(once(OPEN)).agent)
    [call] = (await Page(served.http).say("open")).calls
    assert await Hand(served.http).ack(call, output=1, requestedAt=at, viewKey="v", nested={"a": [1]}) == OK


@requirement("ack:refusals")
@pytest.mark.parametrize("path", PATHS)
async def test_no_credential_is_401_in_the_words_of_this_wire(serve: Serve, path: str) -> None:
    served = await serve(Scene(["x"]).agent)
    response = await served.stranger.post(path, json={})
    assert response.status_code == 401
    assert (response.json()["ok"], response.json()["reason"]) == (False, "unauthenticated")
    assert response.headers["www-authenticate"] == 'Bearer realm="farhand development token"'


@requirement("ack:refusals")
async def test_a_server_with_a_hook_does_not_ask_for_its_own_token(serve: Serve) -> None:
    served = await serve(Scene(["x"]).agent, authenticate=lambda request: None)
    response = await served.stranger.post("/api/tools/ack", json={})
    assert (response.status_code, response.headers["www-authenticate"]) == (401, "Bearer")


@requirement("ack:refusals")
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""]
)
async def test_another_content_type_is_415(serve: Serve, path: str, kind: str) -> None:
    served = await serve(Scene(["x"]).agent)
    headers = {"content-type": kind} if kind else {}
    response = await served.http.post(path, content=b'{"toolCallId":"x","status":"success"}', headers=headers)
    assert (response.status_code, response.json()["reason"]) == (415, "wrong_type")


@requirement("ack:refusals")
async def test_a_body_over_a_mebibyte_is_413_and_the_call_stays_open(serve: Serve) -> None:
    served = await serve(Scene(once(OPEN)).agent)
    hand = Hand(served.http)
    [call] = (await Page(served.http).say("open")).calls
    status, body = await hand.ack(call, output="x" * (1024 * 1024))
    assert (status, body["ok"], body["reason"]) == (413, False, "too_large")
    status, body = await hand.ack(call, "failed", errorText="é" * 2049)
    assert (status, body["ok"], body["reason"]) == (413, False, "too_large")
    assert await hand.ack(call, "failed", errorText="é" * 2048) == OK


@requirement("ack:refusals")
@pytest.mark.parametrize("path", PATHS)
async def test_another_method_is_405_and_names_the_right_one(serve: Serve, path: str) -> None:
    served = await serve(Scene(["x"]).agent)
    response = await served.http.get(path)
    assert (response.status_code, response.headers["allow"]) == (405, "POST")
    assert (response.json()["ok"], response.json()["reason"]) == (False, "wrong_method")


@requirement("store-away:every-route")
async def test_while_the_store_is_away_nothing_is_accepted_and_later_all_is_well(serve: Serve) -> None:
    kept = _Unreliable()
    served = await serve(Scene(once(OPEN)).agent, store=kept)
    hand = Hand(served.http)
    page = Page(served.http)
    [call] = (await page.say("open")).calls
    kept.away = True
    response = await served.http.post("/api/tools/ack", json={"toolCallId": call, "status": "success"})
    assert (response.status_code, response.headers["retry-after"]) == (503, "1")
    assert (response.json()["ok"], response.json()["reason"]) == (False, "store_down")
    kept.away = False
    assert await hand.ack(call, output={"n": 1}) == OK
    assert (await page.resume()).text == "open_url: success {'n': 1}."


@requirement("ack:unknown")
async def test_to_another_principal_a_call_and_an_approval_do_not_exist(serve: Serve, store: str) -> None:
    served = await serve(Scene(once(OPEN, PHOTO)).agent, store=store, authenticate=check)
    async with person(served, "ada") as ada, person(served, "eve") as eve:
        turn = await Page(ada).say("both")
        call, photo = turn.calls
        approval = turn.one("tool-approval-request")["approvalId"]
        forged, hers = Hand(eve), Hand(ada)
        assert await forged.ack(call, output="forged") == UNKNOWN
        assert await forged.take(call) == UNKNOWN
        assert await forged.approve(approval) == UNKNOWN
        assert await hers.approve(approval) == OK
        assert await forged.ack(photo, output="forged") == UNKNOWN
        assert await hers.ack(call, output={}) == OK
        # a settled call does not exist for them either
        assert await forged.ack(call, output={}) == UNKNOWN


@requirement("ack:unknown")
async def test_answering_and_approving_are_scopes_of_their_own(serve: Serve) -> None:
    served = await serve(Scene(once(OPEN, PHOTO)).agent, authenticate=check)
    async with person(served, "ada", "chat answer") as answers, person(served, "ada", "approve") as approves:
        turn = await Page(answers).say("both")
        approval = turn.one("tool-approval-request")["approvalId"]
        status, body = await Hand(answers).approve(approval)
        assert (status, body["ok"], body["reason"]) == (403, False, "forbidden")
        status, body = await Hand(approves).ack(turn.calls[0])
        assert (status, body["reason"]) == (403, "forbidden")
        assert await Hand(approves).approve(approval) == OK
        assert await Hand(answers).ack(turn.calls[0]) == OK


class _Unreliable(MemoryStore):
    """A store that can go away for a while."""

    away = False

    async def append(self, appends: Sequence[Append]) -> list[AppendResult]:
        if self.away:
            raise StoreDown("The store is away.")
        return await super().append(appends)
