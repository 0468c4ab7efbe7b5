from __future__ import annotations

from farhand.core.outcome import Denied, Failure, Success
from farhand.core.thread import Asked, File, Resolved, Text, UserMessage
from farhand.models.base import Image
from farhand.models.shown import NO_WORDS, Shown, input_shown, input_text, result_shown, user_parts, words
from tests.requirement import requirement

PHOTO = Image("image/png", b"\x89PNG")
ASKED = Asked("call_1", "look", {"at": "sea"})


def resolved(outcome: Success | Failure | Denied, input: object = ASKED.input) -> Resolved:
    return Resolved("call_1", "look", input, outcome)


@requirement("models:shown")
def test_an_input_that_is_no_object_is_shown_inside_one() -> None:
    assert input_shown(ASKED) == {"at": "sea"}
    assert input_shown(Asked("call_1", "look", '{"at": "s')) == {"INVALID_JSON": '{"at": "s'}
    assert input_text(Asked("call_1", "look", [1])) == '{"INVALID_JSON":[1]}'


@requirement("models:shown")
def test_a_result_is_shown_as_farhand_words_it() -> None:
    assert result_shown(resolved(Success({"b": 1, "a": 2})), ASKED, {}) == Shown('{"a":2,"b":1}')
    shown = result_shown(resolved(Failure("no sea")), ASKED, {})
    assert (shown.text, shown.is_error) == ('{"status":"failed","errorText":"no sea"}', True)


@requirement("models:edited")
def test_a_changed_input_is_told_with_the_result() -> None:
    shown = result_shown(resolved(Success("blue"), {"at": "sky"}), ASKED, {})
    assert shown.text == 'The user changed the input before allowing it, to {"at":"sky"}.\nblue'


@requirement("models:images")
def test_images_that_a_result_refers_to_are_shown_with_it_in_their_order() -> None:
    other = Image("image/jpeg", b"jpeg")
    known = {"blob_1": PHOTO, "blob_2": other, "blob_3": Image("image/svg+xml", b"<svg/>")}
    output = {"photos": [{"ref": "blob_1"}, {"ref": "blob_2"}], "map": {"ref": "blob_3"}, "ref": "blob_9"}
    assert result_shown(resolved(Success(output)), ASKED, known).images == (PHOTO, other)
    assert result_shown(resolved(Failure("blob_1")), ASKED, known).images == ()


@requirement("models:images")
def test_files_of_a_message_are_images_where_they_can_be_and_words_elsewhere() -> None:
    message = UserMessage(
        "m1",
        (
            Text("Look:"),
            File("blob_1", "sea.png", "image/png", 4),
            File("blob_2", "plan.pdf", "application/pdf", 900),
            File("blob_3", "lost.png", "image/png", 7),
        ),
    )
    parts = user_parts(message, {"blob_1": PHOTO})
    assert parts == [
        "Look:",
        PHOTO,
        "[file plan.pdf: application/pdf, 900 bytes]",
        "[file lost.png: image/png, 7 bytes]",
    ]
    assert words(parts[:2]) == "Look:\n\n[an image: image/png]"


@requirement("models:shown")
def test_a_message_without_words_says_so() -> None:
    assert user_parts(UserMessage("m1", (Text(" \n"),)), {}) == [NO_WORDS]
