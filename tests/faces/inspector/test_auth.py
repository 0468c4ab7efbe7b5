"""Access to the Inspector: for the owner, with the right scope, where it is on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack

import httpx2
import pytest
from starlette.requests import HTTPConnection

from farhand.core.principal import SCOPES, Principal
from farhand.core.settings import Limits, Settings
from farhand.models.scripted import Ask
from tests.faces.client_tools.program import Program
from tests.faces.conftest import Serve
from tests.faces.inspector.inspector_requests import ROOT, look
from tests.faces.served import Served
from tests.faces.ui_stream.agents import Scene
from tests.faces.ui_stream.page import Page
from tests.requirement import requirement

PATHS = ["", "/runs", "/inbox", "/clients", "/tools", "/events"]


def check(request: HTTPConnection) -> Principal | None:
    """`x-tenant` and `x-name` say who, `x-may` what, if it is not everything."""
    heads = request.headers
    if "x-name" not in heads:
        return None
    may = heads.get("x-may")
    scopes = frozenset(may.split()) if may else SCOPES
    return Principal(heads.get("x-tenant", "acme"), heads["x-name"], scopes)


Visit = Callable[..., httpx2.AsyncClient]


@pytest.fixture
async def person() -> AsyncIterator[Visit]:
    """`person(served, "ann", tenant=…, may=…)`: somebody who is signed in; gone with the test."""
    async with AsyncExitStack() as stack:

        def come(on: Served, name: str, **more: str) -> httpx2.AsyncClient:
            headers = {"x-name": name, **{f"x-{key}": value for key, value in more.items()}}
            visit = httpx2.AsyncClient(base_url=on.url, headers=headers, timeout=None, verify=False)
            stack.push_async_callback(visit.aclose)
            return visit

        yield come


@requirement("inspector:auth")
async def test_what_is_anothers_does_not_exist(serve: Serve, person: Visit, store: str) -> None:
    scene = Scene([[Ask("open_url", {"url": "u"})], "Done."])
    on = await serve(scene.agent, store=store, authenticate=check, inspector=True)
    ann, bob, other = person(on, "ann"), person(on, "bob"), person(on, "ann", tenant="other")
    page = Page(ann)
    [call] = (await page.say("open")).calls
    await Program(ann).register("read")
    run = (await look(ann, "/runs"))["runs"][0]["runId"]
    own = [f"/runs/{run}", f"/runs/{run}/events", f"/runs/{run}/test", f"/calls/{call}"]
    for path in own:
        assert (await ann.get(f"{ROOT}{path}")).status_code == 200
    for stranger in (bob, other):
        unknown = (await stranger.get(f"{ROOT}/runs/run_nowhere")).json()
        for path in own:
            refused = await stranger.get(f"{ROOT}{path}")
            assert (refused.status_code, refused.json()["error"]["code"]) == (404, "unknown")
            # in the same words as for one that never was
            assert path.startswith("/calls") or refused.json() == unknown
        again = await stranger.post(f"{ROOT}/calls/{call}/again", json={})
        assert again.status_code == 404
        lists = {"/runs": "runs", "/inbox": "calls", "/clients": "clients", "/events": "events"}
        for path, name in lists.items():
            assert (await look(stranger, path))[name] == []
        assert (await look(stranger, f"/runs?after={run}"))["runs"] == []
        assert "client_notes_read" not in (await stranger.get(f"{ROOT}/tools")).text


@requirement("inspector:auth")
async def test_it_is_on_for_this_machine_and_for_nobody_without_the_token(serve: Serve) -> None:
    on = await serve(Scene(["x"]).agent)
    for path in PATHS:
        assert (await on.http.get(f"{ROOT}{path}")).status_code == 200
        assert (await on.stranger.get(f"{ROOT}{path}")).status_code == 401


@requirement("inspector:auth")
async def test_it_is_off_behind_a_hook_unless_switched_on(serve: Serve, person: Visit) -> None:
    on = await serve(Scene(["x"]).agent, authenticate=check)
    ann = person(on, "ann")
    for path in (*PATHS, "/runs/run_1", "/calls/call_1"):
        assert (await ann.get(f"{ROOT}{path}")).status_code == 404
    page = await ann.get("/_farhand")
    assert (page.status_code, "The Inspector is off." in page.text) == (404, True)


@requirement("inspector:auth")
async def test_it_needs_the_scope_for_it(serve: Serve, person: Visit) -> None:
    on = await serve(Scene(["x"]).agent, authenticate=check, inspector=True)
    for path in PATHS:
        assert (await person(on, "ann").get(f"{ROOT}{path}")).status_code == 200
        assert (await person(on, "bob", may="chat answer").get(f"{ROOT}{path}")).status_code == 403
        assert (await on.stranger.get(f"{ROOT}{path}")).status_code == 401
    for may, status in (("inspect", 403), ("answer", 403), ("answer chat", 403), ("inspect answer", 404)):
        some = person(on, "ann", may=may)
        assert (await some.post(f"{ROOT}/calls/call_1/again", json={})).status_code == status, may


async def test_a_denial_is_sent_again_only_by_who_may_approve(serve: Serve, person: Visit) -> None:
    scene = Scene([[Ask("delete_file", {"path": "p"})], "Done."])
    on = await serve(scene.agent, authenticate=check, inspector=True)
    page = Page(person(on, "ann"))
    [call] = (await page.say("delete")).calls
    page.approve(call, approved=False, reason="mine")
    await page.send()
    path = f"{ROOT}/calls/{call}/again"
    assert (await person(on, "ann", may="inspect answer").post(path, json={})).status_code == 403
    full = await person(on, "ann", may="inspect answer approve").post(path, json={})
    assert (full.status_code, full.json()["receipt"]) == (200, "repeated")


async def test_answers_are_sent_again_no_more_often_than_others_are_sent(serve: Serve, person: Visit) -> None:
    limits = Limits(results_per_sec=1, results_burst=2)
    on = await serve(Scene(["x"]).agent, authenticate=check, inspector=True, settings=Settings(limits=limits))
    ann = person(on, "ann")
    statuses = [(await ann.post(f"{ROOT}/calls/call_1/again", json={})).status_code for _ in range(6)]
    assert 429 in statuses


@requirement("inspector:auth")
@pytest.mark.parametrize("wanted", [None, True])
async def test_it_is_never_there_without_sign_in(serve: Serve, wanted: bool | None) -> None:
    on = await serve(Scene(["x"]).agent, inspector=wanted, open=True)
    assert (await on.stranger.get("/api/chat")).status_code == 200
    assert (await on.stranger.get(f"{ROOT}/runs")).status_code == 404
    assert (await on.stranger.get("/_farhand")).status_code == 404


@requirement("inspector:auth")
async def test_it_can_be_switched_off(serve: Serve) -> None:
    on = await serve(Scene(["x"]).agent, inspector=False)
    assert (await on.http.get(f"{ROOT}/runs")).status_code == 404
