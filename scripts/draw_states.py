"""Draws the life of a call into docs/reference/states.md, from the table the code obeys.

Owns how the picture looks. What may happen to a call is decided in `farhand.core.call` alone, so a picture
that disagrees with the code cannot be drawn, and one that is out of date fails a test.
"""

from __future__ import annotations

from pathlib import Path

from farhand.core.call import MOVE_OF, MOVES, Move, Phase

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "states.md"

# who makes a move; the table says when it may be made
MEANINGS = {
    Move.APPROVE: "a person says yes",
    Move.DENY: "a person says no",
    Move.TAKE: "someone begins to run it, and nobody else does meanwhile",
    Move.RELEASE: "whoever took it let go, or was not heard of for 30 s",
    Move.FINISH: "its result arrived and was stored",
    Move.STOP: "its deadline passed, or its run was stopped or moved on",
}


def main() -> None:
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page())
    print(f"docs: {PAGE.relative_to(PAGE.parents[2])} drawn")


def page() -> str:
    return f"""\
<!-- Drawn by `make docs` from the table in src/farhand/core/call.py; do not edit. -->
# The life of a call

```mermaid
{diagram()}
```

A call begins as `asking` if a person has to say yes first, else as `ready`. One that names an unknown tool,
or brings input its schema does not allow, is settled as a `Failure` where it begins, and nobody runs it.
A move that is not in this table changes nothing: what was not approved cannot be finished, and what is
settled stays as it is.

{table()}
"""


def diagram() -> str:
    """The picture, in Mermaid: one arrow per pair of phases, named after all the moves that go that way."""
    arrows: dict[tuple[Phase, Phase], list[str]] = {}
    for phase, moves in MOVES.items():
        for move, after in moves.items():
            arrows.setdefault((phase, after), []).append(move)
    drawn = [f"    {phase} --> {after}: {' or '.join(moves)}" for (phase, after), moves in arrows.items()]
    begins = [f"    [*] --> {phase}" for phase in (Phase.ASKING, Phase.READY)]
    ends = [f"    {phase} --> [*]" for phase, moves in MOVES.items() if not moves]
    return "\n".join(["stateDiagram-v2", *begins, *drawn, *ends])


def table() -> str:
    lines = ["| move | when | from | to | outcome |", "|---|---|---|---|---|"]
    return "\n".join([*lines, *(_row(move) for move in Move)])


def _row(move: Move) -> str:
    steps = [(phase, moves[move]) for phase, moves in MOVES.items() if move in moves]
    before = ", ".join(f"`{phase}`" for phase, _ in steps)
    # a set with an order: every move leads to one phase, wherever it starts
    after = ", ".join(f"`{phase}`" for phase in dict.fromkeys(after for _, after in steps))
    outcomes = ", ".join(f"`{outcome.__name__}`" for outcome, by in MOVE_OF.items() if by is move)
    return f"| {move} | {MEANINGS[move]} | {before} | {after} | {outcomes or '–'} |"


if __name__ == "__main__":
    main()
