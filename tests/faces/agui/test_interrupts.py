"""Approvals and the questions of tools as interrupts, and the answers to them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from farhand import Agent, ScriptedModel, Waiting, ask, ask_form, tool
from farhand.models.scripted import Ask, Moment, Step
from tests.faces.agui.page import Json, Page, no, yes
from tests.faces.conftest import Serve
from tests.faces.ui_stream.agents import Scene, ask_text, once, told
from tests.requirement import requirement

OPEN = Ask("open_url", {"url": "a.example"})
DELETE = Ask("delete_file", {"path": "a.txt"})
DELETE_TOO = Ask("delete_file", {"path": "b.txt"})
PHOTO = Ask("take_photo", {"camera": "front"})


@requirement("agui:interrupts")
async def test_an_approval_is_an_interrupt_and_the_resume_runs_the_tool(serve: Serve, store: str) -> None:
    scene = Scene(once(DELETE))
    page = Page((await serve(scene.agent, store=store)).http)
    run = await page.send("go")
    [call_id] = run.calls
    [asked] = run.interrupts
    assert (asked["reason"], asked["toolCallId"]) == ("tool_call", call_id)
    assert asked["metadata"] == {"tool": "delete_file", "input": {"path": "a.txt"}}
    assert asked["responseSchema"]["required"] == ["approved"]
    assert scene.ran == []
    run = await page.resume(yes(asked))
    assert scene.ran == [("delete_file", "a.txt")]
    assert run.results == {call_id: '{"deleted":"a.txt"}'}
    assert run.text == "delete_file: success {'deleted': 'a.txt'}."


@pytest.mark.parametrize("cancelled", [True, False])
async def test_a_denial_and_a_cancellation_run_nothing(serve: Serve, *, cancelled: bool) -> None:
    scene = Scene(once(DELETE))
    page = Page((await serve(scene.agent)).http)
    [asked] = (await page.send("go")).interrupts
    answer = {"interruptId": asked["id"], "status": "cancelled"} if cancelled else no(asked, "keep it")
    run = await page.resume(answer)
    assert scene.ran == []
    reason = "cancelled by the user" if cancelled else "keep it"
    assert reason in run.results[asked["toolCallId"]]


async def test_edited_arguments_are_what_runs(serve: Serve) -> None:
    scene = Scene(once(DELETE))
    page = Page((await serve(scene.agent)).http)
    [asked] = (await page.send("go")).interrupts
    await page.resume(yes(asked, editedArgs={"path": "c.txt"}))
    assert scene.ran == [("delete_file", "c.txt")]


@requirement("agui:approvals-first")
async def test_a_frontend_tool_behind_an_approval_is_shown_with_the_approval(
    serve: Serve, store: str
) -> None:
    scene = Scene(once(PHOTO))
    page = Page((await serve(scene.agent, store=store)).http)
    run = await page.send("go")
    assert not run.calls
    [asked] = run.interrupts
    assert asked["reason"] == "confirmation"
    assert "toolCallId" not in asked
    run = await page.resume(yes(asked))
    [call_id] = run.calls
    assert run.outcome["pendingToolCallIds"] == [call_id]
    page.finds(call_id, '{"name": "photo-1"}')
    assert "photo-1" in (await page.run()).text


@requirement("agui:approvals-first")
async def test_calls_of_the_page_are_held_back_until_the_approvals_are_answered(
    serve: Serve, store: str
) -> None:
    scene = Scene(once("Both.", DELETE, OPEN))
    page = Page((await serve(scene.agent, store=store)).http)
    run = await page.send("go")
    assert [name for name, _ in run.calls.values()] == ["delete_file"]
    run = await page.resume(yes(run.interrupts[0]))
    assert scene.ran == [("delete_file", "a.txt")], "though the page's call is open"
    assert len(run.all("TOOL_CALL_RESULT")) == 1
    [call_id] = run.calls
    # in a message of its own: CopilotKit executes the calls of new messages alone
    assert run.all("TOOL_CALL_START")[0]["parentMessageId"].endswith(f":1:{call_id}")
    page.finds(call_id, "{}")
    run = await page.run()
    assert scene.ran == [("delete_file", "a.txt")]
    assert run.text == "delete_file: success {'deleted': 'a.txt'}. open_url: success ."


@requirement("agui:interrupts")
async def test_a_resume_must_name_every_open_interrupt_and_none_unknown(serve: Serve, store: str) -> None:
    scene = Scene(once(DELETE, DELETE_TOO))
    page = Page((await serve(scene.agent, store=store)).http)
    first, second = (await page.send("go")).interrupts
    assert (await page.resume(yes(first))).code == "interrupts"
    unknown = {"id": "apr_" + "0" * 32}
    assert (await page.resume(yes(first), yes(second), yes(unknown))).code == "interrupts"
    assert scene.ran == []
    await page.resume(yes(first), no(second))
    assert scene.ran == [("delete_file", "a.txt")]


@pytest.mark.parametrize("payload", [None, True, "true", {"approved": "true"}, {"approved": 1}, {}])
async def test_only_a_json_boolean_is_an_approval(serve: Serve, payload: Json) -> None:
    scene = Scene(once(DELETE))
    page = Page((await serve(scene.agent)).http)
    [asked] = (await page.send("go")).interrupts
    run = await page.resume({"interruptId": asked["id"], "status": "resolved", "payload": payload})
    assert (run.status, run.code) == (200, "invalid")
    assert scene.ran == []


@pytest.mark.parametrize(
    ("wrong", "name"),
    [({"reason": 5}, "reason"), ({"editedArgs": []}, "editedArgs"), ({"editedArgs": "{}"}, "editedArgs")],
)
async def test_a_refused_answer_says_which_member_of_it_is_wrong(
    serve: Serve, wrong: Json, name: str
) -> None:
    scene = Scene(once(DELETE))
    page = Page((await serve(scene.agent)).http)
    [asked] = (await page.send("go")).interrupts
    run = await page.resume(yes(asked, **wrong))
    assert (run.status, run.code) == (200, "invalid")
    assert f"`{name}`" in run.last["message"]
    assert "`approved`" not in run.last["message"]
    assert scene.ran == []


async def test_edited_arguments_that_do_not_fit_approve_nothing(serve: Serve) -> None:
    scene = Scene(once(DELETE))
    page = Page((await serve(scene.agent)).http)
    [asked] = (await page.send("go")).interrupts
    assert (await page.resume(yes(asked, editedArgs={"path": 7}))).code == "invalid"
    assert scene.ran == []
    assert (await page.resume(yes(asked))).text


@requirement("agui:interrupts")
async def test_an_answer_to_a_call_that_a_program_makes_beside_the_run_is_refused(serve: Serve) -> None:
    """It is answered elsewhere: a response here could not show what became of it."""
    scene = Scene(["Hello."])
    served = await serve(scene.agent)
    page = Page(served.http)
    await page.send("hi")
    waiting = await served.service.call("delete_file", {"path": "a"}, thread="t1", key="k", within=0.0)
    assert isinstance(waiting, Waiting)
    assert (await page.resume(yes({"id": waiting.approval_id}))).code == "interrupts"
    [call] = await served.app.open_calls(thread="t1")
    assert call.approval_id == waiting.approval_id


@requirement("agui:interrupts")
async def test_a_message_without_answers_is_refused_while_an_approval_is_open(serve: Serve) -> None:
    scene = Scene([[DELETE], "Next."])
    page = Page((await serve(scene.agent)).http)
    await page.send("go")
    assert (await page.send("something else")).code == "interrupts"
    assert len(scene.model.prompts) == 1


@requirement("agui:interrupts")
async def test_a_resume_wins_over_a_result_for_the_same_call(serve: Serve, store: str) -> None:
    """CopilotKit's `useInterrupt` keeps the answer as the result of the call, and sends both."""
    scene = Scene(once(DELETE))
    page = Page((await serve(scene.agent, store=store)).http)
    [asked] = (await page.send("go")).interrupts
    page.finds(asked["toolCallId"], '{"approved": true}')
    run = await page.resume(yes(asked))
    assert "MESSAGES_SNAPSHOT" in run.types
    shown = [each["content"] for each in page.messages if each["role"] == "tool"]
    assert shown == ['{"deleted":"a.txt"}']
    assert run.text == "delete_file: success {'deleted': 'a.txt'}."


