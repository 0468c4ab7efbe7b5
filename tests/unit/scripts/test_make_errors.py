"""The page of error codes is that of the code, and no code is missing from it."""

from __future__ import annotations

from farhand import errors
from farhand.faces.base import STATUS
from farhand.server.error_codes import ERROR_CODES
from scripts.make_errors import TARGET, page
from tests.requirement import requirement

BRANCHES = {"error", "peer_fault", "misuse"}
"""Of base classes: never raised themselves."""


@requirement("errors:codes")
def test_the_page_is_written_from_the_table() -> None:
    assert TARGET.read_text() == page(), "run: make docs"


@requirement("errors:codes")
def test_every_code_is_explained() -> None:
    classes = [getattr(errors, name) for name in errors.__all__]
    assert {each.code for each in classes} - BRANCHES <= ERROR_CODES.keys()
    assert STATUS.keys() <= ERROR_CODES.keys()
    assert all(meaning.endswith(".") and step.endswith(".") for meaning, step in ERROR_CODES.values())
