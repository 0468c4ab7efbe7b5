"""The street lamp story needs no internet."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from farhand import create_app
from farhand.agent.branding import ShownImage
from farhand.core.outcome import Success
from farhand.core.principal import Owner, Principal
from farhand.demo import lamp
from farhand.demo.agent import demo_agent
from farhand.demo.browser import describe_file, describe_page
from farhand.testing import acting_for
from tests.requirement import requirement
from tests.unit.server.asgi_requests import ask, visit


@pytest.fixture(autouse=True)
def _address() -> Iterator[None]:
    lamp.set_address("http://127.0.0.1:4321/")
    yield
    lamp._visits.clear()


async def form_for(owner: Owner) -> object:
    with acting_for(owner):
        found = await lamp.toolbox.execute("find_lamp_owner", {"street": "Mill Lane"})
    assert isinstance(found, Success)
    assert isinstance(found.output, dict)
    return found.output["form"]


@requirement("demo:offline")
async def test_the_form_is_a_page_of_the_demo_s_own_server() -> None:
    assert await form_for(Owner("demo", "ada")) == "http://127.0.0.1:4321/demo/lamp-report"
    app = create_app(demo_agent(), store="memory:")
    await app.start()
    try:
        page = await ask(app, visit(path=lamp.FORM_PATH))
        assert (page.status, "Report a street lamp" in page.text) == (200, True)
        assert "frame-ancestors 'self'" in page.headers["content-security-policy"]
        mounted = {**visit(path=f"/agent{lamp.FORM_PATH}"), "root_path": "/agent"}
        assert (await ask(app, mounted)).status == 200
    finally:
        await app.drain()
        await app.stop()


@requirement("demo:offline")
async def test_the_form_opens_under_the_name_by_which_somebody_reaches_the_server() -> None:
    async def sign_in(request: object) -> Principal:
        return Principal(tenant="demo", subject="grace")

    app = create_app(demo_agent(), store="memory:", authenticate=sign_in, allow_hosts=["lamps.example"])
    await app.start()
    try:
        visited = visit(path="/api/about", host="lamps.example:8080")
        assert (await ask(app, visited)).status == 200
        assert await form_for(Owner("demo", "grace")) == "http://lamps.example:8080/demo/lamp-report"
        assert await form_for(Owner("demo", "ada")) == "http://127.0.0.1:4321/demo/lamp-report"
        mounted = {**visited, "path": "/agent/api/about", "root_path": "/agent"}
        assert (await ask(app, mounted)).status == 200
        assert await form_for(Owner("demo", "grace")) == "http://lamps.example:8080/agent/demo/lamp-report"
    finally:
        await app.drain()
        await app.stop()


def test_only_so_many_visits_are_noted() -> None:
    for number in range(lamp.MOST_VISITORS + 1):
        lamp.note_visit(number, "http://lamps.example")
    assert len(lamp._visits) == lamp.MOST_VISITORS
    assert (0 in lamp._visits, lamp.MOST_VISITORS in lamp._visits) == (False, True)


async def test_the_form_loads_nothing_and_writes_no_markup_of_others() -> None:
    async def read_image(ref: str) -> ShownImage:
        return ShownImage("<b>.png", f"data:image/png;base64,{ref}")

    page = (await lamp.show_form({"place": "<script>x</script>", "photo": "abc"}, read_image)).decode()
    assert "<script" not in page
    assert "http" not in page
    assert '<div class="field">&lt;script&gt;x' in page
    assert '<img src="data:image/png;base64,abc" alt=""> &lt;b&gt;.png' in page


@requirement("demo:offline")
async def test_the_form_is_filled_in_with_what_was_found() -> None:
    app = create_app(demo_agent(), store="memory:")
    await app.start()
    try:
        signed_in = {"authorization": f"Bearer {app.auth.token}"}
        label = {"x-farhand": "1", "x-file-name": "lamp.png", "content-type": "image/png"}
        upload = visit(path="/api/files", method="POST", headers={**signed_in, **label})
        ref = json.loads((await ask(app, upload, b"\x89PNG\r\n\x1a\n")).text)["ref"]
        found = f"photo={ref}&lat=54.9783&lon=-1.6178&place="
        page = await ask(app, visit(path=lamp.FORM_PATH, query=found, headers=signed_in))
        assert "14 Mill Lane, 54.9783, -1.6178" in page.text
        assert '<img src="data:image/png;base64,iVBORw0KGgo=" alt=""> lamp.png' in page.text
        # of somebody who is not signed in, no photo is shown
        stranger = await ask(app, visit(path=lamp.FORM_PATH, query=found))
        assert ("No photo" in stranger.text, "lamp.png" in stranger.text) == (True, False)
        empty = await ask(app, visit(path=lamp.FORM_PATH, headers=signed_in))
        assert ("14 Mill Lane</div>" in empty.text, "No photo" in empty.text) == (True, True)
    finally:
        await app.drain()
        await app.stop()


@pytest.mark.parametrize(
    ("query", "fields"),
    [
        ({"place": "14 Northgate Road"}, ["14 Northgate Road", "Not chosen yet"]),
        ({"place": "", "lat": "54.9", "lon": "-1.6"}, ["14 Mill Lane, 54.9, -1.6", "Not chosen yet"]),
        ({"urgency": "<i>Low"}, ["14 Mill Lane", "&lt;i&gt;Low"]),
    ],
)
async def test_the_form_shows_a_place_as_it_was_typed_and_the_urgency_once_it_is_chosen(
    query: dict[str, str], fields: list[str]
) -> None:
    async def no_image(ref: str) -> None:
        return None

    page = (await lamp.show_form(query, no_image)).decode()
    values = [
        re.sub(r"</?span[^>]*>", "", each) for each in re.findall(r'<div class="field">(.*)</div>', page)
    ]
    assert [values[0], values[2]] == fields


async def test_a_report_has_the_same_reference_for_the_same_words() -> None:
    report: dict[str, object] = {"to": "a", "place": "b", "problem": "c", "urgency": "d", "photo": "e"}
    sent = [await lamp.toolbox.execute("send_report", report) for _ in range(2)]
    assert sent[0] == sent[1]
    declared = lamp.toolbox.declared("send_report")
    assert declared is not None
    assert declared.asks(report), "nothing is sent without approval"


def test_a_page_is_told_by_its_host_and_path() -> None:
    assert (
        describe_page({"url": "http://127.0.0.1:1/demo/lamp-report?photo=x"})
        == "127.0.0.1:1/demo/lamp-report"
    )
    assert describe_page({"url": "https://example.com/"}) == "example.com"


def test_a_file_is_told_with_its_size() -> None:
    assert describe_file({"name": "a.txt", "size": 12}) == "a.txt, 12 bytes"
    assert describe_file({"name": "lamp.jpg", "size": 214_000}) == "lamp.jpg, 214 KB"