@requirement("agui:interrupts")
async def test_fifty_equal_resumes_have_one_effect(serve: Serve, file_store: str, tmp_path: Path) -> None:
    effects = tmp_path / "effects"

    @tool(needs_approval=True)
    def pay(amount: int) -> str:
        """Pay.

        Args:
            amount: How much.
        """
        with effects.open("a") as file:
            file.write(f"{amount}\n")
        return "paid"

    agent = Agent(ScriptedModel(once(Ask("pay", {"amount": 7}))), tools=[pay])
    page = Page((await serve(agent, store=file_store)).http)
    [asked] = (await page.send("go")).interrupts
    posts = [page.post("/ag-ui", page.input(resume=[yes(asked)])) for _ in range(50)]
    runs = await asyncio.gather(*posts)
    assert effects.read_text() == "7\n"
    assert {run.text for run in runs} == {"pay: success paid."}
    assert {tuple(run.results.values()) for run in runs} == {("paid",)}
    assert (await page.resume(yes(asked))).results == {asked["toolCallId"]: "paid"}
    assert effects.read_text() == "7\n"


async def test_an_approval_that_was_answered_elsewhere_shows_its_stored_outcome(
    serve: Serve, store: str
) -> None:
    scene = Scene(once(DELETE))
    page = Page((await serve(scene.agent, store=store)).http)
    [asked] = (await page.send("go")).interrupts
    told_no = {"approvalId": asked["id"], "approved": False, "reason": "not mine"}
    assert (await page.http.post("/api/tools/approve", json=told_no)).json() == {"ok": True}
    run = await page.resume(yes(asked))
    assert "not mine" in run.results[asked["toolCallId"]]
    assert scene.ran == []


