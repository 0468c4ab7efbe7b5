"""A misspelled setting is one sentence with the name that was probably meant."""

from __future__ import annotations

# Any: arguments that a type checker would refuse
from typing import Any

import pytest

from farhand import Answer, ChatRules, ClientTools, Limits, Principal, RequestTools, Settings, Timeouts
from farhand.errors import BadSetting
from farhand.models import Ask


@pytest.mark.parametrize(
    ("struct", "arguments", "sentence"),
    [
        (Limits, {"chat_bdy": 1}, "Limits() has no argument `chat_bdy`; did you mean `chat_body`?"),
        (Timeouts, {"holdfor": 1}, "Timeouts() has no argument `holdfor`; did you mean `hold_for`?"),
        (Settings, {"limit": Limits()}, "Settings() has no argument `limit`; did you mean `limits`?"),
        (ChatRules, {"xyz": "hold"}, "ChatRules() has no argument `xyz`."),
        (ClientTools, {"aproval": 1}, "ClientTools() has no argument `aproval`; did you mean `approval`?"),
        (RequestTools, {"xyz": "never"}, "RequestTools() has no argument `xyz`."),
        (Principal, {"tennant": "acme"}, "Principal() has no argument `tennant`; did you mean `tenant`?"),
        (Answer, {"aproved": True}, "Answer() has no argument `aproved`; did you mean `approved`?"),
        (Ask, {"tol": "open_url"}, "Ask() has no argument `tol`; did you mean `tool`?"),
    ],
)
def test_a_misspelled_argument_is_explained(
    struct: type[Any], arguments: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(BadSetting) as raised:
        struct(**arguments)
    assert str(raised.value) == sentence


def test_a_value_without_a_name_is_explained() -> None:
    struct: Any = Timeouts
    with pytest.raises(BadSetting, match=r"^Timeouts\(\): .*Write its arguments as name=value\.$"):
        struct(30)


def test_right_arguments_are_passed_on() -> None:
    assert ClientTools("always") == ClientTools(approval="always")
    assert Timeouts(hold_for=30).hold_for == 30


def test_an_error_of_the_struct_itself_is_kept() -> None:
    later: Any = "later"
    with pytest.raises(BadSetting, match=r"chat\.wait must be 'turn' or 'hold'"):
        ChatRules(wait=later)
