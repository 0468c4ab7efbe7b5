"""Wrong arguments of the public interface are explained in one sentence."""

from __future__ import annotations

from typing import Any

import pytest

from farhand import Agent, ScriptedModel, Toolbox, create_app, serve
from farhand.client import Client
from farhand.errors import Misuse, suggest_name
from farhand.tools.keyword_arguments import explain_arguments

AGENT = Agent(ScriptedModel(["Hello."]))


# Any: what a program without a type checker may pass
@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (
            lambda: create_app(AGENT, **_any(allow_origin=[])),
            "create_app() has no argument `allow_origin`; did you mean `allow_origins`?",
        ),
        (
            lambda: Agent(ScriptedModel([]), **_any(instruction="x")),
            "Agent() has no argument `instruction`; did you mean `instructions`?",
        ),
        (
            lambda: AGENT.run("Hello.", **_any(threads="t")),
            "run() has no argument `threads`; did you mean `thread`?",
        ),
        (lambda: serve(AGENT, **_any(prot=1)), "serve() has no argument `prot`; did you mean `port`?"),
        (
            lambda: Client("http://127.0.0.1:1", "notes", **_any(tokn="x")),
            "Client() has no argument `tokn`; did you mean `token`?",
        ),
        (
            lambda: create_app(Toolbox()).call("a", {}, thread="t", **_any(timeout=3)),
            "call() has no argument `timeout`; did you mean `timeout_sec`?",
        ),
    ],
)
def test_a_misspelled_argument_is_answered_with_the_right_one(wrong: Any, sentence: str) -> None:
    with pytest.raises(Misuse) as caught:
        wrong()
    assert str(caught.value) == sentence


def test_an_argument_that_resembles_none_is_answered_with_all_of_them() -> None:
    with pytest.raises(
        Misuse, match=r"has no argument `token`\. Its arguments are agent, store, authenticate, "
    ):
        create_app(AGENT, **_any(token="x"))


def test_a_missing_or_misplaced_argument_is_answered_with_all_of_them() -> None:
    missing: Any = Client
    with pytest.raises(
        Misuse, match=r"Client\(\): missing a required argument: 'url'. Its arguments are url, "
    ):
        missing()
    with pytest.raises(Misuse, match=r"Toolbox.add\(\): missing a required argument: 'description'. Its arg"):
        Toolbox().add(_any)  # type: ignore[call-arg, arg-type]
    too_many: Any = Agent
    with pytest.raises(Misuse, match=r"Agent\(\): too many positional arguments. Its arguments are model, "):
        too_many(ScriptedModel([]), [])


def test_an_argument_like_no_other_is_answered_with_all_of_them() -> None:
    with pytest.raises(
        Misuse, match=r"^serve\(\) has no argument `xyz`\. Its arguments are app, host, port\.$"
    ):
        serve(AGENT, **_any(xyz=1))


def test_a_type_error_from_inside_the_function_is_not_explained_away() -> None:
    @explain_arguments("broken()")
    def broken(number: int) -> int:
        raise TypeError("from inside")

    with pytest.raises(TypeError, match="from inside"):
        broken(1)


def test_a_name_like_no_other_gets_no_suggestion() -> None:
    assert suggest_name("zzz", ["port"]) == "."


def _any(**arguments: Any) -> dict[str, Any]:
    return arguments
