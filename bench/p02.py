"""P2: the durable round trip of P1 against LangGraph with its SQLite saver, and against Pydantic AI."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

from bench.peers import command
from bench.rounds import Measure, alternate, trips
from bench.server_process import app, scratch, serving
from bench.table import Effort, Line, ms

USERS = 64
NAMES = {"langgraph": ("LangGraph + SQLite", 15), "pydantic_ai": ("Pydantic AI", 30)}


def measure(effort: Effort) -> list[Line]:
    # in a second they finish a few trips at most
    patient = replace(effort, seconds=max(effort.seconds, 4.0))
    with ExitStack() as stack:
        folder = stack.enter_context(scratch())
        ours = stack.enter_context(app("whole", f"sqlite:///{folder}/p2.db"))
        contenders: dict[str, Measure] = {"farhand": trips(ours, effort, users=USERS)}
        missing: dict[str, str] = {}
        for peer, options in {"langgraph": [f"{folder}/langgraph.db"], "pydantic_ai": []}.items():
            how = command(peer, *options)
            if isinstance(how, str):
                missing[peer] = how
                continue
            theirs = stack.enter_context(serving(how))
            contenders[peer] = trips(theirs, patient, users=USERS, dialect="turns")
        got = alternate(contenders, effort)
    return [_line(peer, got, missing.get(peer)) for peer in NAMES]


def _line(peer: str, got: dict[str, dict[str, float]], missing: str | None) -> Line:
    name, target = NAMES[peer]
    what = f"durable round trip, {USERS} users, against {name}"
    if missing is not None:
        return Line("P2", what, f"≥ {target}x trips/s", "–", None, missing)
    ours, theirs = got["farhand"], got[peer]
    ratio = ours["rate"] / theirs["rate"]
    return Line(
        "P2",
        what,
        f"≥ {target}x trips/s",
        f"{ratio:.1f}x",
        ratio >= target,
        f"{ours['rate']:.0f} against {theirs['rate']:.0f} trips/s; processor time per trip"
        f" {ms(ours['each'])} against {ms(theirs['each'])} ({theirs['each'] / ours['each']:.1f}x)",
        {"farhand": ours, peer: theirs},
    )
