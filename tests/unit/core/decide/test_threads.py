"""The title of a thread that nobody has named."""

from __future__ import annotations

import pytest

from farhand.core.decide.threads import TITLE_CHARS, tidy_title, title_of
from farhand.core.thread import File, Text, UserMessage


def message(*parts: Text | File) -> UserMessage:
    return UserMessage("m1", parts)


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ("Where am I?", "Where am I?"),
        ("  two\nlines\tand a tab ", "two lines and a tab"),
        ("# **Plan** for `today`, *please*!", "Plan for today, please!"),
        ("- one\n- two", "one two"),
        ("Call delete_file with -5 or a*b", "Call delete_file with -5 or a*b"),
        ("Open https://www.example.com/a/b?c=d now", "Open example.com now"),
        ("Read [the page](https://example.org/a) and ![it](x.png)", "Read the page and it"),
        ("Why does this fail?\n```py\nprint(1)\n```", "Why does this fail?"),
        ("```py\nprint(1)\n```", "py print(1)"),
    ],
)
def test_a_title_is_the_first_words_without_marks(said: str, title: str) -> None:
    assert title_of(message(Text(said))) == title


def test_a_long_title_ends_after_a_whole_word() -> None:
    title = title_of(message(Text("seven letters " * 20)))
    assert len(title) <= TITLE_CHARS
    assert title.endswith(("letters…", "seven…"))
    assert title_of(message(Text("x" * 200))) == "x" * (TITLE_CHARS - 1) + "…"


def test_a_message_of_files_alone_is_called_by_their_names() -> None:
    files = [File("blob_1", name, "image/png", 1) for name in ("a.png", "b.png")]
    assert title_of(message(*files)) == "a.png, b.png"


def test_a_title_that_somebody_wrote_is_one_line_of_a_limited_length() -> None:
    assert tidy_title("# Plan\n for today") == "# Plan for today"
    assert tidy_title("x" * 200) == "x" * (TITLE_CHARS - 1) + "…"
