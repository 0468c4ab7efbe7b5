"""The page of limits is that of the code, and no limit is missing from it."""

from __future__ import annotations

from msgspec.structs import fields

from farhand.core.file import FileRules
from farhand.core.settings import Limits
from scripts.make_limits import TARGET, groups, page
from tests.requirement import requirement


@requirement("settings:reference")
def test_the_page_is_written_from_the_table() -> None:
    assert TARGET.read_text() == page(), "run: make docs"


@requirement("settings:reference")
def test_every_limit_that_can_be_set_stands_in_the_table() -> None:
    told = {limit.setting for group in groups() for limit in group.limits}
    assert {f"limits.{field.name}" for field in fields(Limits)} <= told
    assert {f"files.{field.name}" for field in fields(FileRules) if field.type is int} <= told
