from __future__ import annotations

import pytest

from farhand.core.outcome import Cancelled, Denied, Failure, Outcome, Success, TimedOut
from farhand.core.thread import Message, ResultsMessage, ToolResultPart
from farhand.errors import ModelFault
from farhand.models.base import Prompt
from farhand.models.scripted.model import ToolResult, check_history, moment_of
from tests.unit.models.conversation import Talk


def test_a_moment_counts_from_the_last_user_message() -> None:
    talk = Talk("old").asked("look").got(Success(1)).said("done").user("new")
    before = moment_of(talk.prompt("look", "open"))
    after = moment_of(talk.asked("a", "b").got(Success(2), Failure("no")).asked("c").got(Denied()).prompt())
    assert (before.text, before.steps, before.results, before.last) == ("new", 0, (), ())
    assert before.tools == ("look", "open")
    assert (after.text, after.steps) == ("new", 2)
    assert [result.tool for result in after.results] == ["a", "b", "c"]
    assert [result.tool for result in after.last] == ["c"]
    assert (after.instructions, after.thread_id, len(after.messages)) == ("be brief", "thr_1", 9)


def test_a_step_without_calls_leaves_no_last_results() -> None:
    moment = moment_of(Talk("go").asked("a").got(Success(1)).said("wait").prompt())
    assert (moment.steps, len(moment.results), moment.last) == (2, 1, ())


def test_a_moment_without_a_user_message_has_no_text() -> None:
    assert moment_of(Prompt(())).text == ""


@pytest.mark.parametrize(
    ("outcome", "kind", "output", "error"),
    [
        (Success({"a": 1}), "success", {"a": 1}, ""),
        (Failure("broke"), "failure", None, "broke"),
        (Denied("not today"), "denied", None, "denied: not today"),
        (Denied(), "denied", None, "denied"),
        (TimedOut(60), "timed_out", None, "timed out after 60 s"),
        (TimedOut(), "timed_out", None, "timed out"),
        (Cancelled("the user moved on"), "cancelled", None, "the user moved on"),
    ],
)
def test_a_returned_call_tells_its_outcome_in_words(
    outcome: Outcome, kind: str, output: object, error: str
) -> None:
    returned = ToolResult("call_1", "look", {}, outcome)
    assert (returned.kind, returned.output, returned.error) == (kind, output, error)


def test_a_returned_call_shows_what_a_model_would_read() -> None:
    assert ToolResult("call_1", "look", {}, Success({"b": 1, "a": 2})).seen == '{"a":2,"b":1}'


def test_a_history_whose_calls_and_results_pair_up_is_taken() -> None:
    talk = (
        Talk("a")
        .asked("x", "y")
        .got(Success(1), Denied())
        .said("b")
        .user("c")
        .user("d")
        .asked("z")
        .got(Success(2))
    )
    check_history(talk.messages)


def _swapped(message: Message) -> ResultsMessage:
    assert isinstance(message, ResultsMessage)
    return ResultsMessage(message.run_id, message.step, tuple(reversed(message.results)))


def _doubled(message: Message) -> ResultsMessage:
    assert isinstance(message, ResultsMessage)
    return ResultsMessage(message.run_id, message.step, message.results * 2)


def _two_calls() -> Talk:
    return Talk("go").asked("x", "y").got(Success(1), Success(2))


FAULTS: dict[str, tuple[list[Message], str]] = {
    "nothing": ([], "does not begin with a user message"),
    "no user": (Talk("go").said("hi").messages[1:], "does not begin with a user message"),
    "open at the end": (Talk("go").asked("x").messages, r"ends without a result for call_0 \(x\)"),
    "answered over": (Talk("go").asked("x").said("hm").messages, "the next message has no result for call_0"),
    "swapped": (
        [*_two_calls().messages[:2], _swapped(_two_calls().messages[2])],
        "it has the results call_1",
    ),
    "doubled": (
        [*_two_calls().messages[:2], _doubled(_two_calls().messages[2])],
        "it has the results call_0",
    ),
    "results twice": ([*_two_calls().messages, _two_calls().messages[2]], r"after the calls \(none\)"),
    "empty results": ([*Talk("go").messages, ResultsMessage("run_1", 1, ())], "results without calls"),
    "id twice": ([*_two_calls().messages, *_two_calls().messages], "has the call call_0 twice"),
    "other tool": (
        [
            *Talk("go").asked("x").messages,
            ResultsMessage("run_1", 2, (ToolResultPart("call_0", "z", {}, Success(1)),)),
        ],
        r"results call_0 \(z\)",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_history_a_provider_would_refuse_is_refused(name: str) -> None:
    messages, why = FAULTS[name]
    with pytest.raises(ModelFault, match=f"not valid for a model: .*{why}"):
        check_history(messages)
