"""What pages show of an agent and its tools: titles, summaries, marks, a welcome."""

from __future__ import annotations

from pathlib import Path

from starlette.requests import HTTPConnection

from farhand import Agent, Principal, ScriptedModel, tool
from farhand.models.scripted import Ask, Moment, Step
from tests.faces.conftest import Serve
from tests.faces.threads.test_threads import shown
from tests.faces.ui_stream.page import Page
from tests.requirement import requirement


@tool(title="Weather in {city}", summary="{sky}, {degrees}°")
def forecast(city: str) -> dict[str, object]:
    """Tell the weather.

    Args:
        city: Where.
    """
    return {"sky": "sunny", "degrees": 21}


@tool(
    executor="frontend",
    title="Room of {name}",
    summary=lambda output: f"number {output}",
    needs_approval=True,
)
def room(name: str) -> int:
    """Ask for a room.

    Args:
        name: Whose.

    Returns:
        Its number.
    """
    raise NotImplementedError


@tool(needs_approval=True, title="Send to {to}, urgent: {urgent}")
def send(to: str, urgent: bool = True, note: str | None = None) -> str:
    """Send something.

    Args:
        to: Who gets it.
        urgent: Whether it is.
        note: What to add.
    """
    return f"{to} {urgent} {note}"


@tool(executor="frontend", needs_approval=True, title="A photo with the {camera} camera")
def snap(camera: str = "front") -> str:
    """Take a picture.

    Args:
        camera: Which one.

    Returns:
        Its name.
    """
    raise NotImplementedError


@requirement("approval:defaults")
async def test_an_approval_says_what_the_call_runs_with(serve: Serve, store: str) -> None:
    agent = Agent(ScriptedModel(_with_defaults), tools=[send], frontend_tools=[snap])
    page = Page((await serve(agent, store=store)).http)
    await page.say("go")
    calls = (await page.http.get("/api/inbox")).json()["calls"]
    assert (await shown(page))["openCalls"] == calls
    short, whole, photo = calls
    assert short["input"] == {"to": "Ada"}, "the record stays as the model wrote it"
    assert short["runsWith"] == {
        "input": {"to": "Ada", "urgent": True},
        "defaults": [["urgent"]],
        "leftOut": ["note"],
    }
    assert "runsWith" not in whole
    # the page runs it, with what it takes for missing
    assert photo["runsWith"] == {"input": {"camera": "front"}, "defaults": [["camera"]], "bySchema": True}
    assert [each["callTitle"] for each in calls] == [
        "Send to Ada, urgent: yes",
        "Send to Joan, urgent: no",
        "A photo with the … camera",
    ]
    listed = {each["name"]: each for each in (await page.http.get("/api/tools")).json()["tools"]}
    assert listed["send"]["title"] == "Send to …, urgent: …"
    body = {"approvalId": short["approvalId"], "approved": True, "input": {"to": "Ada", "urgent": False}}
    await page.http.post("/api/tools/approve", json=body)
    left = (await page.http.get("/api/inbox")).json()["calls"]
    assert short["callId"] not in [each["callId"] for each in left]


def _with_defaults(moment: Moment) -> Step:
    if moment.steps:
        return "Done."
    whole = {"to": "Joan", "urgent": False, "note": None}
    return [Ask("send", {"to": "Ada"}), Ask("send", whole), Ask("snap", {})]


def _with_titles(moment: Moment) -> Step:
    if moment.text == "thanks" or moment.steps:
        return "Done."
    return [Ask("forecast", {"city": "Oslo"}), Ask("room", {"name": "Ada"})]


@requirement("tools:title-and-summary")
async def test_titles_and_summaries_are_stored_with_their_calls(serve: Serve, store: str) -> None:
    agent = Agent(ScriptedModel(_with_titles), tools=[forecast], frontend_tools=[room])
    page = Page((await serve(agent, store=store)).http)
    _, asked = (await page.say("go")).calls
    [waiting] = (await page.http.get("/api/inbox")).json()["calls"]
    assert (waiting["callTitle"], waiting["title"]) == ("Room of Ada", "go")
    body = {
        "approvalId": waiting["approvalId"],
        "approved": True,
        "input": {"name": "Joan"},
        "scope": "thread",
    }
    await page.http.post("/api/tools/approve", json=body)
    await page.http.post("/api/tools/ack", json={"toolCallId": asked, "status": "success", "output": 7})
    await page.resume()
    await page.say("thanks")
    parts = [each for each in (await shown(page))["messages"][1]["parts"] if "toolCallId" in each]
    assert [(each["title"], each["summary"]) for each in parts] == [
        ("Weather in Oslo", "sunny, 21°"),
        ("Room of Joan", "number 7"),
    ], "of an older turn, and about the input as it was edited"
    assert [each.get("edited") for each in parts] == [None, True]
    assert [each.get("alwaysAllowed") for each in parts] == [None, True]
    assert all(isinstance(each["tookMs"], int) for each in parts)
    listed = {each["name"]: each for each in (await page.http.get("/api/tools")).json()["tools"]}
    assert listed["forecast"]["title"] == "Weather in …"


