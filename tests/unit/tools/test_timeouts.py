"""A timeout is a number from 1 to 86 400 seconds; a model that may choose is kept within that."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farhand.core.tool import Executor, Schema, Tool
from farhand.errors import BadTool, Misuse
from farhand.tools.timeouts import effective_timeout, parse_call_timeout, parse_tool_timeout


def frontend(
    properties: object, timeout_sec: float | None = 60.0, executor: Executor = Executor.FRONTEND
) -> Tool:
    schema: Schema = {"type": "object", "properties": properties}
    return Tool(name="t", description="T.", input_schema=schema, executor=executor, timeout_sec=timeout_sec)


@pytest.mark.parametrize("value", [0, 0.5, 86_401, -1, True, False, math.nan, math.inf, "60", [60], 10**400])
def test_a_bad_timeout_is_refused_at_declaration(value: object) -> None:
    with pytest.raises(
        BadTool, match="`timeout_sec` of tool `t` must be a number of seconds from 1 to 86400"
    ):
        parse_tool_timeout(value, "`timeout_sec` of tool `t`")


@pytest.mark.parametrize(("value", "seconds"), [(None, None), (1, 1.0), (86_400, 86_400.0), (2.5, 2.5)])
def test_a_good_timeout_is_kept_as_seconds(value: object, seconds: float | None) -> None:
    assert parse_tool_timeout(value, "it") == seconds


@pytest.mark.parametrize(
    ("chosen", "seconds"),
    [(5, 5.0), (0, 1.0), (-7, 1.0), (10**400, 86_400.0), (1.5, 1.5), (None, 60.0), ("5", 60.0), (True, 60.0)],
)
def test_the_model_chooses_within_the_range(chosen: object, seconds: float) -> None:
    assert effective_timeout(frontend({"timeout_sec": {}}), {"timeout_sec": chosen}) == seconds


def test_a_default_in_the_signature_counts_when_the_model_says_nothing() -> None:
    assert effective_timeout(frontend({"timeout_sec": {"default": 30}}), {}) == 30.0
    assert effective_timeout(frontend({"timeout_sec": {"default": None}}), {}) == 60.0
    assert effective_timeout(frontend({"timeout_sec": True}), {}) == 60.0


def test_the_model_cannot_choose_where_the_tool_has_no_such_parameter() -> None:
    assert effective_timeout(frontend({"url": {}}), {"timeout_sec": 5}) == 60.0
    assert effective_timeout(frontend(None), {"timeout_sec": 5}) == 60.0
    assert effective_timeout(frontend({"url": {}}, timeout_sec=None), {}) is None


@pytest.mark.parametrize("name", ["timeout_sec", "timeoutSec"])
def test_a_server_tool_may_use_the_names_for_itself(name: str) -> None:
    server = frontend({name: {}}, executor=Executor.SERVER)
    assert effective_timeout(server, {name: 5}) == 60.0


@pytest.mark.parametrize("executor", [Executor.FRONTEND, Executor.CLIENT])
def test_both_spellings_of_the_parameter_count_and_the_first_one_wins(executor: Executor) -> None:
    camel = frontend({"timeoutSec": {"default": 30}}, executor=executor)
    assert effective_timeout(camel, {"timeoutSec": 5}) == 5.0
    assert effective_timeout(camel, {}) == 30.0
    both = frontend({"timeoutSec": {}, "timeout_sec": {}}, executor=executor)
    assert effective_timeout(both, {"timeout_sec": 7, "timeoutSec": 5}) == 7.0


@given(st.none() | st.booleans() | st.integers() | st.floats() | st.text())
def test_whatever_the_model_sends_the_deadline_is_one_that_could_be_declared(chosen: object) -> None:
    seconds = effective_timeout(frontend({"timeout_sec": {}}), {"timeout_sec": chosen})
    assert parse_tool_timeout(seconds, "it") == seconds


def test_the_timeout_of_a_programs_own_call_is_checked_as_misuse() -> None:
    assert parse_call_timeout(None) is None
    assert parse_call_timeout(5) == 5.0
    for value in (0, 86_401, "5", True):
        with pytest.raises(Misuse, match="must be a number of seconds from 1 to 86400"):
            parse_call_timeout(value)
