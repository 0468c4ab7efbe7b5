"""The checker of histories: accepts a good one, and names each planted violation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.chaos.history import (
    Answered,
    DirectCall,
    Ending,
    Execution,
    Gap,
    Heard,
    History,
    Kept,
    Line,
    Request,
    Sending,
    Talk,
    Told,
    violations,
)


def good() -> History:
    """Two threads: one with two senders and a step that a crash discarded, one whose call timed out."""
    return History(
        sendings=[
            Sending("c1", "mine", Told.NOTHING),
            Sending("c1", "mine", Told.ACCEPTED),
            Sending("c1", "mine", Told.REPEATED),
            Sending("c1", "other", Told.CONFLICT, winner="mine"),
            Sending("c2", "late", Told.OVER, kind="timed_out"),
            Sending("nobody", "x", Told.UNKNOWN),
        ],
        kept=[
            Kept("c1", "t1", "success", "mine", is_far=True),
            Kept("c2", "t2", "timed_out", "too late", is_far=True),
            Kept("c3", "t3", "success", "done", effect="charge:t3"),
            Kept("c4", "t4", "failure", "unknown", effect="charge:t4"),
        ],
        answers=[
            Sending("c1", "yes", Told.ACCEPTED),
            Sending("c1", "no", Told.CONFLICT, winner="yes", kind="approved"),
        ],
        answered=[Kept("c1", "t1", "approved", "yes")],
        requests=[
            Request("t1", ()),
            Request("t1", (("c1", "mine"),)),
            Request("t1", (("c1", "mine"),)),
            Request("t2", (("c2", "too late"),)),
        ],
        executions=[
            Execution("charge", "charge:t1", idempotent=False),
            Execution("charge", "charge:t3", idempotent=False),
            Execution("look_up", "look_up:t1", idempotent=True),
            Execution("look_up", "look_up:t1", idempotent=True),
        ],
        direct=[
            DirectCall("charge:t3", is_keyed=True, is_settled=True, is_success=True, output="charged"),
            DirectCall("charge:t4", is_keyed=False, is_settled=True),
        ],
        told=[Answered("charge:t3", is_success=True, output="charged")] * 2,
        talks=_good_talks(),
    )


def _good_talks() -> list[Talk]:
    return [
        Talk(
            "t1",
            is_finished=True,
            journal=[
                Line(1, "", is_silent=True),
                Line(2, "cut sho", is_discarded=True),
                Line(3, "", is_silent=True),
                Line(4, "Hello there."),
                Line(5, "output c1"),
            ],
            heard=[
                Heard(2, 3, "cut"),
                Heard(4, 5, "Hello"),
                Heard(4, 12, " there."),
                Heard(5, 0, "output c1"),
            ],
            endings=[Ending(0, 0, is_whole=False), Ending(1, 0, is_whole=True)],
            answer=["Hello there."],
            script=["Hello there."],
        ),
        Talk("t2", is_finished=True),
    ]


def test_a_good_history_has_no_violations() -> None:
    assert violations(good()) == []


Plant = Callable[[History], None]


def _accept_twice(history: History) -> None:
    history.sendings.append(Sending("c1", "mine", Told.ACCEPTED))


def _name_another_winner(history: History) -> None:
    history.sendings.append(Sending("c1", "third", Told.CONFLICT, winner="other"))


def _accept_what_is_not_kept(history: History) -> None:
    history.kept[0] = replace(history.kept[0], digest="other")
    history.requests = [Request("t1", (("c1", "other"),)), history.requests[-1]]


def _lose_what_was_accepted(history: History) -> None:
    history.kept[0] = replace(history.kept[0], digest=None)


def _repeat_what_never_won(history: History) -> None:
    history.sendings = [Sending("c1", "another", Told.REPEATED)]


def _refuse_the_winner(history: History) -> None:
    history.sendings.append(Sending("c1", "mine", Told.CONFLICT, winner="mine"))


def _say_over_to_the_winner(history: History) -> None:
    history.sendings.append(Sending("c1", "mine", Told.OVER))


def _deny_a_call_that_exists(history: History) -> None:
    history.sendings.append(Sending("c2", "x", Told.UNKNOWN))


def _give_the_model_a_loser(history: History) -> None:
    history.requests.append(Request("t1", (("c1", "other"),)))


def _give_the_model_a_result_twice(history: History) -> None:
    history.requests.append(Request("t1", (("c1", "mine"), ("c1", "mine"))))


def _give_the_model_nothing(history: History) -> None:
    history.requests = [history.requests[0], history.requests[-1]]


def _give_the_model_a_stranger(history: History) -> None:
    history.requests.append(Request("t1", (("c9", "mine"),)))


def _time_out_what_was_never_offered(history: History) -> None:
    """No reader heard of it, so nobody brought anything, and the thread continued without it."""
    history.sendings = [each for each in history.sendings if each.call_id != "c2"]


def _invent_what_nobody_sent(history: History) -> None:
    history.kept[0] = replace(history.kept[0], digest="other")
    history.sendings = history.sendings[4:]
    history.requests[:3] = [Request("t1", (("c1", "other"),))]


def _wake_long_after(history: History, *, before: int = 0) -> None:
    """Its result was accepted, and its run was woken by nothing for 90 s, while others continued; `before` of
    them had been woken by then."""
    history.requests = [replace(each, at=90.0) for each in history.requests]
    for number in range(100):
        name, at = f"other-{number}", -2.0 if number < before else 1.0
        history.kept.append(Kept(name, name, "success", "mine", settled_at=at))
        history.requests.append(Request(name, ((name, "mine"),), at=at + 1.0))


def _lose_an_event(history: History) -> None:
    history.talks[0].heard.pop()


def _lose_words(history: History) -> None:
    history.talks[0].heard[1:3] = [Heard(4, 12, " there.")]


def _skip_a_number(history: History) -> None:
    del history.talks[0].journal[2]


def _never_end(history: History) -> None:
    history.talks[1].is_finished = False


def _tell_an_event_twice(history: History) -> None:
    history.talks[0].heard.append(Heard(5, 0, "output c1"))


def _tell_words_twice(history: History) -> None:
    history.talks[0].heard[2] = Heard(4, 12, "lo there.")


def _tell_an_event_of_no_journal(history: History) -> None:
    history.talks[0].heard.append(Heard(6, 0, "output c7"))


def _tell_other_words_than_were_discarded(history: History) -> None:
    history.talks[0].heard[0] = Heard(2, 3, "dog")


def _charge_twice(history: History) -> None:
    history.executions.append(Execution("charge", "charge:t1", idempotent=False))


def _look_up_what_is_known(history: History) -> None:
    history.executions.append(Execution("look_up", "look_up:t1", idempotent=True, after_its_result=True))


def _succeed_without_running(history: History) -> None:
    history.executions = [each for each in history.executions if each.call_key != "charge:t3"]


def _open_a_call_twice(history: History) -> None:
    history.direct.append(history.direct[0])


def _tell_a_program_another_answer(history: History) -> None:
    history.told.append(Answered("charge:t3", is_success=False))


def _tell_a_program_of_a_stranger(history: History) -> None:
    history.told.append(Answered("charge:t9", is_success=False))


def _leave_a_direct_call_open(history: History) -> None:
    history.direct[1] = replace(history.direct[1], is_settled=False)


def _never_answer_a_program(history: History) -> None:
    history.told.clear()


def _lose_a_place(history: History) -> None:
    history.talks[0].gaps.append(Gap(4, 0))


def _say_over_what_was_answered(history: History) -> None:
    history.sendings.append(Sending("c1", "third", Told.OVER, kind="timed_out"))


def _name_another_kind(history: History) -> None:
    history.sendings.append(Sending("c1", "third", Told.CONFLICT, winner="mine", kind="failure"))


def _take_a_yes_and_a_no(history: History) -> None:
    history.answers.append(Sending("c1", "no", Told.ACCEPTED))


def _forget_a_yes(history: History) -> None:
    history.answered[0] = replace(history.answered[0], digest="no")


def _do_what_was_denied(history: History) -> None:
    history.answered[0] = replace(history.answered[0], kind="denied")


def _delete_without_a_yes(history: History) -> None:
    history.executions.append(Execution("delete", "delete:t1", idempotent=False, is_allowed=False))


def _end_twice(history: History) -> None:
    history.talks[0].endings.append(Ending(2, 1, is_whole=True))


def _never_say_the_end(history: History) -> None:
    history.talks[0].endings.append(Ending(0, 0, is_whole=True))


def _go_on_after_the_end(history: History) -> None:
    history.talks[0].endings.append(Ending(1, 3, is_whole=False))


def _store_what_was_discarded(history: History) -> None:
    history.talks[0].answer = ["cut shoHello there."]


@pytest.mark.parametrize(
    ("plant", "named"),
    [
        (_accept_twice, "two outcomes: c1 accepted 2"),
        (_name_another_winner, "two outcomes: c1 had the winners"),
        (_accept_what_is_not_kept, "not the truth: c1 was told accepted, but the record has other"),
        (_lose_what_was_accepted, "not the truth: c1 was told accepted, but the record has None"),
        (_repeat_what_never_won, "not the truth: c1 was told repeated"),
        (_refuse_the_winner, "not the truth: c1 was told conflict, but its own"),
        (_say_over_to_the_winner, "not the truth: c1 was told over, but its own"),
        (_deny_a_call_that_exists, "not the truth: c2 was told unknown"),
        (_give_the_model_a_loser, "model: given other for c1"),
        (_give_the_model_a_result_twice, "model: c1 given 2 times"),
        (_give_the_model_nothing, "model: never given c1"),
        (_give_the_model_a_stranger, "model: given c9"),
        (_time_out_what_was_never_offered, "never offered: c2 ended as timed_out"),
        (_invent_what_nobody_sent, "never offered: c1 ended as success"),
        (_wake_long_after, "woken late: t1 after 90 s"),
        (_lose_an_event, "lost: 'output c1' at 5"),
        (_lose_words, "lost: 'Hello there.' at 4"),
        (_skip_a_number, "lost: the journal is numbered"),
        (_never_end, "lost: t2 never came to its end"),
        (_tell_an_event_twice, "doubled: (5, 0) was heard after (5, 0)"),
        (_tell_words_twice, "doubled: 'Hellolo there.' at 4"),
        (_tell_an_event_of_no_journal, "invented: 'output c7' at 6"),
        (_tell_other_words_than_were_discarded, "invented: 'dog' at 2"),
        (_charge_twice, "run twice: charge:t1 began 2 times"),
        (_look_up_what_is_known, "run twice: look_up:t1 began again"),
        (_succeed_without_running, "never run: charge:t3 succeeded"),
        (_open_a_call_twice, "program: charge:t3 was opened 2 times"),
        (_tell_a_program_another_answer, "program: told None of charge:t3, but the record has charged"),
        (_tell_a_program_of_a_stranger, "program: told of charge:t9"),
        (_leave_a_direct_call_open, "program: charge:t4 never came to its end"),
        (_never_answer_a_program, "program: nobody was told how charge:t3 ended"),
        (_lose_a_place, "lost place: t1 was at 4"),
        (_say_over_what_was_answered, "not the truth: c1 was told over, as timed_out"),
        (_name_another_kind, "not the truth: c1 was told conflict, as failure"),
        (_take_a_yes_and_a_no, "question: two outcomes: c1 accepted 2"),
        (_forget_a_yes, "question: not the truth: c1 was told accepted, but the record has no"),
        (_do_what_was_denied, "question: c1 was denied, and its outcome is success"),
        (_delete_without_a_yes, "question: delete:t1 ran without a yes"),
        (_end_twice, "ending: a response in t1 had 2 ends"),
        (_never_say_the_end, "ending: a response in t1 had 0 ends"),
        (_go_on_after_the_end, "ending: a response in t1 went on after its end"),
        (_store_what_was_discarded, "answer: t1 has ['cut shoHello there.']"),
    ],
)
def test_a_planted_violation_is_found(plant: Plant, named: str) -> None:
    history = good()
    plant(history)
    assert any(named in each for each in violations(history)), violations(history)


def test_a_wake_is_late_only_by_others_who_were_settled_later_and_woken_earlier() -> None:
    history = good()
    _wake_long_after(history, before=90)
    assert violations(history) == [], "a starved machine is slow for everybody"
