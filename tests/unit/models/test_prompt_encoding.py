from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from farhand.core.thread import AssistantMessage, ToolCallPart
from farhand.models.prompt_encoding import ToolNames, call_ids
from tests.requirement import requirement


def step(*calls: tuple[str, str | None]) -> AssistantMessage:
    parts = tuple(ToolCallPart(call_id, "look", {}, theirs) for call_id, theirs in calls)
    return AssistantMessage("run_1", 1, parts)


@requirement("models:call-ids")
def test_an_id_of_the_provider_is_kept() -> None:
    assert call_ids([step(("call_a", "toolu_1"))])["call_a"] == "toolu_1"


@requirement("models:call-ids")
def test_a_missing_id_becomes_ours() -> None:
    ids = call_ids([step(("call_a", None), ("call_b", ""))])
    assert (ids["call_a"], ids["call_b"]) == ("call_a", "call_b")


@requirement("models:call-ids")
def test_an_id_that_was_used_before_becomes_ours_and_the_first_keeps_its_own() -> None:
    first, second = step(("call_a", "call_0")), step(("call_b", "call_0"))
    assert call_ids([first])["call_a"] == "call_0"
    ids = call_ids([first, second])
    assert (ids["call_a"], ids["call_b"]) == ("call_0", "call_b")


@requirement("models:call-ids")
def test_an_id_of_another_provider_that_does_not_fit_becomes_ours() -> None:
    ids = call_ids([step(("call_a", "call 0"), ("call_b", "c" * 41), ("call_c", "c" * 40))], longest=40)
    assert (ids["call_a"], ids["call_b"], ids["call_c"]) == ("call_a", "call_b", "c" * 40)


def test_a_name_that_fits_is_its_own_alias() -> None:
    names = ToolNames(["get_weather", "open-url"])
    assert names.alias("get_weather") == "get_weather"
    assert names.name("open-url") == "open-url"


def test_an_alias_can_still_be_read_and_leads_back() -> None:
    name = "client_desk.top:7_open file"
    names = ToolNames([name])
    assert names.alias(name).startswith("client_desk_top_7_open_file_")
    assert names.name(names.alias(name)) == name


def test_what_a_model_makes_up_stays_as_it_is() -> None:
    assert ToolNames(["look"]).name("brew coffee") == "brew coffee"


def test_a_tool_that_is_called_like_an_alias_is_not_hidden_by_it() -> None:
    taken = ToolNames(["open file"]).alias("open file")
    names = ToolNames(["open file", taken])
    assert names.alias(taken) == taken
    assert names.alias("open file") != taken
    assert names.name(names.alias("open file")) == "open file"


@given(st.lists(st.text(max_size=200), max_size=12, unique=True), st.sampled_from([64, 128]))
def test_every_name_gets_one_alias_that_fits_and_leads_back(known: list[str], longest: int) -> None:
    names = ToolNames(known, longest=longest)
    aliases = [names.alias(name) for name in known]
    assert len(set(aliases)) == len(known)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]+", alias) and len(alias) <= longest for alias in aliases)
    assert [names.name(alias) for alias in aliases] == known


@given(st.text(max_size=200), st.lists(st.text(max_size=20), max_size=5))
def test_an_alias_depends_on_the_name_alone(name: str, others: list[str]) -> None:
    alone, among = ToolNames([name]), ToolNames([*others, name])
    # unless somebody is called just like it, which no test finds by chance
    assert alone.alias(name) == among.alias(name)
