"""The registered clients with their tools, and the approval policy."""

from __future__ import annotations

import logging

import pytest

from farhand.clients.registry import ClientTools
from farhand.core.tool import Tool
from farhand.errors import BadSetting
from farhand.store.base import Store
from farhand.testing import FakeClock
from tests.requirement import requirement
from tests.unit.clients.client_harness import ANN, BOB, Office


async def test_tools_are_found_by_client_by_name_and_all_together(office: Office) -> None:
    await office.register("notes", "read", "search")
    await office.register("mail", "send")
    registry = office.registry
    assert [tool.name for tool in registry.tools(ANN)] == [
        "client_notes_read",
        "client_notes_search",
        "client_mail_send",
    ]
    assert [tool.name for tool in registry.tools_of(ANN, "mail")] == ["client_mail_send"]
    assert registry.tools_of(ANN, "nobody") == []
    assert registry.get(ANN, "client_notes_read") is not None
    assert registry.count(ANN) == 2


@requirement("client-tools:owner")
async def test_what_belongs_to_another_is_not_found(office: Office) -> None:
    await office.register("notes", "read")
    assert office.registry.tools(BOB) == []
    assert office.registry.get(BOB, "client_notes_read") is None
    assert office.registry.client(BOB, "notes") is None
    assert office.registry.count(BOB) == 0


@requirement("client-tools:restart")
async def test_another_registry_on_the_same_store_knows_the_same(office: Office) -> None:
    await office.register("notes", "read")
    await office.register("notes", "read", owner=BOB)
    again = Office(office.store, office.clock)
    assert await again.registry.load() == await office.clients()
    assert again.registry.tools(ANN) == office.registry.tools(ANN)
    assert again.registry.tools(BOB) == office.registry.tools(BOB)


@requirement("client-tools:approval")
async def test_policy_is_never_always_or_a_function(store: Store, clock: FakeClock) -> None:
    for approval, asks in (("never", False), ("always", True), (lambda tool, input: bool(input), False)):
        # each of them is one of the values that are allowed
        office = Office(store, clock, ClientTools(approval=approval))  # type: ignore[arg-type]
        tool = Tool(name="client_notes_read", description="Reads.", input_schema={})
        assert office.registry.asks(tool, {}) is asks
        assert office.registry.may_ask is (approval != "never")


@requirement("client-tools:approval")
async def test_a_policy_that_is_in_doubt_asks(
    store: Store, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(tool: Tool, input: dict[str, object]) -> bool:
        raise LookupError(tool.name)

    tool = Tool(name="client_notes_read", description="Reads.", input_schema={})
    with caplog.at_level(logging.WARNING, "farhand.tools"):
        for approval in (broken, lambda tool, input: "yes"):
            # what a careless program may hand over
            office = Office(store, clock, ClientTools(approval=approval))  # type: ignore[arg-type]
            assert office.registry.asks(tool, {}) is True
    assert [record.args for record in caplog.records] == [
        ("the approval policy for tool client_notes_read", "raised LookupError"),
        ("the approval policy for tool client_notes_read", "returned str, not a bool"),
    ]


@requirement("client-tools:approval")
async def test_a_policy_can_not_change_what_it_decides_on(store: Store, clock: FakeClock) -> None:
    def greedy(tool: Tool, input: dict[str, object]) -> bool:
        input.clear()
        return False

    office = Office(store, clock, ClientTools(approval=greedy))
    given: dict[str, object] = {"a": 1}
    office.registry.asks(Tool(name="x", description="x", input_schema={}), given)
    assert given == {"a": 1}


@requirement("client-tools:approval")
def test_another_policy_is_refused_at_once() -> None:
    with pytest.raises(BadSetting, match="'never', 'always' or a function"):
        ClientTools(approval="sometimes")  # type: ignore[arg-type]