async def test_an_old_resume_after_the_thread_continued_changes_nothing(serve: Serve) -> None:
    scene = Scene([[DELETE], "Deleted.", "Next."])
    page = Page((await serve(scene.agent)).http)
    [asked] = (await page.send("go")).interrupts
    await page.resume(yes(asked))
    await page.send("more")
    run = await page.resume(yes(asked))
    assert run.outcome == {"type": "success"}
    assert len(scene.model.prompts) == 3
    assert scene.ran == [("delete_file", "a.txt")]


async def test_two_answers_to_one_interrupt_are_refused(serve: Serve) -> None:
    scene = Scene(once(DELETE))
    page = Page((await serve(scene.agent)).http)
    [asked] = (await page.send("go")).interrupts
    assert (await page.resume(no(asked), yes(asked))).code == "invalid"
    assert (await page.resume(yes(asked), no(asked))).code == "invalid"
    assert scene.ran == []
    assert len((await page.connect()).interrupts) == 1


# ------------------------------------------------------------------------------------------- questions


@tool
async def clean_up() -> str:
    """Delete old files once the user has confirmed."""
    return f"told {await ask('ask_text', {'question': 'Delete 14 files?'})}"


@tool
async def book_table() -> str:
    """Book a table."""
    fields = {"guests": {"type": "integer"}}
    answer = await ask_form("For how many?", {"type": "object", "properties": fields}, key="table")
    return f"{answer.action} {answer.content}"


def _asking(*names: str) -> Agent:
    def script(moment: Moment) -> Step:
        return [Ask(name) for name in names] if moment.steps == 0 else told(moment.last)

    return Agent(ScriptedModel(script), tools=[clean_up, book_table], frontend_tools=[ask_text])


@requirement("hands:question-on-the-wire")
async def test_a_question_of_a_tool_is_an_interrupt_and_the_answer_goes_to_the_tool(
    serve: Serve, store: str
) -> None:
    page = Page((await serve(_asking("clean_up"), store=store)).http)
    run = await page.send("go")
    [asked] = run.interrupts
    assert (asked["reason"], asked["message"]) == ("input_required", "Delete 14 files?")
    assert asked["responseSchema"] == {"type": "string"}
    assert [name for name, _ in run.calls.values()] == ["clean_up"]
    run = await page.resume({"interruptId": asked["id"], "status": "resolved", "payload": "yes"})
    assert run.text == "clean_up: success told yes."


@requirement("hands:question-on-the-wire")
async def test_an_answer_that_does_not_fit_the_question_is_refused_and_the_question_stays(
    serve: Serve,
) -> None:
    """A card that knows approvals alone answers everything with yes or no."""
    page = Page((await serve(_asking("clean_up"))).http)
    [asked] = (await page.send("go")).interrupts
    assert (await page.resume(yes(asked))).code == "invalid"
    assert (await page.connect()).interrupts == [asked]
    run = await page.resume({"interruptId": asked["id"], "status": "resolved", "payload": "yes"})
    assert run.text == "clean_up: success told yes."


async def test_a_form_is_answered_with_its_fields(serve: Serve) -> None:
    page = Page((await serve(_asking("book_table"))).http)
    [asked] = (await page.send("go")).interrupts
    assert asked["metadata"]["input"]["schema"]["properties"] == {"guests": {"type": "integer"}}
    payload = {"action": "accept", "content": {"guests": 4}}
    run = await page.resume({"interruptId": asked["id"], "status": "resolved", "payload": payload})
    assert run.text == "book_table: success accept {'guests': 4}."


async def test_a_question_that_is_cancelled_is_not_answered(serve: Serve) -> None:
    page = Page((await serve(_asking("book_table"))).http)
    [asked] = (await page.send("go")).interrupts
    run = await page.resume({"interruptId": asked["id"], "status": "cancelled"})
    assert "cancelled by the user" in run.text or "cancel" in run.text


@requirement("hands:question-on-the-wire")
async def test_two_tools_may_ask_at_once_and_each_answer_counts(serve: Serve, store: str) -> None:
    page = Page((await serve(_asking("clean_up", "book_table"), store=store)).http)
    run = await page.send("go")
    answers: dict[str, Json] = {"ask_text": "yes", "answer_form": {"action": "decline"}}
    for _ in range(3):
        if run.outcome == {"type": "success"}:
            break
        run = await page.resume(*(_answered(each, answers) for each in run.interrupts))
    assert run.text == "clean_up: success told yes. book_table: success decline {}."


async def test_a_question_that_the_inbox_answered_lets_the_next_resume_show_the_rest(serve: Serve) -> None:
    page = Page((await serve(_asking("clean_up"))).http)
    [asked] = (await page.send("go")).interrupts
    sent = {"toolCallId": asked["id"], "status": "success", "output": "no"}
    assert (await page.http.post("/api/tools/ack", json=sent)).json() == {"ok": True}
    run = await page.resume({"interruptId": asked["id"], "status": "resolved", "payload": "yes"})
    assert run.text == "clean_up: success told no."


def _answered(interrupt: Json, answers: dict[str, Json]) -> Json:
    payload = answers[interrupt["metadata"]["tool"]]
    return {"interruptId": interrupt["id"], "status": "resolved", "payload": payload}
