"""Schema admission, fuzzed: it admits or refuses, and values can be checked against what it admitted."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farhand.core.tool import Executor, Tool
from farhand.errors import BadTool
from farhand.tools.schema_admission import admit_output_schema, admit_schema, check_input
from tests.requirement import requirement

pytestmark = pytest.mark.slow
fuzz = settings(max_examples=200, deadline=None)
WITHIN_SEC = 5.0
"""Of processor time for one schema: thousands of times what one should take."""

names = st.sampled_from(["a", "b", "x", "$ref", "type"])
places = st.sampled_from(
    [
        "#",
        "#/$defs/a",
        "#/$defs/b",
        "#/properties/x",
        "#/$defs/none",
        "http://127.0.0.1:9/",
        "file:///etc/passwd",
        "x",
    ]
)
leaf = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.text(max_size=4), places,
    st.sampled_from(["string", "object", "array", "integer", "null"]),
)  # fmt: skip
anything = st.recursive(
    leaf, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
)


def _schema(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    """Schemas that are nearly right, so that the later rules are reached."""
    members = st.dictionaries(names, inner, max_size=3)
    return st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["object", "string", "array", "integer"]) | leaf,
            "properties": members,
            "patternProperties": st.dictionaries(st.sampled_from(["^a", "(a+)+$", "["]), inner, max_size=2),
            "additionalProperties": inner,
            "items": inner,
            "prefixItems": st.lists(inner, max_size=2),
            "anyOf": st.lists(inner, max_size=3),
            "allOf": st.lists(inner, max_size=3),
            "oneOf": st.lists(inner, max_size=2),
            "not": inner,
            "if": inner,
            "then": inner,
            "$ref": places,
            "$defs": st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2),
            "enum": st.lists(leaf, max_size=3),
            "pattern": st.sampled_from(["a*", "(a|aa)+$", "(?=x)", r"(a)\1", "["]),
            "required": st.lists(names, max_size=2),
            "minimum": st.integers(-2, 2),
            "description": st.text(max_size=8),
        },
    )


schemas = st.recursive(st.booleans() | st.just({}), _schema, max_leaves=12) | anything
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
)


@requirement("tools:gate")
@fuzz
@given(schemas, values)
def test_whatever_comes_is_taken_or_refused_in_time_and_what_was_taken_can_be_used(
    schema: object, value: object
) -> None:
    before = time.thread_time()
    try:
        kept = admit_schema(schema, "The schema")
    except BadTool:
        kept = None
    if kept is not None:
        assert "http://" not in repr(kept.get("$ref"))
        tool = Tool(
            name="client_c_t",
            description="d",
            input_schema=kept,
            executor=Executor.CLIENT,
            client_id="c",
            is_foreign=True,
        )
        assert isinstance(check_input(tool, value), str | None)
    assert time.thread_time() - before < WITHIN_SEC


@requirement("tools:gate")
@fuzz
@given(schemas)
def test_a_schema_that_was_taken_is_taken_again_as_it_is_kept(schema: object) -> None:
    try:
        kept = admit_output_schema(schema, "The output")
    except BadTool:
        return
    assert admit_output_schema(kept, "The output") == kept
