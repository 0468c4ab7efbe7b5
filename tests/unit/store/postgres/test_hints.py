"""What fits into a notification, and what time it is when nobody is asked."""

from __future__ import annotations

from farhand.store.postgres.hints import ALL, GREW, MOVED, Hint, notifications, read_note
from farhand.store.postgres.hours import WINDOW_SEC, Hours
from farhand.testing import FakeClock

LIMIT = 8000


def test_hints_are_told_once_each_in_notifications_below_the_limit() -> None:
    hints: list[Hint] = [(GREW, f"run_{number:032x}", number) for number in range(1_000)]
    notes = notifications("me", [*hints, *hints])
    assert all(len(note.encode()) < LIMIT for note in notes)
    heard = [tuple(hint) for note in notes for hint in read_note(note)[1]]
    assert heard == hints
    assert {read_note(note)[0] for note in notes} == {"me"}
    assert len(notes) < 10


def test_a_hint_that_fits_into_no_notification_becomes_a_look_at_everything() -> None:
    [note] = notifications("me", [(MOVED, "feed:" + "ü" * LIMIT)])
    assert read_note(note) == ("me", [[ALL]])


def test_names_that_no_database_could_hold_as_text_pass_through() -> None:
    hint = (MOVED, 'feed:a\0b"\\\n')
    [note] = notifications("me", [hint])
    assert "\0" not in note
    assert read_note(note) == ("me", [list(hint)])


def test_nothing_to_tell_is_no_notification() -> None:
    assert notifications("me", []) == []


def test_a_notification_of_somebody_else_means_a_look_at_everything() -> None:
    assert read_note("hello") == ("", [[ALL]])


def test_the_time_is_never_ahead_of_the_database_and_follows_when_it_is_set_back() -> None:
    here = [100.0]
    hours = Hours(lambda: here[0])
    hours.seen(1_000.0)
    here[0] += 1.0
    assert hours.now() == 1_001.0
    hours.seen(1_000.9)
    assert hours.now() == 1_001.0, "a look that took longer says less"
    for _ in range(3):
        here[0] += WINDOW_SEC + 1.0
        hours.seen(here[0])
    assert hours.now() == here[0]


def test_a_clock_that_is_given_counts_alone() -> None:
    clock = FakeClock()
    hours = Hours(lambda: 0.0, clock)
    hours.seen(5.0)
    assert (hours.now(), hours.told) == (clock.now(), clock.now())
