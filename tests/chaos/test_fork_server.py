"""A forked process behaves like a started one: its own folder, variables, output and exit code."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.fork_server import own_fork_server, shared_fork_server

RUN_FILE = "tests.docs.program:main"


@pytest.mark.parametrize(
    ("program", "code", "out", "err"),
    [
        ("import atexit; atexit.register(print, 'left'); raise SystemExit(3)", 3, "left\n", ""),
        ("import os; print(os.getcwd(), os.environ)", 0, "{folder} environ({'WHO': 'ada'})\n", ""),
        ("import sys; sys.exit('no room')", 1, "", "no room\n"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM, "", ""),
    ],
)
async def test_a_forked_process_ends_as_any_interpreter_does(
    tmp_path: Path, program: str, code: int, out: str, err: str
) -> None:
    (tmp_path / "program.py").write_text(program)
    printed = tmp_path / "printed.out"
    started = await shared_fork_server().start(
        [str(tmp_path / "program.py")], {"WHO": "ada"}, printed, RUN_FILE, cwd=tmp_path
    )
    assert await started.wait() == started.returncode == code
    assert printed.read_text() == out.replace("{folder}", str(tmp_path))
    assert printed.with_suffix(".err").read_text() == err


async def test_an_error_is_printed_with_its_traceback(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("raise RuntimeError('out of order')")
    printed = tmp_path / "printed.out"
    started = await shared_fork_server().start([str(tmp_path / "program.py")], {}, printed, RUN_FILE)
    assert await started.wait() == 1
    assert printed.with_suffix(".err").read_text().endswith("RuntimeError: out of order\n")


async def test_a_forked_process_ends_with_its_fork_server(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import signal; signal.pause()")
    async with own_fork_server() as fork_server:
        started = await fork_server.start(
            [str(tmp_path / "program.py")], {}, tmp_path / "printed.out", RUN_FILE
        )
        assert started.is_alive
    assert await started.wait() == -signal.SIGKILL
