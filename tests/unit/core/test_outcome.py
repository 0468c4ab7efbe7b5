"""Digests distinguish results as JSON does; the model gets a result as text of limited size."""

from __future__ import annotations

import hashlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farhand.core.outcome import (
    MODEL_SEES_AT_MOST,
    Cancelled,
    Denied,
    Failure,
    ModelText,
    Outcome,
    Success,
    TimedOut,
    canonical,
    cut,
    digest,
    kind_of,
    public_error,
    seen_by_model,
)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)


def test_canonical_json_has_sorted_keys_no_blanks_and_plain_utf_8() -> None:
    assert canonical({"z": [1, 2], "é": "ü", "a": {"d": None, "c": True}}) == (
        '{"a":{"c":true,"d":null},"z":[1,2],"é":"ü"}'.encode()
    )


def test_a_digest_is_sha_256_of_the_canonical_json() -> None:
    text = b'{"kind":"success","output":{"a":1,"b":2}}'
    assert digest(Success({"b": 2, "a": 1})) == hashlib.sha256(text).hexdigest()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Success(1), Success(1.0)),
        (Success(1), Success(True)),
        (Success(0), Success(False)),
        (Success(None), Success("")),
        (Success("1"), Success(1)),
        (Success({"a": [1]}), Success({"a": [1, None]})),
        (Success("no"), Failure("no")),
        (Failure("no"), Denied("no")),
        (Denied("no"), Cancelled("no")),
        (TimedOut(1.0), TimedOut(2.0)),
    ],
)
def test_different_results_have_different_digests(one: Outcome, other: Outcome) -> None:
    assert digest(one) != digest(other)


@given(st.dictionaries(st.text(), json_values, max_size=6))
def test_the_order_of_keys_does_not_matter(output: dict[str, object]) -> None:
    turned = dict(reversed(output.items()))
    assert digest(Success(output)) == digest(Success(turned))


@given(json_values)
def test_a_result_that_was_stored_and_read_again_has_the_same_digest(output: object) -> None:
    stored = msgspec.json.encode(Success(output))
    assert digest(msgspec.json.decode(stored, type=Success)) == digest(Success(output))


@pytest.mark.parametrize(
    ("outcome", "kind"),
    [
        (Success(), "success"),
        (Failure("x"), "failure"),
        (Denied(), "denied"),
        (TimedOut(), "timed_out"),
        (Cancelled("x"), "cancelled"),
    ],
)
def test_an_outcome_knows_its_kind(outcome: Outcome, kind: str) -> None:
    assert kind_of(outcome) == kind
    assert msgspec.json.decode(msgspec.json.encode(outcome))["kind"] == kind


@pytest.mark.parametrize(
    ("outcome", "seen"),
    [
        (Success("sunny"), ModelText("sunny")),
        (Success(None), ModelText("null")),
        (Success({"b": 1, "a": "ü"}), ModelText('{"a":"ü","b":1}')),
        (Failure('a "b"'), ModelText('{"status":"failed","errorText":"a \\"b\\""}', is_error=True)),
        (TimedOut(60.0), ModelText('{"status":"timeout"}', is_error=True)),
        (Denied(), ModelText("The user denied this call; it was not executed.", is_error=True)),
        (
            Denied("too dear"),
            ModelText(
                "The user denied this call; it was not executed. They gave this reason: too dear",
                is_error=True,
            ),
        ),
        (
            Cancelled("the user moved on"),
            ModelText("This call was cancelled and has no result: the user moved on.", is_error=True),
        ),
    ],
)
def test_the_model_is_told_each_outcome_in_words(outcome: Outcome, seen: ModelText) -> None:
    assert seen_by_model(outcome) == seen


@pytest.mark.parametrize(
    ("outcome", "sentence"),
    [
        (Success("sunny"), ""),
        (Failure("popup blocked"), "popup blocked"),
        (Denied(), "Denied."),
        (Denied("too dear"), "Denied: too dear"),
        (TimedOut(60.0), "Nobody answered within 60 s."),
        (TimedOut(), "Nobody answered in time."),
        (Cancelled("the user moved on"), "Cancelled: the user moved on."),
    ],
)
def test_people_are_told_why_there_is_no_output(outcome: Outcome, sentence: str) -> None:
    assert public_error(outcome) == sentence


def test_the_model_sees_a_result_up_to_its_limit_and_a_mark_where_it_was_cut() -> None:
    fits = "a" * MODEL_SEES_AT_MOST
    assert seen_by_model(Success(fits)) == ModelText(fits)
    assert seen_by_model(Success(fits + "b")).text == (
        f"{fits}\n[cut here: {MODEL_SEES_AT_MOST + 1} bytes in total, showing the first {MODEL_SEES_AT_MOST}]"
    )


@given(st.integers(0, 3))
def test_a_cut_never_leaves_half_a_character(shift: int) -> None:
    text = "x" * shift + "€" * MODEL_SEES_AT_MOST
    kept = seen_by_model(Success(text)).text.partition("\n[cut here")[0]
    assert text.startswith(kept)
    assert MODEL_SEES_AT_MOST - 3 < len(kept.encode()) <= MODEL_SEES_AT_MOST


@given(st.integers(0, 3))
def test_a_text_is_cut_to_a_limit_that_counts_its_mark(shift: int) -> None:
    assert cut("short", 100) == "short"
    text = "x" * shift + "€" * 100
    short = cut(text, 100)
    assert len(short.encode()) <= 100
    assert short.endswith(f"[cut here: {300 + shift} bytes in total]")
    assert text.startswith(short.partition("\n[cut here")[0])


def test_a_large_object_and_a_long_error_are_cut_as_well() -> None:
    assert "[cut here" in seen_by_model(Success(["a" * 100] * 1_000)).text
    assert "[cut here" in seen_by_model(Failure("a" * (MODEL_SEES_AT_MOST + 1))).text
