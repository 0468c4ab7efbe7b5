"""File names, media types, and the files that a result refers to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from farhand.core.file import (
    NAME_BYTES,
    PIECE_BYTES,
    REFS_AT_MOST,
    StoredFile,
    clean_name,
    is_listed,
    is_pattern,
    is_ref,
    media_type_of,
    refs_in,
)
from farhand.core.principal import LOCAL
from tests.requirement import requirement

REF, OTHER = "blob_" + "a" * 32, "blob_" + "b" * 32

JSON = some.recursive(
    some.none() | some.booleans() | some.integers() | some.text(max_size=5) | some.sampled_from([REF, OTHER]),
    lambda inner: (
        some.lists(inner, max_size=4)
        | some.dictionaries(some.sampled_from(["ref", "a", "b"]), inner, max_size=3)
    ),
)


@requirement("files:safe")
@given(some.text(some.characters()))
def test_a_cleaned_name_is_safe_and_stays_as_it_is(text: str) -> None:
    name = clean_name(text)
    assert 1 <= len(name.encode()) <= NAME_BYTES
    assert name.isprintable()
    assert not set('/\\<>:"|?*') & set(name)
    assert name not in (".", "..")
    assert name.strip(" .") == name
    assert clean_name(name) == name


@requirement("files:safe")
@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("report.pdf", "report.pdf"),
        ("/etc/passwd", "passwd"),
        ("a/b\\c.txt", "c.txt"),
        ("u\u0308.png", "ü.png"),
        ("x" * 300 + ".tar.gz", "x" * 197 + ".gz"),
        ("ü" * 300, "ü" * 100),
        ("a." + "b" * 300, "a." + "b" * 198),
        (" . .", "file"),
        ("\ud800", "file"),
        ("", "file"),
    ],
)
def test_a_name_keeps_what_is_safe_of_it(text: str, name: str) -> None:
    assert clean_name(text) == name


@requirement("files:upload")
@pytest.mark.parametrize(
    ("content_type", "media_type"),
    [
        ("image/PNG", "image/png"),
        (" text/plain ; charset=utf-8", "text/plain"),
        ("application/vnd.ms-excel+xml", "application/vnd.ms-excel+xml"),
        ("image", None),
        ("image/", None),
        ("a/b/c", None),
        ("a b/c", None),
        ("*/*", None),
        ("a/" + "b" * 200, None),
        ("", None),
    ],
)
def test_a_media_type_is_read_without_its_parameters(content_type: str, media_type: str | None) -> None:
    assert media_type_of(content_type) == media_type


@requirement("files:upload")
def test_a_list_of_types_has_single_ones_and_families() -> None:
    listed = ("image/*", "application/pdf")
    assert is_listed("image/png", listed)
    assert is_listed("application/pdf", listed)
    assert not is_listed("application/pdfx", listed)
    assert not is_listed("images/png", listed)
    assert is_listed("x/y", ("*/*",))
    assert all(map(is_pattern, ("image/*", "application/pdf", "*/*")))
    assert not any(map(is_pattern, ("image", "*/png", "*", "", "image/p*", "a b/c")))


@given(JSON)
def test_every_ref_of_a_result_is_found_once_wherever_it_stands(output: object) -> None:
    assert set(refs_in(output)) == set(_by_hand(output))
    assert len(set(refs_in(output))) == len(refs_in(output))


def test_refs_come_in_their_order_and_only_so_many() -> None:
    output = [{"ref": OTHER, "more": [{"ref": REF}]}, {"ref": REF}, {"ref": "blob_x"}, {"file": REF}]
    assert refs_in(output) == (OTHER, REF)
    many = [{"ref": f"blob_{number:032x}"} for number in range(REFS_AT_MOST + 10)]
    assert refs_in(many) == tuple(each["ref"] for each in many[:REFS_AT_MOST])


def test_a_result_may_be_deeper_than_the_stack() -> None:
    deep: object = {"ref": REF}
    for _ in range(100_000):
        deep = [deep]
    assert refs_in(deep) == (REF,)


@pytest.mark.parametrize("text", [REF.upper(), REF[:-1], REF + "a", "blob_" + "g" * 32, REF + "\n", ""])
def test_what_only_looks_like_a_ref_is_none(text: str) -> None:
    assert is_ref(REF)
    assert not is_ref(text)


@pytest.mark.parametrize(
    ("size", "pieces"),
    [(0, 1), (1, 1), (PIECE_BYTES - 1, 1), (PIECE_BYTES, 1), (PIECE_BYTES + 1, 2), (10 * 1024 * 1024, 40)],
)
def test_a_file_has_as_many_pieces_as_its_size_needs(size: int, pieces: int) -> None:
    file = StoredFile(owner=LOCAL, ref=REF, name="a", media_type="a/b", size=size, created_at=0.0)
    assert file.pieces == pieces


def _by_hand(value: object) -> list[str]:
    if isinstance(value, list):
        return [ref for each in value for ref in _by_hand(each)]
    if not isinstance(value, dict):
        return []
    own = [value["ref"]] if value.get("ref") in (REF, OTHER) else []
    return [*own, *(ref for each in value.values() for ref in _by_hand(each))]
