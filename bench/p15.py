"""P15: opening a thread of 2,000 messages, and listing a page of 10,000 threads; over HTTP, with SQLite."""

from __future__ import annotations

import asyncio
import json
import sys

from bench.apps.whole import make_app
from bench.pending import AT_ONCE, OWNER
from bench.rounds import alternate
from bench.server_process import app, run_alone, scratch
from bench.synthetic_run import SyntheticRun
from bench.table import Effort, Line, ms
from farhand.agent.service import AgentService
from farhand.core.decide.decision import Decision
from farhand.core.state import ThreadState

MESSAGES, THREADS = 2_000, 10_000
OPENED, LISTED = 20, 20
LONG = "long"
WORDS = "A sentence of an ordinary answer, as long as they are. " * 6


def measure(effort: Effort) -> list[Line]:
    messages, threads = max(100, effort.many(MESSAGES)), max(100, effort.many(THREADS))
    with scratch() as folder:
        file = folder / "p15.db"
        run_alone("bench.p15", str(file), str(messages), str(threads))
        # a server that has just started: the thread is read from the disk
        got = alternate({"both": lambda _: _looked(str(file))}, effort)["both"]
    return [
        Line(
            "P15",
            f"opening a thread of {messages:,} messages, from the disk",
            "≤ 100 ms",
            ms(got["afresh"]),
            got["afresh"] <= 0.1,
            f"the first GET of a server that has just started; {ms(got['again'])} once it is cached,"
            f" processor time {ms(got['again_cpu'])}; {got['bytes'] / 1e6:.2f} MB of JSON",
            {"thread": got},
        ),
        Line(
            "P15",
            f"a page of {threads:,} threads",
            "≤ 20 ms",
            ms(got["page"]),
            got["page"] <= 0.02,
            f"median of {LISTED} pages, one behind the other; processor time {ms(got['page_cpu'])}",
            {"threads": got},
        ),
    ]


def _looked(file: str) -> dict[str, float]:
    with app("whole", f"sqlite:///{file}") as ours:
        first = ours.load("gets", path=f"/api/chat/{LONG}", count=1)
        again = ours.load("gets", path=f"/api/chat/{LONG}", count=OPENED)
        pages = ours.load("gets", path="/api/chat?limit=50", count=LISTED, follow=True)
    return {
        "afresh": first["p50"],
        "again": again["p50"],
        "again_cpu": again["each"],
        "bytes": again["bytes"],
        "page": pages["p50"],
        "page_cpu": pages["each"],
    }


async def fill(file: str, messages: int, threads: int) -> dict[str, float]:
    program = make_app(f"sqlite:///{file}")
    await program.start()
    service = program.service
    for number in range(messages // 2):
        await _say(service, LONG, number)
    for start in range(0, threads, AT_ONCE):
        some = range(start, min(start + AT_ONCE, threads))
        await asyncio.gather(*(_say(service, f"thread-{number}", 0) for number in some))
    await program.stop()
    return {"messages": messages, "threads": threads}


async def _say(service: AgentService, thread_id: str, number: int) -> None:
    run_id = service.clock.fresh("run")

    def decide(thread: ThreadState, now: float) -> Decision[None]:
        played = SyntheticRun(thread, now, service.settings)
        played.begin(run_id, f"m{number}", f"Question {number} of many. {WORDS[:80]}")
        played.answer(WORDS)
        return played.decision()

    await service.log.decide(OWNER, thread_id, decide)


if __name__ == "__main__":
    print(json.dumps(asyncio.run(fill(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))))
