"""Shared by all bridges: the list of tools, keys, and what a model is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from farhand import Answer, Owner, Principal, SettledCall, Toolbox, Waiting, create_app, current
from farhand.agent.keyed_calls import KEY_SHAPE
from farhand.bridges import thread_name
from farhand.bridges.bridge import HandCaller, ToolReply, attach, build_key, read_arguments
from farhand.bridges.far_tools import declare_own
from farhand.core.call import Call
from farhand.core.ids import is_chosen_id
from farhand.core.principal import Who
from farhand.core.settings import Limits, Settings
from farhand.errors import Misuse, StoreDown
from tests.frameworks.stage import Stage, comes_true
from tests.requirement import requirement
from tests.unit.bridges.calls import call_hand

URL = {"url": "https://example.org"}


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with Stage("memory:", tmp_path) as stage:
        yield stage


@requirement("bridges:approval")
async def test_an_edited_input_runs_and_the_model_is_told_of_the_edit(stage: Stage) -> None:
    async with asyncio.TaskGroup() as group:
        called = group.create_task(call_hand(stage.hands, "pay", {"amount": 300}))
        await stage.approve_next(Answer(approved=True, input={"amount": 3}))
    assert stage.paid == ["paid 3"]
    text = 'The user edited the input before approving it, to {"amount":3}.\npaid 3'
    assert called.result() == ToolReply(text, content=text)
    # the same key with the input as the model wrote it attaches
    assert await call_hand(stage.hands, "pay", {"amount": 300}) == called.result()


async def test_an_output_is_given_as_a_value_and_as_text(stage: Stage) -> None:
    async with asyncio.TaskGroup() as group:
        called = group.create_task(call_hand(stage.hands, "open_url", URL))
        [call] = await stage.open_calls()
        await stage.answer(call, {"viewKey": "v1"})
    assert called.result() == ToolReply('{"viewKey":"v1"}', content={"viewKey": "v1"})


async def test_a_denial_is_an_error_with_its_reason(stage: Stage) -> None:
    async with asyncio.TaskGroup() as group:
        called = group.create_task(call_hand(stage.hands, "pay", {"amount": 3}))
        await stage.approve_next(Answer(approved=False, reason="too much"))
    reply = called.result()
    assert isinstance(reply, ToolReply)
    assert reply.is_error
    assert reply.text == "The user denied this call; it was not executed. They gave this reason: too much"


@pytest.mark.slow
async def test_a_deadline_is_told_in_words(stage: Stage) -> None:
    reply = await call_hand(stage.hands, "ask_quickly", {"question": "?"})
    assert reply == ToolReply(
        "Nobody answered within 1 s. This call has no result.",
        is_error=True,
        content="Nobody answered within 1 s. This call has no result.",
    )


async def test_bad_input_and_an_unknown_tool_are_refused_before_anyone_is_asked(stage: Stage) -> None:
    for tool, input in (("pay", {"amount": "much"}), ("play", {})):
        reply = await call_hand(stage.hands, tool, input)
        assert isinstance(reply, ToolReply)
        assert reply.is_error
    assert await stage.hands.service.log.open_calls(Owner("local", "me")) == []


@pytest.mark.parametrize(
    ("input", "expected"),
    [
        ({"url": "\ud800"}, "JSON cannot represent the input."),
        ({"url": "x" * 2_000_000}, "The input is larger than "),
        (["url"], "The input is not a JSON object."),
    ],
)
async def test_an_input_that_cannot_be_stored_is_told_to_the_model(
    stage: Stage, input: Any, expected: str
) -> None:
    reply = await call_hand(stage.hands, "open_url", input)
    assert isinstance(reply, ToolReply)
    assert reply.is_error
    assert reply.text.startswith(expected)
    assert await stage.hands.service.keyed_call("t:1") is None


async def test_a_repeated_id_with_another_input_is_another_call(stage: Stage) -> None:
    inputs = [{"amount": 1}, {"amount": 2}, {"amount": 1}]
    waiting = [await call_hand(stage.hands, "pay", input, part="call_0", hold_for=0.01) for input in inputs]
    assert [each.key for each in waiting if isinstance(each, Waiting)] == [
        "t:call_0",
        "t:call_0.2",
        "t:call_0",
    ]


async def test_a_limit_is_told_to_the_model(tmp_path: Path) -> None:
    stage = Stage("memory:", tmp_path)
    stage.hands = create_app(
        stage.hands.spec.toolbox, store="memory:", settings=Settings(limits=Limits(open_calls_per_thread=1))
    )
    async with stage:
        first = await call_hand(stage.hands, "pay", {"amount": 1}, hold_for=0.01)
        assert isinstance(first, Waiting)
        second = await call_hand(stage.hands, "pay", {"amount": 1}, part="2", hold_for=0.01)
        assert isinstance(second, ToolReply)
        assert second.is_error


async def test_a_held_call_ends_with_its_caller_and_a_parked_one_stays(stage: Stage) -> None:
    held = asyncio.create_task(call_hand(stage.hands, "pay", {"amount": 1}))
    await stage.open_calls()
    held.cancel()
    with pytest.raises(asyncio.CancelledError):
        await held
    await stage.no_open_call()
    parked = asyncio.create_task(call_hand(stage.hands, "pay", {"amount": 1}, part="2", hold_for=60))
    await stage.open_calls()
    parked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await parked
    await stage.approve_next()
    assert await attach(stage.hands, "t:2") == ToolReply("paid 1", content="paid 1")
    assert stage.paid == ["paid 1"]


async def _cancel_after(turns: int, run: asyncio.Task[object]) -> None:
    for _ in range(turns):
        await asyncio.sleep(0)
    run.cancel()
    await asyncio.wait([run])


async def test_a_call_that_is_being_opened_when_its_run_is_cancelled_does_not_stay(tmp_path: Path) -> None:
    async with Stage(f"sqlite:///{tmp_path}/hands.db", tmp_path) as stage:
        for turns in range(40):
            work = call_hand(stage.hands, "pay", {"amount": 3}, part=str(turns))
            await _cancel_after(turns, asyncio.create_task(work))
        await stage.no_open_call()
        assert stage.paid == []


async def test_a_cancelled_run_leaves_the_call_of_another_with_the_same_id_alone(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, store = "t:call_0", stage.hands.service.log.store
    await call_hand(stage.hands, "pay", {"amount": 3}, part="call_0", hold_for=0.0)
    find = store.find_call

    async def find_later(*which: Any) -> object:
        # as a store does that is asked over a network
        await asyncio.sleep(0)
        return await find(*which)

    monkeypatch.setattr(store, "find_call", find_later)
    for turns in range(20):
        work = call_hand(stage.hands, "pay", {"amount": 4}, part="call_0")
        await _cancel_after(turns, asyncio.create_task(work))
    call = await stage.hands.service.keyed_call(key)
    assert call is not None
    assert call.outcome is None


async def test_whoever_attaches_may_leave_and_a_missing_call_is_told(stage: Stage) -> None:
    assert isinstance(await call_hand(stage.hands, "pay", {"amount": 1}, hold_for=0.01), Waiting)
    attached = asyncio.create_task(attach(stage.hands, "t:1"))
    await asyncio.sleep(0)
    attached.cancel()
    await asyncio.wait([attached])
    await stage.open_calls()
    gone = await attach(stage.hands, "t:unknown")
    assert gone.text == "This call was cancelled and has no result: the call no longer exists."


async def test_a_call_whose_thread_is_deleted_while_somebody_attaches_is_gone_and_not_made_again(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = stage.hands.service
    await call_hand(stage.hands, "pay", {"amount": 1}, hold_for=0.0)
    find = service.log.get_requested

    async def found_and_deleted(owner: Owner, request_id: str) -> Call | None:
        call = await find(owner, request_id)
        await service.delete(owner, "t")
        return call

    monkeypatch.setattr(service.log, "get_requested", found_and_deleted)
    gone = await attach(stage.hands, "t:1")
    assert gone.text == "This call was cancelled and has no result: the call no longer exists."
    monkeypatch.undo()
    assert await service.keyed_call("t:1") is None
    await stage.no_open_call()


@requirement("bridges:cancel")
async def test_of_two_runs_that_hold_the_same_call_one_may_be_cancelled(stage: Stage) -> None:
    one, other = (asyncio.create_task(call_hand(stage.hands, "pay", {"amount": 3})) for _ in range(2))
    [call] = await stage.open_calls()
    await comes_true(lambda: _is_awaited_by(stage, call, 2))
    one.cancel()
    await asyncio.wait([one])
    await stage.approve(call)
    assert await other == ToolReply("paid 3", content="paid 3")
    assert stage.paid == ["paid 3"]


async def _is_awaited_by(stage: Stage, call: Call, callers: int) -> bool:
    return stage.hands.service.log.broker.count(call.call_id) == callers


async def test_the_claims_of_a_principal_reach_the_tool() -> None:
    toolbox = Toolbox()

    @toolbox.tool
    def plan() -> str:
        """Say for whom this works."""
        return f"{current().owner.subject}: {current().claims['plan']}"

    async with create_app(toolbox, store="memory:") as hands:
        ann = Principal("acme", "ann", claims={"plan": "pro"})
        reply = await call_hand(hands, "plan", {}, owner=ann)
    assert reply == ToolReply("ann: pro", content="ann: pro")


@pytest.mark.parametrize(
    ("parts", "key"),
    [
        (("t1", "run-1", 3, "call_0"), "t1:run-1:3:call_0"),
        (("user:7", "run", "id"), "user:7:run:id"),
    ],
)
def test_a_key_names_thread_and_parts(parts: tuple[str, ...], key: str) -> None:
    assert build_key(*parts) == key


def test_every_key_is_valid_and_different_parts_make_different_keys() -> None:
    parts = ["", "a", "a:b", "a b", "a_b", "ü", "x" * 300, "x" * 301, "\ud800"]
    keys = [build_key("t", one, two) for one in parts for two in parts]
    assert all(KEY_SHAPE.fullmatch(key) for key in keys)
    assert len(set(keys)) == len(keys)
    long = build_key("t" * 128, "r" * 40, "c" * 60)
    assert KEY_SHAPE.fullmatch(long)
    assert long.startswith("t" * 128 + ":")


@pytest.mark.parametrize("text", ["[1]", "{", '{"a": 1, "a": 2}', "nothing", 3, ["a"], b"{}"])
def test_arguments_that_are_no_object_are_told_to_the_model(text: object) -> None:
    reply = read_arguments(text)
    assert isinstance(reply, ToolReply)
    assert reply.is_error


def test_arguments_are_read_and_none_are_an_empty_object() -> None:
    assert read_arguments('{"a": [1]}') == {"a": [1]}
    assert read_arguments("") == read_arguments(None) == {}
    assert read_arguments({"a": 1}) == {"a": 1}


async def test_a_caller_may_wait_longer_than_it_holds_and_leaves_the_call_open(stage: Stage) -> None:
    caller = HandCaller[None](stage.hands, {"thread": "t", "hold_for": 0.01})
    leaving = asyncio.create_task(caller.wait("pay", {"amount": 3}, None, "step", "call_0"))
    [call] = await stage.open_calls()
    assert isinstance(await caller.call("pay", {"amount": 3}, None, "step", "call_0"), Waiting)
    leaving.cancel()
    await asyncio.wait([leaving])
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(caller.wait("pay", {"amount": 3}, None, "step", "call_0"))
        await stage.approve(call)
    assert waiting.result() == ToolReply("paid 3", content="paid 3")
    assert stage.paid == ["paid 3"]


def test_a_caller_lists_tools_before_it_knows_the_owner_of_a_run(tmp_path: Path) -> None:
    hands = Stage("memory:", tmp_path).hands
    caller = HandCaller[Owner](hands, {"thread": "t", "owner": lambda owner: owner})
    ann = Owner("acme", "ann")
    assert [tool.name for tool in caller.list_tools()] == [tool.name for tool in caller.list_tools(ann)]
    assert [tool.name for tool in caller.list_tools(only=["pay"])] == ["pay"]


def test_a_tool_is_found_by_the_name_that_a_framework_knows(tmp_path: Path) -> None:
    hands = Stage("memory:", tmp_path).hands
    declare_own(hands, str, name="delete_file", description="", schema={"type": "object"})
    caller = HandCaller[Owner](hands, {"thread": "t"})
    ann = Owner("acme", "ann")
    found = [caller.find_tool(name, ann) for name in ("pay", "delete_file", "another")]
    assert found == ["pay", "delete_file", None]


@requirement("bridges:tools")
def test_every_id_of_a_conversation_names_a_thread_and_different_ones_name_different_threads() -> None:
    ids = ["a@b/c", "a_b_c", "a b c", "ü", "x" * 129, "x" * 130, "t/1", "t/2", "\ud800", "/"]
    names = [thread_name(each) for each in ids]
    assert all(is_chosen_id(name) for name in names)
    assert len(set(names)) == len(names)
    assert names[0].startswith("a_b_c.")
    assert [thread_name(each) for each in ("t1", "user:7", "x" * 128)] == ["t1", "user:7", "x" * 128]
    assert thread_name(7) == "7"
    assert thread_name(UUID(int=7)) == str(UUID(int=7))
    # what was mapped is mapped no further
    assert [thread_name(name) for name in names] == names


@requirement("bridges:tools")
async def test_calls_stand_in_the_thread_that_the_id_of_a_conversation_names(stage: Stage) -> None:
    threads: list[str] = []

    async def note(settled: SettledCall) -> None:
        threads.append(settled.thread_id)

    odd = "ann@example.org/chats/7"
    stage.hands.on_settled(f"{thread_name(odd)}:", note)
    caller = HandCaller[str](stage.hands, {"thread": lambda context: context})
    async with asyncio.TaskGroup() as group:
        called = group.create_task(caller.call("pay", {"amount": 3}, odd, "step", "call_0"))
        [call] = await stage.open_calls()
        assert call.thread_id == thread_name(odd)
        await stage.approve(call)
    assert called.result() == ToolReply("paid 3", content="paid 3")

    async def is_notified() -> bool:
        return threads == [thread_name(odd)]

    await comes_true(is_notified)


@pytest.mark.parametrize("thread", [None, "", True, 1.5, ["t"]])
async def test_what_names_no_thread_is_refused_in_words(stage: Stage, thread: Any) -> None:
    caller = HandCaller[None](stage.hands, {"thread": thread})
    with pytest.raises(Misuse, match="`thread` must be the id of a conversation"):
        await caller.call("pay", {"amount": 3}, None, "step", "call_0")


@pytest.mark.parametrize("seconds", ["30", True, float("nan")])
def test_a_time_to_hold_that_is_no_number_is_refused_in_words(tmp_path: Path, seconds: Any) -> None:
    with pytest.raises(Misuse, match="`hold_for` must be a number of seconds"):
        HandCaller[None](Stage("memory:", tmp_path).hands, {"thread": "t", "hold_for": seconds})


@pytest.mark.parametrize(
    ("where", "sentence"),
    [
        (
            {},
            "The bridge needs `thread`, the conversation that its calls belong to.",
        ),
        ({"thread": "t", "hold": 3}, "The bridge has no argument `hold`; did you mean `hold_for`?"),
    ],
)
def test_wrong_arguments_of_a_bridge_are_explained(where: Any, sentence: str) -> None:
    with pytest.raises(Misuse) as caught:
        HandCaller(create_app(Toolbox(), store="memory:"), where)
    assert caught.value.message == sentence


def test_a_bridge_from_something_that_is_no_app_is_explained() -> None:
    toolbox: Any = Toolbox()
    with pytest.raises(Misuse, match=r"^A bridge needs an app, not a value of type Toolbox\."):
        HandCaller(toolbox, {"thread": "t"})


async def test_a_call_is_made_once_the_store_is_back(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    eventlog = stage.hands.service.log
    get_requested, errors = eventlog.get_requested, [StoreDown("The store is away.")] * 3

    async def away(owner: Owner, request_id: str) -> Call | None:
        if errors:
            raise errors.pop()
        return await get_requested(owner, request_id)

    monkeypatch.setattr("farhand.bridges.bridge.STORE_RETRY_SEC", 0.001)
    monkeypatch.setattr(eventlog, "get_requested", away)
    async with asyncio.TaskGroup() as group:
        called = group.create_task(call_hand(stage.hands, "pay", {"amount": 3}))
        await stage.approve_next(Answer(approved=True))
    assert (stage.paid, called.result()) == (["paid 3"], ToolReply("paid 3", content="paid 3"))
    errors += [StoreDown("The store is away.")]
    assert await attach(stage.hands, "t:1") == called.result()
    monkeypatch.setattr("farhand.bridges.bridge.STORE_DOWN_SEC", 0.0)
    errors += [StoreDown("The store is away.")]
    with pytest.raises(StoreDown):
        await call_hand(stage.hands, "pay", {"amount": 3})


async def test_the_time_that_a_call_waited_for_its_answer_is_no_outage_of_the_store(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, now, fails = stage.hands.service, 0.0, [True]
    keyed_call = service.keyed_call

    async def away_once(key: str, *, owner: Who) -> Call | None:
        if fails:
            fails.pop()
            raise StoreDown("The store is away.")
        return await keyed_call(key, owner=owner)

    monkeypatch.setattr("farhand.bridges.bridge.STORE_RETRY_SEC", 0.001)
    monkeypatch.setattr("farhand.bridges.bridge.monotonic", lambda: now)
    monkeypatch.setattr(service, "keyed_call", away_once)
    async with asyncio.TaskGroup() as group:
        called = group.create_task(call_hand(stage.hands, "pay", {"amount": 3}))
        await stage.open_calls()
        now = 86_400.0
        await stage.approve_next(Answer(approved=True))
    assert (stage.paid, called.result()) == (["paid 3"], ToolReply("paid 3", content="paid 3"))
    assert not fails
