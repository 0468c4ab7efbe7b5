"""Blocking work runs in threads, and can be abandoned."""

from __future__ import annotations

import asyncio
import contextvars
import subprocess
import sys
import threading

import anyio
import anyio.to_thread
import pytest

from farhand.tools import execute
from farhand.tools.execute import ToolNotStarted, run_in_thread, run_tool_function
from tests.requirement import requirement


def tool_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "farhand tool"]


async def test_work_runs_in_another_thread_with_the_context_of_the_caller() -> None:
    who = contextvars.ContextVar("who", default="nobody")
    who.set("caller")
    assert await run_in_thread(lambda: (threading.get_ident(), who.get())) != (
        threading.get_ident(),
        "caller",
    )
    assert await run_in_thread(who.get) == "caller"


async def test_work_that_is_given_up_frees_its_room_and_ends_unheard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execute, "MOST_THREADS", 1)
    release = threading.Event()
    with anyio.move_on_after(0.05) as deadline:
        await run_in_thread(release.wait)
    assert deadline.cancelled_caught
    with anyio.fail_after(30):
        assert await run_in_thread(lambda: "next") == "next"
    hung = tool_threads()
    release.set()
    for thread in hung:
        await anyio.to_thread.run_sync(thread.join)
    # its report is already on the loop; it comes before the end of this turn
    await anyio.lowlevel.checkpoint()


def test_work_that_outlives_its_loop_ends_quietly() -> None:
    release = threading.Event()

    async def give_up() -> None:
        with anyio.move_on_after(0.05):
            await run_in_thread(release.wait)

    asyncio.run(give_up())
    hung = tool_threads()
    release.set()
    for thread in hung:
        thread.join()
    assert tool_threads() == []


@pytest.mark.slow
def test_a_hung_tool_does_not_keep_the_process_from_ending() -> None:
    program = """
import asyncio, threading
from farhand.tools.toolbox import Toolbox

box = Toolbox()

@box.tool
def hang() -> None:
    'Never return.'
    threading.Event().wait()

print(asyncio.run(box.execute("hang", {}, within=0.05)).error)
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=50, check=True
    )
    assert ended.stdout.startswith("`hang` did not finish within 0.05 s")


async def test_at_most_so_many_run_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execute, "MOST_THREADS", 2)
    running = 0
    most = 0
    lock = threading.Lock()
    together = threading.Barrier(2)

    def work() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        together.wait(30)
        with lock:
            running -= 1

    async with anyio.create_task_group() as group:
        for _ in range(6):
            group.start_soon(run_in_thread, work)
    assert most == 2


@requirement("workers:takeover")
async def test_whether_a_tool_may_start_is_asked_once_there_is_a_thread_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(execute, "MOST_THREADS", 1)
    release, is_lost = threading.Event(), False
    begun: list[str] = []

    async def may_start() -> bool:
        return not is_lost

    async def start() -> None:
        with pytest.raises(ToolNotStarted):
            await run_tool_function(
                "pay", lambda: begun.append("paid"), {}, within=30, at_most=100, may_start=may_start
            )

    async with anyio.create_task_group() as group:
        group.start_soon(run_in_thread, release.wait)
        await anyio.wait_all_tasks_blocked()
        group.start_soon(start)
        await anyio.wait_all_tasks_blocked()
        is_lost = True
        release.set()
    assert begun == []


async def test_an_async_tool_that_may_not_start_is_not_called() -> None:
    begun: list[str] = []

    async def pay() -> None:
        begun.append("paid")

    async def never() -> bool:
        return False

    with pytest.raises(ToolNotStarted):
        await run_tool_function("pay", pay, {}, within=30, at_most=100, may_start=never)
    assert begun == []
