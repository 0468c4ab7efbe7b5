"""P14: live chats per core: streams of 50 words a second each, stored as they arrive.

The number of chats is computed from the processor time of a word, at 80 % of a core, because the load of the
machine affects processor time less than wall time. The delay of the words is reported as well.
"""

from __future__ import annotations

from contextlib import ExitStack

from bench.peers import command
from bench.rounds import Measure, alternate
from bench.server_process import Server, app, scratch, serving
from bench.table import Effort, Line, ms, us

RATE = 50.0
"""Words a second of each chat."""
CHATS, FEW = 100, 20
"""Concurrent chats; few if a word is so expensive that a core supports no more."""
FULL = 0.8
LATE_SEC = 0.1
PEER = "pydantic_ai"

Got = dict[str, dict[str, float]]


def measure(effort: Effort) -> list[Line]:
    return [*_said_here(effort), _through_a_provider(effort)]


def _said_here(effort: Effort) -> list[Line]:
    """The model is a function in the server."""
    with ExitStack() as stack:
        folder = stack.enter_context(scratch())
        ours = stack.enter_context(app("whole", f"sqlite:///{folder}/p14.db"))
        theirs = stack.enter_context(app("fastapi_futures"))
        contenders = {"farhand": _chats(ours, effort, CHATS), "FastAPI": _chats(theirs, effort, CHATS)}
        how = command(PEER)
        if not isinstance(how, str):
            contenders[PEER] = _chats(stack.enter_context(serving(how)), effort, FEW)
        got = alternate(contenders, effort)
    what = f"live chats of {RATE:g} words/s per core, durable, against"
    lines = [
        _line(f"{what} FastAPI StreamingResponse, nothing kept", got, "FastAPI", target=0.9),
        _lateness(got["farhand"]),
    ]
    if isinstance(how, str):
        return [*lines, Line("P14", f"{what} Pydantic AI", "≥ 5x", "–", None, how)]
    return [*lines, _line(f"{what} Pydantic AI's AI SDK adapter", got, PEER, target=5)]


def _through_a_provider(effort: Effort) -> Line:
    with scratch() as folder, app("provider", on_load_core=True) as provider:
        address = f"http://127.0.0.1:{provider.port}"
        with (
            app("whole", f"sqlite:///{folder}/p14.db", "--provider", address) as ours,
            app("fastapi_openai", address) as theirs,
        ):
            got = alternate(
                {"farhand": _chats(ours, effort, FEW), "FastAPI": _chats(theirs, effort, FEW)}, effort
            )
    what = "the same through a provider that speaks OpenAI's wire, against FastAPI + the official library"
    return _line(what, got, "FastAPI", target=2.5)


def _chats(server: Server, effort: Effort, count: int) -> Measure:
    return lambda _: server.load("chats", count=count, rate=RATE, seconds=effort.seconds)


def _line(what: str, got: Got, other: str, *, target: float) -> Line:
    ours, theirs = got["farhand"], got[other]
    ratio = theirs["each"] / ours["each"]
    return Line(
        "P14",
        what,
        f"≥ {target:g}x as many",
        f"{ratio:.2f}x",
        ratio >= target,
        f"{_held(ours)} against {_held(theirs)} chats at {FULL:.0%} of a core; processor time per word"
        f" {us(ours['each'])} against {us(theirs['each'])}; writes per word {ours['writes']:.2f} against"
        f" {theirs['writes']:.2f}; p99 of a word {ms(ours['p99'])} with {ours['count']:.0f} chats against"
        f" {ms(theirs['p99'])} with {theirs['count']:.0f}",
        {"farhand": ours, other: theirs},
    )


def _lateness(ours: dict[str, float]) -> Line:
    share = ours["cpu"] / ours["seconds"]
    return Line(
        "P14",
        f"from a word of the model to its reader, p99, {ours['count']:.0f} such chats",
        f"≤ {LATE_SEC * 1000:.0f} ms",
        ms(ours["p99"]),
        ours["p99"] <= LATE_SEC,
        f"p50 {ms(ours['p50'])}; the server used {share:.0%} of its core, and {ours['share']:.0%} of the"
        " words that were due arrived in time",
        {"farhand": ours},
    )


def _held(side: dict[str, float]) -> str:
    return f"{FULL / (side['each'] * RATE):.0f}"