def _by_header(request: HTTPConnection) -> Principal:
    return Principal("acme", "team", claims={"name": request.headers.get("x-name", "")})


@requirement("threads:answered-by")
async def test_the_record_says_who_answered_to_everybody_else(serve: Serve, store: str) -> None:
    """Two people of one team: one subject, and the sign-in says which of them it is."""
    agent = Agent(ScriptedModel(_with_rooms), frontend_tools=[room])
    served = await serve(agent, store=store, authenticate=_by_header)
    page = Page(served.http)
    page.http.headers["x-name"] = "Ada"
    joan = {"x-name": "Joan"}
    first, second, third = (await page.say("go")).calls
    waiting = {each["callId"]: each for each in (await page.http.get("/api/inbox")).json()["calls"]}
    for call, approved, name in ((first, True, joan), (second, False, joan), (third, True, {})):
        body = {"approvalId": waiting[call]["approvalId"], "approved": approved}
        await page.http.post("/api/tools/approve", json=body, headers=name)
    for call, name in ((first, {}), (third, joan)):
        ack = {"toolCallId": call, "status": "success", "output": 7}
        await page.http.post("/api/tools/ack", json=ack, headers=name)
    await page.resume()
    for _ in range(2):
        # whoever brought the result counts, and of a denied call whoever denied it
        assert await _answered_by(page, {}) == [None, "Joan", "Joan"]
        assert await _answered_by(page, joan) == ["Ada", None, None]
        # an older turn says the same
        await page.say("thanks")


async def _answered_by(page: Page, headers: dict[str, str]) -> list[str | None]:
    thread = (await page.http.get(f"/api/chat/{page.id}", headers=headers)).json()
    return [each.get("answeredBy") for each in thread["messages"][1]["parts"] if "toolCallId" in each]


def _with_rooms(moment: Moment) -> Step:
    if moment.text == "thanks" or moment.steps:
        return "Done."
    return [Ask("room", {"name": name}) for name in ("A", "B", "C")]


async def test_a_title_of_inputs_alone_is_none_before_they_are_known(serve: Serve, store: str) -> None:
    @tool(executor="frontend", title="{message}")
    def user_confirm(message: str) -> str:
        """Ask for a yes or no.

        Args:
            message: The question.

        Returns:
            "yes" or "no".
        """
        raise NotImplementedError

    agent = Agent(ScriptedModel(lambda _: "Done."), frontend_tools=[user_confirm])
    page = Page((await serve(agent, store=store)).http)
    [listed] = (await page.http.get("/api/tools")).json()["tools"]
    assert listed["title"] is None


async def test_always_in_this_chat_can_be_taken_back(serve: Serve, store: str) -> None:
    agent = Agent(
        ScriptedModel(lambda moment: Ask("room", {"name": "Ada"}) if moment.steps == 0 else "Done."),
        frontend_tools=[room],
    )
    page = Page((await serve(agent, store=store)).http)
    asked = (await page.say("one")).one("tool-approval-request")
    body = {"approvalId": asked["approvalId"], "approved": True, "scope": "thread"}
    await page.http.post("/api/tools/approve", json=body)
    undo = f"/api/chat/{page.id}/allowed/room"
    assert (await page.http.delete(undo)).json() == {"ok": True}
    assert (await page.http.delete(undo)).status_code == 404
    assert (await page.http.delete("/api/chat/nowhere/allowed/room")).status_code == 404
    page = Page(page.http, page.id)
    [again] = (await page.say("two")).of("tool-approval-request")
    assert again["approvalId"] != asked["approvalId"]


@requirement("pages:own-agent")
async def test_a_page_is_told_what_the_agent_shows(serve: Serve, tmp_path: Path) -> None:
    image = tmp_path / "logo.svg"
    image.write_bytes(b"<svg/>")
    agent = Agent(
        ScriptedModel(["Hello."]),
        title="Lamps",
        welcome="Ask me.",
        starters=[("New", "What is new?")],
        logo=image,
    )
    http = (await serve(agent)).http
    about = (await http.get("/api/about")).json()
    reader = about.pop("reader")
    assert len(reader) == 16
    assert about | {"model": "", "largestFile": 0} == {
        "model": "",
        "largestFile": 0,
        "title": "Lamps",
        "welcome": "Ask me.",
        "starters": [{"title": "New", "prompt": "What is new?", "about": ""}],
        "logo": "/logo",
        "demo": False,
        "inspector": True,
        "words": None,
    }
    logo = await http.get("/logo")
    assert (logo.status_code, logo.content, logo.headers["content-type"]) == (200, b"<svg/>", "image/svg+xml")
    assert "sandbox" in logo.headers["content-security-policy"]
    without = (await serve(Agent(ScriptedModel(["Hello."])), inspector=False)).http
    assert (await without.get("/logo")).status_code == 404
    assert (await without.get("/api/about")).json()["inspector"] is False
