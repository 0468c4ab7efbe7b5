"""Two workers, one database, and calls without a run: the worker where a call was opened or approved is
killed, and the other one runs the tool once."""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio import TaskGroup
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.direct_calls import (
    AGENT,
    UNKNOWN,
    WITHIN_SEC,
    answer,
    approve,
    executing,
    inbox,
    waiting,
    yes_that_kills,
)
from tests.chaos.workers import workers
from tests.postgres import Cluster, running_cluster
from tests.requirement import requirement

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running_cluster() as cluster:
        yield cluster


@requirement("direct:yes-after-restart")
async def test_the_openers_worker_is_killed_and_the_approval_is_given_at_the_other(
    cluster: Cluster, tmp_path: Path
) -> None:
    async with workers(tmp_path, [cluster.address("opener")] * 2, agent=AGENT) as [one, other]:
        async with executing(one, "delete_file", "a", requestID="job-1"):
            call = await waiting(other, "delete_file")
            await one.server.kill()
        assert await approve(other, call) == (200, {"ok": True})
        told = await answer(other, "delete_file", "a", "job-1")
        assert told["output"] == {"deleted": "a"}
        await one.server.start()
        assert await answer(one, "delete_file", "a", "job-1") == told
        assert one.executions == [("delete_file", "a")]


@requirement("direct:yes-after-restart")
async def test_a_caller_at_one_worker_gets_the_answer_when_the_approval_is_given_at_the_other(
    cluster: Cluster, tmp_path: Path
) -> None:
    async with workers(tmp_path, [cluster.address("attached")] * 2, agent=AGENT) as [one, other]:
        async with executing(one, "delete_file", "a") as called:
            assert await approve(other, await waiting(other, "delete_file")) == (200, {"ok": True})
            response = await called
        assert response.json()["output"] == {"deleted": "a"}
        assert one.executions == [("delete_file", "a")]


@requirement("direct:yes-after-restart")
@pytest.mark.parametrize("keyed", [True, False], ids=["with a request id", "without one"])
async def test_the_worker_that_took_the_approval_is_killed_before_the_tool_starts(
    cluster: Cluster, tmp_path: Path, keyed: bool
) -> None:
    more = {"requestID": "job-1"} if keyed else {}
    async with workers(tmp_path, [cluster.address(f"taker{keyed:d}")] * 2, agent=AGENT) as [one, other]:
        async with executing(one, "delete_file", "a", **more) as called:
            await yes_that_kills(other, "delete_file", "kill-before-start")
            response = await called
        assert response.json()["output"] == {"deleted": "a"}
        assert one.executions == [("delete_file", "a")]


async def test_the_worker_that_ran_the_tool_is_killed_and_the_caller_at_the_other_is_told(
    cluster: Cluster, tmp_path: Path
) -> None:
    async with workers(tmp_path, [cluster.address("flight")] * 2, agent=AGENT) as [one, other]:
        async with executing(one, "charge", "oslo", requestID="job-1") as called:
            assert await approve(other, await waiting(other, "charge")) == (200, {"ok": True})
            await one.until_executed("charge")
            await other.server.kill()
            one.open_gate("oslo")
            response = await called
        assert UNKNOWN in response.json()["error"]
        assert one.executions == [("charge", "oslo")]


async def test_an_idempotent_tool_is_run_again_by_the_other_worker(cluster: Cluster, tmp_path: Path) -> None:
    async with workers(tmp_path, [cluster.address("again")] * 2, agent=AGENT) as [one, other]:
        async with executing(one, "look_up", "oslo", requestID="job-1") as called:
            assert await approve(other, await waiting(other, "look_up")) == (200, {"ok": True})
            await one.until_executed("look_up")
            await other.server.kill()
            await one.until_executed("look_up", 2)
            one.open_gate("oslo")
            response = await called
        assert response.json()["output"] == {"found": "oslo"}
        assert one.executions == [("look_up", "oslo")] * 2


@requirement("workers:takeover")
async def test_a_worker_that_is_stopped_before_its_tool_does_not_begin_it_after_the_other_has_finished_it(
    cluster: Cluster, tmp_path: Path
) -> None:
    async with workers(tmp_path, [cluster.address("stopped")] * 2, agent=AGENT) as [one, other]:
        one.open_gate("oslo")
        async with executing(one, "look_up", "oslo", requestID="job-1") as called, TaskGroup() as group:
            call = await waiting(other, "look_up")
            (tmp_path / "stop-before-tool").write_text(str(other.server.pid))
            # whether the answer leaves before the process stops is a matter of luck
            group.create_task(approve(other, call))
            # longer than a lease later, the first worker takes it over
            response = await called
            os.kill(other.server.pid, signal.SIGCONT)
        assert response.json()["output"] == {"found": "oslo"}
        # what the other one does after it has woken up
        async with executing(other, "delete_file", "a", requestID="job-2"):
            assert await approve(other, await waiting(other, "delete_file")) == (200, {"ok": True})
            await answer(other, "delete_file", "a", "job-2")
        assert one.executions == [("look_up", "oslo"), ("delete_file", "a")]


async def test_without_request_id_a_call_is_cancelled_when_its_openers_worker_is_gone(
    cluster: Cluster, tmp_path: Path
) -> None:
    async with (
        workers(tmp_path, [cluster.address("unkeyed")] * 3, agent=AGENT) as [one, living, other],
        executing(living, "look_up", "oslo"),
    ):
        async with executing(one, "delete_file", "a"):
            call, left_alone = await waiting(other, "delete_file"), await waiting(other, "look_up")
            await one.server.kill()
        async with asyncio.timeout(WITHIN_SEC):
            while [each["callId"] for each in await inbox(other)] != [left_alone["callId"]]:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        status, told = await approve(other, call)
        assert (status, told["reason"]) == (410, "cancelled")
        # the one who found the other call looked at this one as well, and its caller is there
        assert await approve(other, left_alone) == (200, {"ok": True})
        await other.until_executed("look_up")
        assert other.executions == [("look_up", "oslo")]
        other.open_gate("oslo")


@requirement("direct:yes-after-restart")
@pytest.mark.parametrize("second", [True, False], ids=["two yeses", "a yes and a no"])
async def test_two_answers_at_two_workers_at_once_are_one_answer_and_the_tool_runs_at_most_once(
    cluster: Cluster, tmp_path: Path, second: bool
) -> None:
    async with workers(tmp_path, [cluster.address(f"both{second:d}")] * 2, agent=AGENT) as [one, other]:
        for subject in ("a", "b", "c", "d"):
            async with executing(one, "delete_file", subject, requestID=subject):
                call = await waiting(other, "delete_file")
                told = await asyncio.gather(approve(one, call), approve(other, call, approved=second))
            accepted = [each == (200, {"ok": True}) for each in told]
            assert accepted.count(True) == 1, told
            late = told[accepted.index(False)]
            assert late[0] == (200 if second else 409), late
            result = await answer(other, "delete_file", subject, subject)
            is_yes = second or accepted[0]
            assert (result["status"] == "success") is is_yes, result
            assert one.executions.count(("delete_file", subject)) == is_yes
