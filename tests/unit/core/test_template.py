"""Templates name members of JSON objects and nothing else."""

from __future__ import annotations

import re

import pytest

from farhand.core.template import fill, names_in, shorten_line, with_defaults, without_values


@pytest.mark.parametrize(
    ("template", "values", "shown"),
    [
        ("Weather in {location}", {"location": "Oslo"}, "Weather in Oslo"),
        ("Weather in {location}", {}, "Weather in …"),
        ("{a.b}", {"a": {"b": 3}}, "3"),
        ("{a.b}", {"a": "text"}, "…"),
        ("{on}, {off}", {"on": True, "off": False}, "yes, no"),
        ("{names}", {"names": ["Ada", 2]}, "Ada, 2"),
        ("{names} {deep} {none}", {"names": [], "deep": [{}], "none": None}, "… … …"),
        ("{{literal}} {a}", {"a": 1.5}, "{literal} 1.5"),
        ("two\nlines {a}", {"a": "of\u202e text"}, "two lines of text"),
        ("{a}", "no object", "…"),
        ("lone } brace", {}, "lone } brace"),
        ("{a=none}, {b=x=y}, {c=}", {}, "none, x=y, …"),
        ("{a=none}, {b.c=none}", {"a": "some", "b": {"c": None}}, "some, …"),
    ],
)
def test_a_template_is_filled_with_what_its_names_lead_to(template: str, values: object, shown: str) -> None:
    assert fill(template, values) == shown


def test_a_template_without_values_has_a_mark_for_each() -> None:
    assert without_values("{{to}} {name}, urgent: {urgent=yes}") == "{to} …, urgent: …"


def test_defaults_become_the_texts_for_missing_members() -> None:
    defaults = {
        "urgent": True,
        "note": None,
        "deep": {"a": 1},
        "brace": "{x}",
        "own": "theirs",
        "long": "x" * 500,
    }
    assert with_defaults("{to} {urgent} {note} {deep} {brace} {own=mine} {{urgent}}", defaults) == (
        "{to} {urgent=yes} {note} {deep} {brace} {own=mine} {{urgent}}"
    )
    assert len(with_defaults("{long}", defaults)) < 130


def test_what_is_too_long_is_cut_with_a_mark() -> None:
    assert shorten_line("x" * 120) == "x" * 120
    assert fill("{a}", {"a": "x" * 500}) == "x" * 119 + "…"


def test_the_names_of_a_template_are_found_in_their_order() -> None:
    assert names_in("{b} {{no}} {a.c} {d=text}") == ["b", "a.c", "d"]


@pytest.mark.parametrize(
    ("template", "fault"),
    [
        ("{location", "a lone { at character 1"),
        ("50 }", "a lone } at character 4"),
        ("{}", "{} is not a name in braces"),
        ("{a.}", "{a.} is not a name in braces"),
        ("{__class__.mro()}", "is not a name in braces"),
        ("{a!r}", "is not a name in braces"),
    ],
)
def test_what_is_no_template_is_reported_with_its_place(template: str, fault: str) -> None:
    with pytest.raises(ValueError, match=re.escape(fault)):
        names_in(template)
