"""Programs with a framework's loop as separate processes, so that they can be killed."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

from tests.frameworks.stage import PATIENCE_SEC

ROOT = Path(__file__).parents[2]


async def run_until(line: str, module: str, *arguments: str) -> None:
    """Starts the program and kills it, with SIGKILL, once it has printed this line."""
    process = await _start(module, *arguments)
    assert process.stdout is not None
    try:
        async with asyncio.timeout(2 * PATIENCE_SEC):
            while (printed := (await process.stdout.readline()).decode().strip()) != line:
                assert printed, f"{module} ended before it printed {line}"
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def run_to_end(module: str, *arguments: str) -> str:
    """The last line that the program printed."""
    process = await _start(module, *arguments)
    try:
        async with asyncio.timeout(2 * PATIENCE_SEC):
            printed, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0
    return printed.decode().splitlines()[-1]


def say(line: str) -> None:
    """What a program prints reaches the test at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def _start(module: str, *arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", module, *arguments, stdout=PIPE, cwd=ROOT, env=dict(os.environ)
    )
