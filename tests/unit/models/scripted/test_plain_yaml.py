from __future__ import annotations

import pytest

from farhand.models.scripted.yaml_reader import read_yaml

TEXT = "a:\n  - b: 1\n    c:\n      - x\n      - y\n"


@pytest.mark.parametrize(
    ("place", "line"),
    [("", 1), ("a", 2), ("a[0].b", 2), ("a[0].c[1]", 5), ("a[0].d.e", 2), ("a[7]", 2), ("b.c", 1)],
)
def test_a_place_has_a_line_also_where_it_ends_early(place: str, line: int) -> None:
    assert read_yaml(TEXT).line_of(place) == line


def test_an_empty_text_is_nothing_on_the_first_line() -> None:
    document = read_yaml("")
    assert (document.value, document.line_of("a")) == (None, 1)
