"""How a limit of bytes is written for people."""

from __future__ import annotations

import pytest

from farhand.core.settings import size_in_words


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0 bytes"),
        (812, "812 bytes"),
        (1024, "1 KiB"),
        (1025, "1,025 bytes"),
        (1024 * 1024, "1 MiB"),
        (20_060_001, "20.1 MB"),
        (3 * 1024**3, "3 GiB"),
        (12_345_678_901, "12,345.7 MB"),
    ],
)
def test_sizes_are_told_as_people_write_them(count: int, words: str) -> None:
    assert size_in_words(count) == words
