"""A script in YAML, from the file to the model's output."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from farhand.core.outcome import Cancelled, Denied, Failure, Outcome, Success, TimedOut
from farhand.errors import BadSetting, ModelFault
from farhand.models.base import CallDone, CallStart, ReasoningDelta, Stop, TextDelta
from farhand.models.scripted import ScriptedModel
from tests.unit.models.conversation import Talk, collect, text_in

WEATHER = r"""
rules:
  - when: '/weather in (?P<place>\w+)(?: and (\w+))?/'
    steps:
      - think: They want the weather.
        text: "Looking at {place}."
        calls:
          - tool: weather
            input: {location: "{place}", near: "{2|nowhere}", days: 3}
            id: c1
      - either:
          - on: success
            text: "{results[0].output.temperature} degrees in {place}."
          - on: [failure, timed_out]
            text: "No luck: {results[0].error}."
          - text: "Never mind."
  - when: PASSWORD
    steps:
      - text: No.
        stop: refusal
  - when: break
    steps:
      - text: Oh
        fail: "overloaded by {text}"
default:
  steps:
    - text: "I can use {tools|nothing}. You said: {0}"
"""


async def test_a_rule_thinks_speaks_and_calls_with_what_the_user_said() -> None:
    events = await collect(ScriptedModel.from_yaml(WEATHER), Talk("What is the Weather in Oslo?"))
    assert events[0] == ReasoningDelta("They ")
    assert text_in(events) == "Looking at Oslo."
    assert CallStart(0, "weather", "c1") in events
    assert events[-2:] == [CallDone(0, '{"location": "Oslo", "near": "nowhere", "days": 3}'), Stop("calls")]


@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        (Success({"temperature": 70}), "70 degrees in Oslo."),
        (Failure("rain"), "No luck: rain."),
        (TimedOut(60), "No luck: timed out after 60 s."),
        (Denied(), "Never mind."),
        (Cancelled("stopped"), "Never mind."),
    ],
)
async def test_the_next_step_is_chosen_by_the_outcome(outcome: Outcome, text: str) -> None:
    talk = Talk("weather in Oslo").asked("weather").got(outcome)
    assert text_in(await collect(ScriptedModel.from_yaml(WEATHER), talk)) == text


async def test_success_means_that_all_calls_of_the_step_succeeded() -> None:
    talk = Talk("weather in Oslo").asked("weather", "weather").got(Success(1), Failure("rain"))
    with pytest.raises(ModelFault, match=r"\{results\[0\].error\}, but there is no such value"):
        await collect(ScriptedModel.from_yaml(WEATHER), talk)


async def test_words_of_another_case_and_the_default_are_found() -> None:
    model = ScriptedModel.from_yaml(WEATHER)
    assert (await collect(model, Talk("your password, please")))[-1] == Stop("refusal")
    assert text_in(await collect(model, Talk("hello"))) == "I can use . You said: hello"


async def test_a_script_can_break_the_model() -> None:
    with pytest.raises(ModelFault, match="overloaded by please break"):
        await collect(ScriptedModel.from_yaml(WEATHER), Talk("please break"))


CONFIRM = r"""
rules:
  - when: sure
    steps:
      - calls: [{tool: user_confirm, input: {message: 'Sure?'}}]
      - either:
          - output: /^yes$/
            calls: [{tool: delete, input: '{{"path": '}]
          - on: success
            text: Left alone.
          - text: No answer.
      - text: "Gone: {results[1].output}."
"""


@pytest.mark.parametrize(
    ("outcome", "text"),
    [(Success("no"), "Left alone."), (Success("yes!"), "Left alone."), (TimedOut(), "No answer.")],
)
async def test_the_next_step_is_chosen_by_the_output(outcome: Outcome, text: str) -> None:
    talk = Talk("sure?").asked("user_confirm").got(outcome)
    assert text_in(await collect(ScriptedModel.from_yaml(CONFIRM), talk)) == text


async def test_an_approval_continues_with_bad_json_and_then_to_the_end() -> None:
    model = ScriptedModel.from_yaml(CONFIRM)
    talk = Talk("sure?").asked("user_confirm").got(Success("yes"))
    assert CallDone(0, '{"path": ') in await collect(model, talk)
    talk.asked("delete").got(Success("a.txt"))
    assert text_in(await collect(model, talk)) == "Gone: a.txt."


async def test_a_step_beyond_the_script_and_an_outcome_nobody_thought_of_are_faults() -> None:
    model = ScriptedModel.from_yaml(CONFIRM)
    with pytest.raises(ModelFault, match=r"has 3 steps at rules\[0\]"):
        await collect(model, Talk("sure?").said("a").said("b").said("c"))
    only_yes = ScriptedModel.from_yaml(
        "rules:\n- when: go\n  steps:\n  - calls: [{tool: a}]\n  - on: success\n    text: ok\n"
    )
    with pytest.raises(ModelFault, match=r"No step 2 at rules\[0\] of the script fits: denied"):
        await collect(only_yes, Talk("go").asked("a").got(Denied()))
    with pytest.raises(ModelFault, match="fits: no result"):
        await collect(only_yes, Talk("go").said("hm"))


async def test_a_script_without_a_default_does_not_guess() -> None:
    with pytest.raises(ModelFault, match="No rule of the script matches"):
        await collect(ScriptedModel.from_yaml(CONFIRM), Talk("hello"))


async def test_bare_words_and_numbers_stay_what_they_look_like() -> None:
    script = """
