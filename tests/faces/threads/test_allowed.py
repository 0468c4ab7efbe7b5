"""Permissions for a whole chat: listed with person and time, and revoked."""

from __future__ import annotations

from typing import Any

import httpx2

from farhand.models.scripted import Ask, Moment, Step
from tests.faces.ack.desk import Hand
from tests.faces.conftest import Serve
from tests.faces.ui_stream.agents import Scene
from tests.faces.ui_stream.header_auth import check, person
from tests.faces.ui_stream.page import Page
from tests.requirement import requirement

# Any: what comes over the wire is looked at by its fields, and a wrong one fails the test
Json = Any


def deletes_each_time() -> Scene:
    def script(moment: Moment) -> Step:
        return Ask("delete_file", {"path": moment.text}) if not moment.results else "Done."

    return Scene(script)


async def always_allowed(page: Page, http: httpx2.AsyncClient) -> None:
    """One call of `delete_file` that was allowed for the whole chat."""
    await page.say("a")
    chat = (await page.http.get(f"/api/chat/{page.id}")).json()
    [asked] = [call["approvalId"] for call in chat["openCalls"]]
    status, _ = await Hand(http).approve(asked, approved=True, scope="thread")
    assert status == 200
    await page.resume()


@requirement("threads:allowed")
async def test_what_is_always_allowed_is_listed_and_taken_back(serve: Serve, store: str) -> None:
    scene = deletes_each_time()
    served = await serve(scene.agent, store=store)
    page = Page(served.http)
    path = f"/api/chat/{page.id}/allowed"
    await page.say("nothing yet")
    await page.stop()
    assert (await page.http.get(path)).json() == {"allowed": []}
    await always_allowed(page, served.http)
    [allowed] = (await page.http.get(path)).json()["allowed"]
    assert allowed["tool"] == "delete_file"
    assert allowed["allowedAt"].endswith("Z")
    assert allowed["by"] == {}
    assert (await page.http.delete(f"{path}/delete_file")).json() == {"ok": True}
    assert (await page.http.get(path)).json() == {"allowed": []}
    gone = await page.http.delete(f"{path}/delete_file")
    assert gone.status_code == 404


@requirement("threads:allowed")
async def test_a_tool_that_was_taken_back_is_asked_about_again(serve: Serve) -> None:
    served = await serve(deletes_each_time().agent)
    page = Page(served.http)
    await always_allowed(page, served.http)
    await page.http.delete(f"/api/chat/{page.id}/allowed/delete_file")
    await page.say("b")
    chat = (await page.http.get(f"/api/chat/{page.id}")).json()
    assert [call["phase"] for call in chat["openCalls"]] == ["asking"]


@requirement("threads:allowed")
async def test_another_persons_chat_has_no_such_list(serve: Serve) -> None:
    served = await serve(deletes_each_time().agent, authenticate=check)
    async with person(served, "ada") as ada, person(served, "eve") as eve:
        page = Page(ada)
        await page.say("a")
        path = f"/api/chat/{page.id}/allowed"
        assert (await ada.get(path)).status_code == 200
        assert (await eve.get(path)).status_code == 404
        assert (await eve.delete(f"{path}/delete_file")).status_code == 404
