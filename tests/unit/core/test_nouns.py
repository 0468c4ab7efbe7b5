"""The small structs of core: ids, owners, runs, messages, tools."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from farhand.clock import SystemClock
from farhand.core.client import Client, held_by, tool_id, tool_name, with_tools, without_tools
from farhand.core.ids import is_chosen_id, is_client_id, is_tool_name
from farhand.core.outcome import Failure, Success
from farhand.core.principal import (
    CLAIMS_BYTES,
    NAME_CHARS,
    SCOPES,
    Owner,
    Principal,
    are_claims,
    is_of,
    name_in,
)
from farhand.core.run import Run, RunState
from farhand.core.settings import check_wait
from farhand.core.thread import (
    AssistantMessage,
    File,
    Reasoning,
    ResultsMessage,
    Text,
    Thread,
    ThreadCursor,
    ToolCallPart,
    ToolResultPart,
    UserMessage,
    apart,
    text_of,
)
from farhand.core.tool import Executor, Tool, digest_of_approval
from farhand.errors import BadSetting
from tests.requirement import requirement
from tests.unit.core.samples import OWNER

TOOL = Tool(name="open_url", description="Opens a page.", input_schema={"type": "object"})


@requirement("calls:ids")
@pytest.mark.parametrize("kind", ["call", "run", "thr", "apr", "cli", "blob"])
def test_a_fresh_id_carries_its_kind(kind: str) -> None:
    assert re.fullmatch(f"{kind}_[0-9a-f]{{32}}", SystemClock().fresh(kind))


@requirement("calls:ids")
def test_ids_carry_128_random_bits_and_do_not_repeat() -> None:
    made = {SystemClock().fresh("call") for _ in range(1_000)}
    assert len(made) == 1_000
    assert {len(each.removeprefix("call_")) for each in made} == {32}


@pytest.mark.parametrize(
    ("claims", "name"),
    [
        ({}, ""),
        ({"role": "lead"}, ""),
        ({"sub": "u-7", "email": "ada@example.com", "name": "Ada"}, "Ada"),
        ({"sub": "u-7", "name": "  ", "preferred_username": 7}, "u-7"),
        ({"name": "Ada\u202e\nLovelace"}, "Ada  Lovelace"),
        ({"name": "x" * 500}, "x" * NAME_CHARS),
    ],
)
def test_a_person_is_called_as_the_claims_say(claims: dict[str, object], name: str) -> None:
    assert name_in(claims) == name


@pytest.mark.parametrize("text", ["a", "Az09_.:-", "x" * 128])
def test_a_peer_may_choose_such_an_id(text: str) -> None:
    assert is_chosen_id(text)


@pytest.mark.parametrize("text", ["", "x" * 129, "a b", "a/b", "ä", "a\n", "<a>"])
def test_a_peer_may_not_choose_such_an_id(text: str) -> None:
    assert not is_chosen_id(text)


def test_a_tool_name_has_letters_digits_and_dashes_only() -> None:
    assert is_tool_name("open_url-2")
    assert not any(map(is_tool_name, ("", "a.b", "a b", "x" * 65, "a\n")))


def test_a_client_chooses_short_plain_ids() -> None:
    assert is_client_id("my-editor_2")
    assert not any(map(is_client_id, ("", "a.b", "a:b", "x" * 65)))


def test_a_clients_tool_carries_the_name_of_its_client() -> None:
    assert tool_name("editor", "open_file") == "client_editor_open_file"
    assert tool_id("editor", "client_editor_open_file") == "open_file"


def test_a_client_that_registers_again_keeps_its_other_tools() -> None:
    client = Client(owner=OWNER, client_id="editor", tools=(TOOL,), grace_sec=5.0, registered_at=0.0)
    newer, other = replace(TOOL, description="Newer."), replace(TOOL, name="other")
    more = with_tools(client, [newer, other])
    assert (more.tools, more.version) == ((newer, other), 2)
    fewer = without_tools(more, {"open_url"})
    assert (fewer.tools, fewer.version) == ((other,), 3)


def test_a_principal_owns_what_its_tenant_and_subject_own() -> None:
    assert Principal("acme", "ann", frozenset({"chat"})).owner == Owner("acme", "ann")


@pytest.mark.parametrize(
    ("claims", "fits"),
    [
        ({}, True),
        ({"roles": ["admin"]}, True),
        ([], False),
        ({"since": object()}, False),
        ({"name": "\ud800"}, False),
        ({"name": "\x00"}, False),
        ({"name": "x" * CLAIMS_BYTES}, False),
    ],
)
def test_claims_are_a_small_object_that_json_can_hold(claims: object, fits: bool) -> None:
    assert are_claims(claims) is fits


@requirement("auth:hook")
def test_a_principal_may_chat_answer_and_approve_unless_its_hook_says_more() -> None:
    assert Principal("acme", "ann").scopes == {"chat", "answer", "approve"}
    assert Principal("acme", "ann", SCOPES).scopes == SCOPES


@pytest.mark.parametrize(
    ("state", "active"),
    [
        (RunState.RUNNING, True),
        (RunState.WAITING, True),
        (RunState.DONE, False),
        (RunState.STOPPED, False),
        (RunState.FAILED, False),
    ],
)
def test_a_run_is_active_until_it_has_ended(state: RunState, active: bool) -> None:
    assert _run(state).active is active


def test_a_run_waits_parked_or_held() -> None:
    waiting = _run(RunState.WAITING)
    assert (waiting.waits, replace(waiting, parked=True).waits) == (True, True)
    assert not _run(RunState.RUNNING).waits


def test_messages_of_a_run_have_ids_that_tell_step_and_side() -> None:
    step = AssistantMessage("run_1", 2, ())
    assert step.message_id == "run_1:2"
    assert ResultsMessage("run_1", 2, ()).message_id == "run_1:2:results"


def test_a_step_knows_the_calls_it_asked_for_in_order() -> None:
    calls = [ToolCallPart("call_1", "a", {}), ToolCallPart("call_2", "b", {})]
    step = AssistantMessage("run_1", 1, (Text("x"), calls[0], Reasoning("y"), calls[1]))
    assert step.tool_calls == tuple(calls)


def test_the_text_of_a_message_is_its_text_parts() -> None:
    file = File("blob_1", "a.png", "image/png", 3)
    assert text_of(UserMessage("m", (Text("a"), file, Text("b")))) == "ab"
    assert text_of(AssistantMessage("run_1", 1, (Reasoning("no"), Text("yes")))) == "yes"
    assert text_of(ResultsMessage("run_1", 1, (ToolResultPart("call_1", "a", {}, Success("no")),))) == ""


@requirement("calls:what-was-approved")
@pytest.mark.parametrize(
    "change",
    [
        {"name": "other"},
        {"description": "Opens another page."},
        {"input_schema": {}},
        {"executor": Executor.FRONTEND},
        {"output_schema": {}},
    ],
)
def test_a_change_of_what_a_person_relied_on_is_another_version(
    change: dict[str, object],
) -> None:
    assert replace(TOOL, **change).version != TOOL.version


def test_a_tool_keeps_its_version_when_only_its_patience_changes() -> None:
    assert replace(TOOL, timeout_sec=5.0, card="link", idempotent=True).version == TOOL.version


@requirement("calls:what-was-approved")
def test_an_approval_is_for_one_version_with_one_input() -> None:
    asked = digest_of_approval("v1", {"a": 1, "b": 2})
    assert asked == digest_of_approval("v1", {"b": 2, "a": 1})
    assert asked != digest_of_approval("v2", {"a": 1, "b": 2})
    assert asked != digest_of_approval("v1", {"a": True, "b": 2})


def _run(state: RunState) -> Run:
    return Run(run_id="run_1", owner=OWNER, thread_id="t", state=state, started_at=0.0)


def test_an_owner_is_of_its_tenant_and_of_its_subject_alone() -> None:
    ann = Owner("acme", "ann")
    assert is_of(ann, "acme", None)
    assert is_of(ann, "acme", "ann")
    assert not is_of(ann, "acme", "bob")
    assert not is_of(ann, "globex", None)


def test_a_thread_is_listed_by_when_it_was_used() -> None:
    thread = Thread(owner=OWNER, thread_id="t1", created_at=1.0, updated_at=2.0)
    assert thread.cursor == ThreadCursor(2.0, "t1")


@pytest.mark.parametrize("wait", ["", "park", None])
def test_a_way_to_wait_that_there_is_not_is_a_bad_setting(wait: object) -> None:
    with pytest.raises(BadSetting, match="'turn' or 'hold'"):
        check_wait(wait, "chat.wait")


def test_a_client_knows_which_program_was_it_before() -> None:
    client = Client(owner=OWNER, client_id="c", tools=(), grace_sec=5.0, holder="one", registered_at=0.0)
    assert held_by(client, "one") is client
    taken = held_by(client, "two")
    assert (taken.holder, taken.former) == ("two", "one")


def test_a_copy_of_a_message_shares_nothing_that_can_be_changed() -> None:
    said = UserMessage("m1", (Text("hi"),))
    input, echo, output = {"urls": ["a"]}, {"sealed": ["x"]}, {"rows": ["1"]}
    answer = AssistantMessage(
        "run_1", 1, (Text("a"), Reasoning("b"), Reasoning("c", echo), ToolCallPart("call_1", "t", input))
    )
    results = ResultsMessage(
        "run_1",
        1,
        (
            ToolResultPart("call_1", "t", input, Success(output)),
            ToolResultPart("call_2", "t", input, Failure("no")),
        ),
    )
    assert apart(said) is said
    copies, before = [apart(answer), apart(results)], [repr(answer), repr(results)]
    assert copies == [answer, results]
    for changed in (input, echo, output):
        changed.clear()
    assert [repr(copy) for copy in copies] == before