rules: []
default:
  steps:
    - calls:
        - tool: t
          input: {a: on, b: no, c: 12:30, d: 2026-11-05, e: 1.5, f: true, g: null, h: "7", i: 010, j: ~}
    - text: ok
"""
    events = await collect(ScriptedModel.from_yaml(script), Talk("go"))
    assert events[-2] == CallDone(
        0,
        '{"a": "on", "b": "no", "c": "12:30", "d": "2026-11-05", "e": 1.5, "f": true, "g": null, '
        '"h": "7", "i": "010", "j": null}',
    )


async def test_a_delay_in_the_script_counts_for_its_step() -> None:
    model = ScriptedModel.from_yaml("default:\n  steps:\n  - text: soon\n    delay: 0.001\n", delay=3600)
    assert (await collect(model, Talk("go")))[0] == TextDelta("soon")


async def test_a_script_is_read_from_a_file_by_path_or_by_name(tmp_path: Path) -> None:
    path = tmp_path / "talk.yaml"
    path.write_text("default: {steps: [{text: Grüß dich}]}", encoding="utf-8")
    for source in (path, str(path)):
        assert text_in(await collect(ScriptedModel.from_yaml(source), Talk("go"))) == "Grüß dich"


MISTAKES = {
    "rules:\n- when: a\n  steps:\n  - txt: hi\n": (4, "unknown field `txt`; known fields are .*either"),
    "rules:\n- whem: a\n  steps: []\n": (2, "unknown field `whem`|missing required field `when`|length"),
    "rules:\n- when: a\n": (2, "missing required field `steps`"),
    "rules:\n- when: a\n  steps: []\n": (3, "length >= 1"),
    "rules:\n- when: /(/\n  steps:\n  - text: hi\n": (2, r"`/\(/` is not a regular expression"),
    "rules:\n- when: /(?P<text>.)/\n  steps:\n  - text: hi\n": (2, "cannot be named `text`"),
    "default:\n  steps:\n  - text: 'hi {you}'\n": (
        3,
        r"`\{you\}` is unknown here; known names are 0, results",
    ),
    "default:\n  steps:\n  - text: 'hi {1}'\n": (3, r"`\{1\}` is unknown here"),
    "default:\n  steps:\n  - text: 'hi }'\n": (3, "a single `}`"),
    "default:\n  steps:\n  - text: 42\n": (3, "Expected `str"),
    "default:\n  steps:\n  - on: success\n    text: hi\n": (3, "the first step has no result"),
    "default:\n  steps:\n  - text: hi\n  - calls: [{tool: t}]\n": (4, "add the step that follows"),
    "default:\n  steps:\n  - text: hi\n  - on: sucess\n    text: a\n": (4, "Invalid enum value 'sucess'"),
    "default:\n  steps:\n  - text: hi\n  - delay: 1\n": (4, "the step is empty"),
    "default:\n  steps:\n  - text: hi\n    delay: -1\n": (4, "Expected `float` >= 0"),
    "default:\n  steps:\n  - text: hi\n    either:\n    - text: a\n": (3, "`either` must be the only key"),
    "default:\n  steps:\n  - text: hi\n    text: ho\n": (4, "the key `text` is used twice"),
    "default:\n  steps:\n  - text: [\n": (4, "expected the node content"),
    "default:\n  steps:\n  - text: !!python/name:os.system\n": (3, "values of type .*python"),
    "default:\n  steps:\n  - text: !mine hi\n": (3, "values of type `!mine`"),
    "default:\n  ? [a, b]\n  : c\n": (2, "a key must be a plain string"),
    "default: &a\n  steps: [*a]\n": (1, "contains itself"),
    "\n": (1, "Expected `object`, got `null`"),
    "- a\n- b\n": (1, "Expected `object`, got `array`"),
    "default: \x07\n": (1, "special characters are not allowed"),
    "a: 1\n---\nb: 2\n": (2, "but found another document"),
}


@pytest.mark.parametrize("script", MISTAKES)
def test_a_mistake_in_a_script_is_one_line_that_names_the_place(script: str) -> None:
    line, why = MISTAKES[script]
    with pytest.raises(BadSetting, match=why) as refused:
        ScriptedModel.from_yaml(script)
    assert str(refused.value).startswith(f"The script, line {line}: ")
    assert "\n" not in str(refused.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match=r"nowhere\.yaml cannot be read: No such file"):
        ScriptedModel.from_yaml(tmp_path / "nowhere.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"default: \xff\xfe")
    with pytest.raises(BadSetting, match=r"latin\.yaml is not UTF-8"):
        ScriptedModel.from_yaml(tmp_path / "latin.yaml")
    (tmp_path / "wrong.yaml").write_text("rules: 3")
    with pytest.raises(BadSetting, match=r"wrong\.yaml, line 1: .*\(at rules\)"):
        ScriptedModel.from_yaml(tmp_path / "wrong.yaml")


def test_a_script_in_python_loads_no_yaml_reader() -> None:
    check = "import sys, farhand.models.scripted; sys.exit('yaml' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0
