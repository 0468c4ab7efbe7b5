from __future__ import annotations

from farhand.core.call import MOVES
from scripts.draw_states import PAGE, diagram, page, table


def test_the_diagram_in_the_docs_is_the_table_in_the_code() -> None:
    assert PAGE.read_text() == page(), "run: make docs"


def test_every_move_of_the_table_is_drawn_and_no_other() -> None:
    drawn = set()
    for line in diagram().splitlines()[1:]:
        arrow, _, moves = line.partition(": ")
        before, _, after = arrow.strip().partition(" --> ")
        drawn |= {(before, move, after) for move in moves.split(" or ") if move}
    told = {(str(before), str(move), str(after)) for before in MOVES for move, after in MOVES[before].items()}
    assert drawn == told


def test_a_finished_call_has_success_or_failure_for_an_outcome() -> None:
    (row,) = [line for line in table().splitlines() if line.startswith("| finish ")]
    assert row.endswith("| `ready`, `taken` | `settled` | `Success`, `Failure` |")
