"""The published OpenAPI document is that of the code."""

from __future__ import annotations

from scripts.make_openapi import TARGET, document
from tests.requirement import requirement


@requirement("openapi:every-route")
def test_the_published_document_is_up_to_date() -> None:
    assert TARGET.read_text() == document(), "run: make schema"
